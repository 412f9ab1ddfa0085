//! `list_files` (§2.3).

use std::{fmt::Write, path::Path};

use rmcp::model::JsonObject;
use serde::Deserialize;

use super::{
    entries::{self, Entry, EntryKind},
    media,
};
use crate::{
    root::{PathError, World},
    tools::{Call, Output, ToolError, parse},
};

#[derive(Deserialize)]
struct Arguments {
    path: String,
}

pub(crate) fn run(call: &Call<'_>, arguments: JsonObject) -> Result<Output, ToolError> {
    let Arguments { path } = parse(arguments)?;
    let text = listing(call, &path).unwrap_or_else(|error| error.bracketed(&path) + "\n");
    Ok(Output::Text(text))
}

fn listing(call: &Call<'_>, path: &str) -> Result<String, PathError> {
    let world = call.root.open()?;
    let directory = world.directory(path)?;
    let mut effort = call.effort();
    let entries = entries::of_directory(&world, &directory, &mut effort)?;
    let limit = call.limits.max_listed_entries;
    let mut text = String::new();
    let mut shown = 0;
    for entry in &entries.found {
        let Some(description) = described(&world, &directory, entry) else {
            continue;
        };
        if shown == limit {
            let _ = writeln!(text, "... (truncated at {limit} entries)");
            return Ok(text);
        }
        shown += 1;
        let _ = writeln!(text, "'{}' {description}", entry.name.to_string_lossy());
    }
    if let Some(reason) = entries.stopped {
        let _ = writeln!(text, "... ({reason})");
    } else if text.is_empty() && (path.is_empty() || path == "/") {
        text.push_str(
            "Directory is empty. There are no files in this world, or none at its top level.",
        );
    } else if text.is_empty() {
        let _ = write!(text, "No items found in '{path}'");
    }
    Ok(text)
}

/// What an entry is, in words; nothing for what is left out.
fn described(world: &World<'_>, directory: &Path, entry: &Entry) -> Option<String> {
    let relative = directory.join(&entry.name);
    let metadata = match entry.kind {
        EntryKind::Directory => return Some("(folder)".to_owned()),
        EntryKind::Special => return None,
        EntryKind::File => world
            .dir
            .symlink_metadata(&relative)
            .map_err(PathError::from),
        EntryKind::Link => match world.locate_entry(directory, &entry.name) {
            Ok(place) => place.metadata.ok_or(PathError::Missing),
            Err(error) => Err(error),
        },
    };
    match metadata {
        Ok(metadata) if metadata.is_dir() => Some("(folder)".to_owned()),
        Ok(metadata) if metadata.is_file() => {
            let media_type = media::guessed(Path::new(&entry.name)).unwrap_or("unknown");
            Some(format!("({media_type} file) {} bytes", metadata.len()))
        }
        // The reference tells the size of a target outside; here nothing outside is looked at.
        Err(PathError::Outside) => Some("(link that leads outside)".to_owned()),
        Err(PathError::Denied) => Some("(permission denied)".to_owned()),
        Ok(_) | Err(_) => None,
    }
}
