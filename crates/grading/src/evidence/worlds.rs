//! Reading the worlds.

use std::path::Path;

use extract::Document;
use snapshot::{Entry, World};

use super::visible::display_path;
use crate::error::EvalError;
use crate::input::EvidenceLimits;

/// A file of the final world.
#[derive(Debug, Clone)]
pub struct FinalFile {
    /// The path in the snapshot, `filesystem/…` or `.apps_data/…`.
    pub path: String,
    /// Its text; empty where it has none.
    pub text: String,
    /// Why the text is empty or cut, where something went wrong.
    pub problem: Option<String>,
}

/// Opens a world.
pub(super) fn open(what: &str, path: &Path) -> Result<World, EvalError> {
    World::open(path)
        .map_err(|error| EvalError::helper(format!("the {what} world cannot be opened: {error}")))
}

/// The text of the files of the world at `path` whose display path `wanted` accepts.
pub(super) fn files(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
    limits: &EvidenceLimits,
) -> Result<Vec<FinalFile>, EvalError> {
    let world = open("final", path)?;
    let mut left = limits.total_text_bytes;
    let mut files = Vec::new();
    for entry in world.entries().iter().filter(|entry| entry.is_file()) {
        let Some(display) = display_path(entry.path()) else {
            continue;
        };
        if !wanted(&display) {
            continue;
        }
        let mut file = FinalFile {
            path: entry.path().to_owned(),
            text: String::new(),
            problem: None,
        };
        match document(&world, entry, limits) {
            Ok(document) if document.text.len() > left => {
                file.problem = Some(format!(
                    "the files hold more than {} bytes of text (limit `total_text_bytes`)",
                    limits.total_text_bytes
                ));
            }
            Ok(document) => {
                left -= document.text.len();
                file.text = document.text;
            }
            Err(problem) => file.problem = Some(problem),
        }
        files.push(file);
    }
    Ok(files)
}

/// What is in one file of `world`.
pub(super) fn document(
    world: &World,
    entry: &Entry,
    limits: &EvidenceLimits,
) -> Result<Document, String> {
    let bytes = world
        .read_entry(entry, limits.file_bytes)
        .map_err(|error| error.to_string())?;
    extract::extract(entry.path(), &bytes, &limits.extract).map_err(|error| error.to_string())
}
