//! `get_directory_tree` (§2.7).

use std::{fmt::Write, path::Path};

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{
    entries::{self, Entry, EntryKind},
    require_path,
};
use crate::{
    root::{PathError, World},
    tools::{Call, Effort, Output, Stopped, ToolError, parse},
};

/// Most entries of one tree.
const MAX_ENTRIES: usize = 500;
/// Bounds of `max_depth`.
const DEPTHS: std::ops::RangeInclusive<i64> = 1..=10;

#[derive(Deserialize)]
struct Arguments {
    path: String,
    max_depth: i64,
    include_files: bool,
    show_size: bool,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let arguments: Arguments = parse(arguments)?;
    require_path(&arguments.path)?;
    let text = drawing(call, &arguments).unwrap_or_else(|error| error.bracketed(&arguments.path));
    Ok(Output::Text(text))
}

fn drawing(call: &Call<'_>, arguments: &Arguments) -> Result<String, PathError> {
    let world = call.root.open()?;
    let start = world.directory(&arguments.path)?;
    let is_root = start.as_os_str().is_empty();
    let shown = world.root.shown(&start);
    let mut tree = Tree {
        world: &world,
        include_files: arguments.include_files,
        show_size: arguments.show_size,
        effort: call.effort(),
        left: MAX_ENTRIES,
        text: if shown.ends_with('/') {
            shown
        } else {
            shown + "/"
        },
    };
    let first_line = tree.text.len();
    // Reaching a bound ends the drawing; the line that says so is already there.
    let _ = tree.draw(
        &start,
        "",
        arguments.max_depth.clamp(*DEPTHS.start(), *DEPTHS.end()),
    );
    if tree.text.len() == first_line && is_root {
        tree.text.push_str(
            "\n(empty - the sandbox root contains no visible files or folders. Files may have been meant to be here: \
             check with list_files, which also shows links.)",
        );
    } else if tree.text.len() == first_line {
        tree.text.push_str("\n(empty)");
    }
    Ok(tree.text)
}

/// The drawing has reached a bound.
struct Full;

struct Tree<'a> {
    world: &'a World<'a>,
    include_files: bool,
    show_size: bool,
    effort: Effort,
    left: usize,
    text: String,
}

impl Tree<'_> {
    fn draw(&mut self, directory: &Path, indent: &str, depth: i64) -> Result<(), Full> {
        let (branches, stopped) = match self.branches(directory) {
            Ok(found) => found,
            Err(PathError::Denied) => {
                let _ = write!(self.text, "\n{indent}[permission denied]");
                return Ok(());
            }
            Err(error) => {
                let _ = write!(self.text, "\n{indent}[error: {error}]");
                return Ok(());
            }
        };
        let last = branches.len().checked_sub(1);
        for (position, branch) in branches.iter().enumerate() {
            if self.left == 0 {
                let _ = write!(
                    self.text,
                    "\n{indent}... (truncated at {MAX_ENTRIES} entries)"
                );
                return Err(Full);
            }
            self.left -= 1;
            let is_last = Some(position) == last && stopped.is_none();
            let (mark, deeper) = if is_last {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            let name = branch.name.to_string_lossy();
            let path = directory.join(&branch.name);
            if branch.kind == EntryKind::Directory {
                let _ = write!(self.text, "\n{indent}{mark}{name}/");
                if depth > 1 {
                    self.draw(&path, &format!("{indent}{deeper}"), depth - 1)?;
                }
            } else {
                let _ = write!(self.text, "\n{indent}{mark}{name}{}", self.size(&path));
            }
        }
        match stopped {
            Some(reason) => {
                let _ = write!(self.text, "\n{indent}... ({reason})");
                Err(Full)
            }
            None => Ok(()),
        }
    }

    /// Directories, then files, each by lower-cased name. Links are left out.
    fn branches(&mut self, directory: &Path) -> Result<(Vec<Entry>, Option<Stopped>), PathError> {
        let entries = entries::of_directory(self.world, directory, &mut self.effort)?;
        let mut branches = entries.found;
        branches.retain(|entry| match entry.kind {
            EntryKind::Directory => true,
            EntryKind::File => self.include_files,
            EntryKind::Link | EntryKind::Special => false,
        });
        branches.sort_by_cached_key(|entry| {
            (
                entry.kind != EntryKind::Directory,
                entry.name.to_string_lossy().to_lowercase(),
            )
        });
        Ok((branches, entries.stopped))
    }

    fn size(&self, path: &Path) -> String {
        if !self.show_size {
            return String::new();
        }
        match self.world.dir.symlink_metadata(path) {
            Ok(metadata) => format!(" ({} bytes)", metadata.len()),
            Err(_) => " (unknown size)".to_owned(),
        }
    }
}
