//! Files that were only moved.

use std::collections::{HashMap, HashSet};

use super::content::same_content;
use super::{Change, ChangeKind};
use crate::world::{Entry, World, WorldError};

/// Created files of one size and checksum.
type Candidates<'e> = HashMap<(u64, u32), Vec<&'e Entry>>;

/// Pairs deleted with created files of the same content and takes them out of both lists. Among
/// several candidates one of the same file name is preferred, then the order of the paths decides.
/// Empty files are all alike and are not paired.
///
/// Only files that have a counterpart of their size are read, and each at most once for its
/// checksum, so that a thousand moved files cost a thousand readings and not a million.
pub(super) fn take(
    before: &World,
    deleted: &mut Vec<&Entry>,
    after: &World,
    created: &mut Vec<&Entry>,
) -> Result<Vec<Change>, WorldError> {
    let is_candidate = |entry: &Entry| entry.is_file() && entry.size() > 0;
    let sizes = |entries: &[&Entry]| -> HashSet<u64> {
        let of = entries.iter().filter(|entry| is_candidate(entry));
        of.map(|entry| entry.size()).collect()
    };
    let (old_sizes, new_sizes) = (sizes(deleted), sizes(created));
    let mut candidates = Candidates::new();
    for entry in created.iter().copied() {
        if is_candidate(entry) && old_sizes.contains(&entry.size()) {
            let key = (entry.size(), after.checksum_of(entry)?);
            candidates.entry(key).or_default().push(entry);
        }
    }
    let mut renamed = Vec::new();
    let mut left = Vec::new();
    let mut taken = HashSet::new();
    // Same names first, so that no other file takes the place of one.
    let mut waiting = Vec::new();
    for old in deleted.drain(..) {
        if !is_candidate(old) || !new_sizes.contains(&old.size()) {
            left.push(old);
            continue;
        }
        let key = (old.size(), before.checksum_of(old)?);
        match pick(before, old, after, candidates.get_mut(&key), true)? {
            Some(new) => renamed.push((old, new)),
            None => waiting.push((key, old)),
        }
    }
    for (key, old) in waiting {
        match pick(before, old, after, candidates.get_mut(&key), false)? {
            Some(new) => renamed.push((old, new)),
            None => left.push(old),
        }
    }
    taken.extend(renamed.iter().map(|(_, new)| new.raw_path()));
    created.retain(|entry| !taken.contains(entry.raw_path()));
    *deleted = left;
    Ok(renamed
        .into_iter()
        .map(|(old, new)| change(old, new))
        .collect())
}

/// Takes the first candidate that has the content of `old`, and its name where `same_name` asks so.
fn pick<'e>(
    before: &World,
    old: &Entry,
    after: &World,
    candidates: Option<&mut Vec<&'e Entry>>,
    same_name: bool,
) -> Result<Option<&'e Entry>, WorldError> {
    let Some(candidates) = candidates else {
        return Ok(None);
    };
    for at in 0..candidates.len() {
        let new = candidates[at];
        if same_name && file_name(new) != file_name(old) {
            continue;
        }
        // Where a checksum had to be made, the content itself is at hand and decides.
        if same_content(before, old, after, new)? {
            return Ok(Some(candidates.remove(at)));
        }
    }
    Ok(None)
}

fn change(old: &Entry, new: &Entry) -> Change {
    Change {
        kind: ChangeKind::Renamed,
        path: new.path().to_owned(),
        old_path: Some(old.path().to_owned()),
        before: Some(old.clone()),
        after: Some(new.clone()),
        text_diff: None,
        text_note: None,
        note: super::mode_note(old, new),
    }
}

fn file_name(entry: &Entry) -> &[u8] {
    entry
        .raw_path()
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default()
}
