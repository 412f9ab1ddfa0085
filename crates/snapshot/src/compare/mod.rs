//! What changed between two states of a world.

mod content;
mod lines;
mod renames;
mod text;
mod unified;

use std::collections::BTreeMap;
use std::time::Duration;

use self::content::same_content;
use crate::world::{Entry, EntryKind, World, WorldError};

pub use self::unified::{DiffLimits, UnifiedDiff, unified_diff};

/// What is looked at, and how much may be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareOptions {
    /// Whether a deleted and a created file of the same content are one renamed file. Default `true`.
    pub renames: bool,
    /// Whether changes get a unified diff. Default `true`.
    pub text: bool,
    /// What one diff may cost and how much of it is shown.
    pub diff: DiffLimits,
    /// Bytes of one side above which there is no diff. Default 256 MiB: a text is read as a stream
    /// and takes 8 bytes for each line.
    pub max_text_bytes: u64,
    /// Bytes of all diffs together. Default 8 MiB.
    pub max_diff_bytes: usize,
    /// Time for all diffs together; texts that come later have none. Default 60 s.
    pub max_text_time: Duration,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            renames: true,
            text: true,
            diff: DiffLimits::default(),
            max_text_bytes: 256 << 20,
            max_diff_bytes: 8 << 20,
            max_text_time: Duration::from_secs(60),
        }
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Only in the second state.
    Created,
    /// In both, with other content.
    Modified,
    /// Only in the first state.
    Deleted,
    /// The same content under another path.
    Renamed,
    /// The same content, but executable or not, or a link with another target.
    Metadata,
}

/// One difference.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The path; of a renamed file the new one.
    pub path: String,
    /// The former path of a renamed file.
    pub old_path: Option<String>,
    /// The entry of the first state, to be read from that world.
    pub before: Option<Entry>,
    /// The entry of the second state, to be read from that world.
    pub after: Option<Entry>,
    /// A unified diff, where both sides are text of bounded size.
    pub text_diff: Option<String>,
    /// Why there is no diff, or what was left out of it.
    pub text_note: Option<String>,
    /// What else is to be said: another mode, another target of a link.
    pub note: Option<String>,
}

impl Change {
    /// Bytes before.
    #[must_use]
    pub fn old_size(&self) -> Option<u64> {
        self.before.as_ref().map(Entry::size)
    }

    /// Bytes after.
    #[must_use]
    pub fn new_size(&self) -> Option<u64> {
        self.after.as_ref().map(Entry::size)
    }
}

/// The difference of two states.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Diff {
    /// Files in the first state, links that stay links included.
    pub files_before: usize,
    /// Files in the second state.
    pub files_after: usize,
    /// Files in both, and equal.
    pub unchanged: usize,
    /// Every difference, in the order of the paths.
    pub changes: Vec<Change>,
}

impl Diff {
    /// How many changes are of `kind`.
    #[must_use]
    pub fn count(&self, kind: ChangeKind) -> usize {
        self.changes
            .iter()
            .filter(|change| change.kind == kind)
            .count()
    }
}

/// Compares two states of a world by path and content. Directories do not count; a link to a file
/// of the world is that file. Permissions count as far as a file is executable by its owner or not,
/// since unpacking normalises the rest.
///
/// # Errors
/// When content that must be looked at cannot be read.
pub fn compare(
    before: &World,
    after: &World,
    options: &CompareOptions,
) -> Result<Diff, WorldError> {
    let old = files(before);
    let new = files(after);
    let mut diff = Diff {
        files_before: old.len(),
        files_after: new.len(),
        ..Diff::default()
    };
    let mut deleted = Vec::new();
    for (path, entry) in &old {
        match new.get(path) {
            None => deleted.push(*entry),
            Some(now) => match changed(before, entry, after, now)? {
                Some((kind, note)) => diff.changes.push(Change {
                    kind,
                    path: now.path().to_owned(),
                    old_path: None,
                    before: Some((*entry).clone()),
                    after: Some((*now).clone()),
                    text_diff: None,
                    text_note: None,
                    note,
                }),
                None => diff.unchanged += 1,
            },
        }
    }
    let mut created: Vec<&Entry> = new
        .iter()
        .filter(|(path, _)| !old.contains_key(*path))
        .map(|(_, entry)| *entry)
        .collect();
    if options.renames {
        diff.changes
            .extend(renames::take(before, &mut deleted, after, &mut created)?);
    }
    diff.changes.extend(
        deleted
            .into_iter()
            .map(|entry| lone(ChangeKind::Deleted, entry)),
    );
    diff.changes.extend(
        created
            .into_iter()
            .map(|entry| lone(ChangeKind::Created, entry)),
    );
    diff.changes.sort_by(|a, b| a.path.cmp(&b.path));
    if options.text {
        text::add_diffs(&mut diff.changes, before, after, options)?;
    }
    Ok(diff)
}

fn files(world: &World) -> BTreeMap<&[u8], &Entry> {
    world
        .entries()
        .iter()
        .filter(|entry| entry.kind() != EntryKind::Directory)
        .map(|entry| (entry.raw_path(), entry))
        .collect()
}

fn lone(kind: ChangeKind, entry: &Entry) -> Change {
    let (before, after) = match kind {
        ChangeKind::Deleted => (Some(entry.clone()), None),
        _ => (None, Some(entry.clone())),
    };
    Change {
        kind,
        path: entry.path().to_owned(),
        old_path: None,
        before,
        after,
        text_diff: None,
        text_note: None,
        note: entry
            .link_target()
            .filter(|_| entry.kind() == EntryKind::Symlink)
            .map(|target| format!("link to {target}")),
    }
}

/// How two entries of one path differ, with a note.
fn changed(
    before: &World,
    old: &Entry,
    after: &World,
    new: &Entry,
) -> Result<Option<(ChangeKind, Option<String>)>, WorldError> {
    match (old.is_file(), new.is_file()) {
        (true, true) => {
            let mode = mode_note(old, new);
            if !same_content(before, old, after, new)? {
                return Ok(Some((ChangeKind::Modified, mode)));
            }
            // A link that became a copy of its file is what packing makes of it.
            let link = match (old.link_target(), new.link_target()) {
                (Some(old), Some(new)) if old != new => Some(format!("link to {old} → {new}")),
                _ => None,
            };
            let notes: Vec<String> = [mode, link].into_iter().flatten().collect();
            Ok((!notes.is_empty()).then(|| (ChangeKind::Metadata, Some(notes.join("; ")))))
        }
        (false, false) if old.link_target() == new.link_target() => Ok(None),
        (false, false) => {
            let (old, new) = (old.link_target(), new.link_target());
            let note = format!("link to {} → {}", old.unwrap_or("?"), new.unwrap_or("?"));
            Ok(Some((ChangeKind::Metadata, Some(note))))
        }
        (true, false) => Ok(Some((
            ChangeKind::Modified,
            Some(format!(
                "a file became a link to {}",
                new.link_target().unwrap_or("?")
            )),
        ))),
        (false, true) => Ok(Some((
            ChangeKind::Modified,
            Some("a link became a file".to_owned()),
        ))),
    }
}

/// A note where one of two files is executable by its owner and the other is not.
fn mode_note(old: &Entry, new: &Entry) -> Option<String> {
    match (old.mode(), new.mode()) {
        (Some(old), Some(new)) if (old ^ new) & 0o100 != 0 => {
            Some(format!("mode {old:04o} → {new:04o}"))
        }
        _ => None,
    }
}
