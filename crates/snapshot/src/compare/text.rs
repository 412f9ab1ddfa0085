//! Which changes get a unified diff.

use std::io;
use std::time::Instant;

use super::unified::{DiffLimits, UnifiedDiff, unified_diff};
use super::{Change, ChangeKind, CompareOptions};
use crate::world::{Entry, EntryReader, World, WorldError};

/// Gives each change of content its diff, or a note why it has none.
pub(super) fn add_diffs(
    changes: &mut [Change],
    before: &World,
    after: &World,
    options: &CompareOptions,
) -> Result<(), WorldError> {
    let mut room = options.max_diff_bytes;
    let deadline = Instant::now() + options.max_text_time;
    for change in changes {
        if !has_content_to_show(change) {
            continue;
        }
        if Instant::now() >= deadline {
            change.text_note = Some(format!(
                "no diff: the time for texts is over ({} s, limit `max_text_time`)",
                options.max_text_time.as_secs()
            ));
            continue;
        }
        if let Some(note) = too_large(change, options) {
            change.text_note = Some(note);
            continue;
        }
        let limits = DiffLimits {
            max_bytes: options.diff.max_bytes.min(room),
            ..options.diff.clone()
        };
        match diff_of(change, before, after, &limits)? {
            None => change.text_note = Some("binary".to_owned()),
            // What is cut because the others took the room would look like a small change.
            Some(diff) if diff.cut && limits.max_bytes < options.diff.max_bytes => {
                change.text_note = Some(format!(
                    "the diffs together are larger than {} bytes",
                    options.max_diff_bytes
                ));
            }
            Some(diff) => {
                room -= diff.text.len();
                change.text_diff = Some(diff.text).filter(|text| !text.is_empty());
                change.text_note = (!diff.notes.is_empty()).then(|| diff.notes.join("; "));
            }
        }
    }
    Ok(())
}

/// Links have no text; of a file that became a link, the note tells.
fn has_content_to_show(change: &Change) -> bool {
    let files = [&change.before, &change.after];
    let is_content = matches!(
        change.kind,
        ChangeKind::Created | ChangeKind::Modified | ChangeKind::Deleted
    );
    is_content && files.into_iter().flatten().all(Entry::is_file)
}

fn too_large(change: &Change, options: &CompareOptions) -> Option<String> {
    let allowed = options.max_text_bytes;
    let sizes = [change.old_size(), change.new_size()];
    let size = sizes.into_iter().flatten().find(|size| *size > allowed)?;
    Some(format!("no diff: {size} bytes, allowed are {allowed}"))
}

fn diff_of(
    change: &Change,
    before: &World,
    after: &World,
    limits: &DiffLimits,
) -> Result<Option<UnifiedDiff>, WorldError> {
    let old = || reader(before, change.before.as_ref());
    let new = || reader(after, change.after.as_ref());
    unified_diff(&change.path, old, new, limits).map_err(|source| WorldError::Content {
        path: change.path.clone(),
        source,
    })
}

/// The content of one side; nothing where the file does not exist.
fn reader(world: &World, entry: Option<&Entry>) -> io::Result<EntryReader> {
    match entry {
        Some(entry) => world.reader(entry).map_err(|error| match error {
            WorldError::Content { source, .. } => source,
            other => io::Error::other(other),
        }),
        None => Ok(EntryReader::empty()),
    }
}
