//! `search_files` (§2.6).

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{
    Pattern,
    entries::{self, EntryKind},
    require_path,
};
use crate::{
    root::{PathError, World},
    tools::{Call, Effort, Output, ToolError, parse},
};

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: String,
    recursive: bool,
    max_results: i64,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let arguments: Arguments = parse(arguments)?;
    if arguments.pattern.is_empty() {
        return Err(ToolError::failed(
            "Pattern is required and must be a string",
        ));
    }
    require_path(&arguments.path)?;
    let text = report(call, &arguments).unwrap_or_else(|error| error.bracketed(&arguments.path));
    Ok(Output::Text(text))
}

fn report(call: &Call<'_>, arguments: &Arguments) -> Result<String, PathError> {
    let world = call.root.open()?;
    let start = world.directory(&arguments.path)?;
    let most = call.limits.max_listed_entries;
    let limit = match usize::try_from(arguments.max_results) {
        Ok(wanted) if wanted > 0 => wanted.min(most),
        _ => most,
    };
    let mut search = Search {
        world: &world,
        pattern: Pattern::new(&arguments.pattern),
        recursive: arguments.recursive,
        limit,
        max_depth: call.limits.max_search_depth,
        effort: call.effort(),
        found: Vec::new(),
        notes: Vec::new(),
    };
    search.walk(start)?;

    let Search { found, notes, .. } = search;
    let Arguments { pattern, path, .. } = arguments;
    let mut text = if found.is_empty() {
        format!("No files matching '{pattern}' found in {path}")
    } else {
        format!(
            "Found {} file(s) matching '{pattern}':\n{}",
            found.len(),
            found.join("\n")
        )
    };
    if found.is_empty() && path == "/" {
        text.push_str(
            ". The sandbox root may not contain files at the top level. Look at its folders with list_files or \
             get_directory_tree.",
        );
    }
    for note in notes {
        let _ = write!(text, "\n\n({note})");
    }
    Ok(text)
}

struct Search<'a> {
    world: &'a World<'a>,
    pattern: Pattern,
    recursive: bool,
    limit: usize,
    max_depth: usize,
    effort: Effort,
    found: Vec<String>,
    /// What the reader must know about the completeness of the result.
    notes: Vec<String>,
}

impl Search<'_> {
    /// Depth first, the files of a directory before its subdirectories. Linked directories are not entered.
    fn walk(&mut self, start: PathBuf) -> Result<(), PathError> {
        let mut unreadable = 0_usize;
        let mut too_deep = false;
        let mut pending = vec![(start, 0_usize)];
        let mut first = true;
        while let Some((directory, depth)) = pending.pop() {
            let entries = match entries::of_directory(self.world, &directory, &mut self.effort) {
                Ok(entries) => entries,
                Err(error) if first => return Err(error),
                Err(_) => {
                    unreadable += 1;
                    continue;
                }
            };
            first = false;
            let mut deeper = Vec::new();
            for entry in entries.found {
                if entry.kind == EntryKind::Directory {
                    deeper.push((directory.join(entry.name), depth + 1));
                } else if let Some(path) = self.matched(&directory, &entry) {
                    self.found.push(path);
                    if self.found.len() >= self.limit {
                        self.notes
                            .push(format!("Results limited to {}", self.limit));
                        return Ok(());
                    }
                }
            }
            if let Some(reason) = entries.stopped {
                self.notes.push(format!("Search {reason}"));
                return Ok(());
            }
            if !self.recursive {
                break;
            }
            if depth < self.max_depth {
                pending.extend(deeper.into_iter().rev());
            } else {
                too_deep |= !deeper.is_empty();
            }
        }
        if unreadable > 0 {
            self.notes
                .push(format!("{unreadable} folder(s) could not be read"));
        }
        if too_deep {
            self.notes.push(format!(
                "Folders more than {} levels down were not searched",
                self.max_depth
            ));
        }
        Ok(())
    }

    /// The path to show for an entry that matches: that of the file itself, also for a link to it.
    fn matched(&self, directory: &Path, entry: &entries::Entry) -> Option<String> {
        if !self.pattern.matches(&entry.name.to_string_lossy()) {
            return None;
        }
        match entry.kind {
            EntryKind::File => Some(self.world.root.shown(&directory.join(&entry.name))),
            EntryKind::Link => {
                let place = self.world.locate_entry(directory, &entry.name).ok()?;
                let counts = match place.metadata {
                    Some(target) => target.is_file(),
                    None => self.recursive,
                };
                counts.then(|| self.world.root.shown(&place.relative))
            }
            EntryKind::Directory | EntryKind::Special => None,
        }
    }
}
