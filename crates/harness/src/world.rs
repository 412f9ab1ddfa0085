//! Comparing two states of a world, as a document.

mod inside;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use formats::diff::{ChangeKind, FORMAT_VERSION, FileChange, WorldDiff};
use snapshot::{CompareOptions, World, WorldError};

use self::inside::{Inside, Previews};
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

/// Time for looking inside of changed files, of one pair of worlds. What is left then is listed
/// without its rows.
const INSIDE_TIME: Duration = Duration::from_secs(60);

/// What changed between the worlds at `before` and `after`: archives or folders.
///
/// Reads both worlds and blocks meanwhile.
///
/// # Errors
/// [`WorldError`] naming the archive and what is wrong with it.
pub fn compare(before: &Path, after: &Path) -> Result<WorldDiff, WorldError> {
    let (before, after) = World::open_both(before, after);
    let (before, after) = (before?, after?);
    let diff = snapshot::compare(&before, &after, &CompareOptions::default())?;
    let changed: HashSet<String> = diff.changes.iter().map(|c| c.path.clone()).collect();
    let deadline = Instant::now() + INSIDE_TIME;
    let mut previews = Previews::new();
    Ok(WorldDiff {
        format_version: FORMAT_VERSION,
        files_before: diff.files_before,
        files_after: diff.files_after,
        unchanged: diff.unchanged,
        changes: diff
            .changes
            .into_iter()
            .map(|change| {
                let inside = if Instant::now() < deadline {
                    inside::look(&before, &after, &change, &changed, &mut previews)
                } else {
                    Inside::left_out()
                };
                file_change(change, inside)
            })
            .collect(),
    })
}

fn file_change(change: snapshot::Change, inside: Inside) -> FileChange {
    let (old_size, new_size) = (change.old_size(), change.new_size());
    // Where rows are shown, nobody needs to hear that there is no text diff.
    let shown = inside.shows_something();
    let of_content = inside.note.or(change.text_note.filter(|_| !shown));
    let notes: Vec<String> = [change.note, of_content].into_iter().flatten().collect();
    FileChange {
        kind: match change.kind {
            snapshot::ChangeKind::Created => ChangeKind::Created,
            snapshot::ChangeKind::Deleted => ChangeKind::Deleted,
            snapshot::ChangeKind::Renamed => ChangeKind::Renamed,
            snapshot::ChangeKind::Metadata => ChangeKind::Metadata,
            // The list is open; what is new to us is a modification at least.
            _ => ChangeKind::Modified,
        },
        old_size,
        new_size,
        path: change.path,
        old_path: change.old_path,
        text_diff: inside.text_diff.or(change.text_diff),
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        tables: inside.tables,
        members: inside.members,
        old_picture: inside.old_picture,
        new_picture: inside.new_picture,
    }
}
