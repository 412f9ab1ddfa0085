//! What changed between two states of a world.

mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Read};
use std::time::Duration;

use crate::world::{Entry, EntryKind, World, WorldError};

/// What is looked at, and how much may be written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareOptions {
    /// Whether a deleted and a created file of the same content are one renamed file. Default `true`.
    pub renames: bool,
    /// Whether changes get a unified diff. Default `true`.
    pub text: bool,
    /// Lines around a change. Default 3.
    pub context_lines: usize,
    /// Bytes of one side above which there is no diff. Default 1 MiB.
    pub max_text_bytes: u64,
    /// Bytes of all diffs together. Default 16 MiB.
    pub max_diff_bytes: usize,
    /// Time for one diff; when it is over, the diff becomes coarser but stays right. Default 5 s.
    pub max_diff_time: Duration,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            renames: true,
            text: true,
            context_lines: 3,
            max_text_bytes: 1 << 20,
            max_diff_bytes: 16 << 20,
            max_diff_time: Duration::from_secs(5),
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
    /// Why there is no diff, or what else is to be said.
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
            .extend(renames(before, &mut deleted, after, &mut created)?);
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
            if !same_content(before, old, after, new)? {
                return Ok(Some((ChangeKind::Modified, None)));
            }
            Ok(match (old.mode(), new.mode()) {
                (Some(old), Some(new)) if (old ^ new) & 0o100 != 0 => Some((
                    ChangeKind::Metadata,
                    Some(format!("mode {old:04o} → {new:04o}")),
                )),
                _ => None,
            })
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

/// By size and checksum where both are known, else byte by byte.
fn same_content(
    before: &World,
    old: &Entry,
    after: &World,
    new: &Entry,
) -> Result<bool, WorldError> {
    if old.size() != new.size() {
        return Ok(false);
    }
    if let (Some(old), Some(new)) = (old.checksum(), new.checksum()) {
        return Ok(old == new);
    }
    let read_error = |source| WorldError::Content {
        path: new.path().to_owned(),
        source,
    };
    same_bytes(&mut before.reader(old)?, &mut after.reader(new)?).map_err(read_error)
}

fn same_bytes(old: &mut impl Read, new: &mut impl Read) -> io::Result<bool> {
    let (mut ours, mut theirs) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let count = fill(old, &mut ours)?;
        if count != fill(new, &mut theirs)? || ours[..count] != theirs[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the stream ends.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Pairs deleted with created files of the same content and takes them out of both lists. Among
/// several candidates one of the same file name is preferred, then the order of the paths decides.
/// Empty files are all alike and are not paired.
fn renames(
    before: &World,
    deleted: &mut Vec<&Entry>,
    after: &World,
    created: &mut Vec<&Entry>,
) -> Result<Vec<Change>, WorldError> {
    let is_candidate = |entry: &&Entry| entry.is_file() && entry.size() > 0;
    let mut by_size: HashMap<u64, Vec<&Entry>> = HashMap::new();
    for entry in created.iter().copied().filter(is_candidate) {
        by_size.entry(entry.size()).or_default().push(entry);
    }
    let mut renamed = Vec::new();
    let mut left = Vec::new();
    let mut taken = HashSet::new();
    for old in deleted.drain(..) {
        let found = match by_size.get_mut(&old.size()).filter(|_| is_candidate(&old)) {
            Some(candidates) => take_same(before, old, after, candidates)?,
            None => None,
        };
        let Some(new) = found else {
            left.push(old);
            continue;
        };
        taken.insert(new.raw_path());
        renamed.push(Change {
            kind: ChangeKind::Renamed,
            path: new.path().to_owned(),
            old_path: Some(old.path().to_owned()),
            before: Some(old.clone()),
            after: Some(new.clone()),
            text_diff: None,
            note: None,
        });
    }
    *deleted = left;
    created.retain(|entry| !taken.contains(entry.raw_path()));
    Ok(renamed)
}

/// Takes the best candidate of the same content as `old` out of `candidates`.
fn take_same<'e>(
    before: &World,
    old: &Entry,
    after: &World,
    candidates: &mut Vec<&'e Entry>,
) -> Result<Option<&'e Entry>, WorldError> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|index| file_name(candidates[*index]) != file_name(old));
    for index in order {
        if before.checksum_of(old)? == after.checksum_of(candidates[index])? {
            return Ok(Some(candidates.remove(index)));
        }
    }
    Ok(None)
}

fn file_name(entry: &Entry) -> &[u8] {
    entry
        .raw_path()
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default()
}
