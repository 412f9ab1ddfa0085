//! Comparing two states of a world, as a document.

use std::path::{Path, PathBuf};

use formats::diff::{ChangeKind, FORMAT_VERSION, FileChange, WorldDiff};
use snapshot::{CompareOptions, World, WorldError};

use crate::run::RunError;
use crate::task::Task;

/// The world that a task starts from.
#[derive(Debug)]
pub(crate) enum InitialWorld {
    /// An archive of the task folder.
    Given(PathBuf),
    /// The task has none: an empty folder, removed when this is dropped.
    Empty(tempfile::TempDir),
}

impl InitialWorld {
    pub(crate) fn of(task: &Task) -> Result<Self, RunError> {
        match &task.original_snapshot {
            Some(path) => Ok(Self::Given(path.clone())),
            None => tempfile::tempdir()
                .map(Self::Empty)
                .map_err(|source| RunError::io("make an empty world for", &task.folder, source)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Empty(folder) => folder.path(),
        }
    }
}

/// What changed between the worlds at `before` and `after`: archives or folders.
///
/// Reads both worlds and blocks meanwhile.
///
/// # Errors
/// [`WorldError`] naming the archive and what is wrong with it.
pub fn compare(before: &Path, after: &Path) -> Result<WorldDiff, WorldError> {
    let diff = snapshot::compare(
        &World::open(before)?,
        &World::open(after)?,
        &CompareOptions::default(),
    )?;
    Ok(WorldDiff {
        format_version: FORMAT_VERSION,
        files_before: diff.files_before,
        files_after: diff.files_after,
        unchanged: diff.unchanged,
        changes: diff.changes.into_iter().map(file_change).collect(),
    })
}

fn file_change(change: snapshot::Change) -> FileChange {
    FileChange {
        kind: match change.kind {
            snapshot::ChangeKind::Created => ChangeKind::Created,
            snapshot::ChangeKind::Deleted => ChangeKind::Deleted,
            snapshot::ChangeKind::Renamed => ChangeKind::Renamed,
            snapshot::ChangeKind::Metadata => ChangeKind::Metadata,
            // The list is open; what is new to us is a modification at least.
            _ => ChangeKind::Modified,
        },
        old_size: change.old_size(),
        new_size: change.new_size(),
        path: change.path,
        old_path: change.old_path,
        text_diff: change.text_diff,
        note: change.note,
    }
}
