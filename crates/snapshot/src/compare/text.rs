//! Unified diffs of text files.

use similar::{Algorithm, TextDiff};

use super::{Change, ChangeKind, CompareOptions};
use crate::world::{Entry, World, WorldError};

/// How far into a file a NUL byte makes it binary.
const BINARY_WINDOW: usize = 8 * 1024;

/// Gives each change of content its diff, or a note why it has none.
pub(super) fn add_diffs(
    changes: &mut [Change],
    before: &World,
    after: &World,
    options: &CompareOptions,
) -> Result<(), WorldError> {
    let mut room = options.max_diff_bytes;
    for change in changes {
        let content_changed = matches!(
            change.kind,
            ChangeKind::Created | ChangeKind::Modified | ChangeKind::Deleted
        );
        if !content_changed || change.note.is_some() {
            continue;
        }
        let old = text(before, change.before.as_ref(), options)?;
        let new = text(after, change.after.as_ref(), options)?;
        let (old, new) = match (old, new) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(note), _) | (_, Err(note)) => {
                change.note = Some(note);
                continue;
            }
        };
        let unified = unified(&change.path, &old, &new, options);
        match room.checked_sub(unified.len()) {
            Some(left) => {
                room = left;
                change.text_diff = Some(unified);
            }
            None => {
                change.note = Some(format!(
                    "the diffs together are larger than {} bytes",
                    options.max_diff_bytes
                ));
            }
        }
    }
    Ok(())
}

/// The text of one side (empty where the file does not exist), or why it has none.
fn text(
    world: &World,
    entry: Option<&Entry>,
    options: &CompareOptions,
) -> Result<Result<String, String>, WorldError> {
    let Some(entry) = entry else {
        return Ok(Ok(String::new()));
    };
    if entry.size() > options.max_text_bytes {
        return Ok(Err(format!(
            "no diff: {} bytes, allowed are {}",
            entry.size(),
            options.max_text_bytes
        )));
    }
    let content = match world.read_entry(entry, options.max_text_bytes) {
        // A live file that grew since it was listed.
        Err(WorldError::TooLarge { size, allowed, .. }) => {
            return Ok(Err(format!("no diff: {size} bytes, allowed are {allowed}")));
        }
        content => content?,
    };
    let binary = || "binary".to_owned();
    if content[..content.len().min(BINARY_WINDOW)].contains(&0) {
        return Ok(Err(binary()));
    }
    Ok(String::from_utf8(content).map_err(|_| binary()))
}

fn unified(path: &str, old: &str, new: &str, options: &CompareOptions) -> String {
    let mut config = TextDiff::configure();
    config
        .algorithm(Algorithm::Myers)
        .timeout(options.max_diff_time);
    let diff = config.diff_lines(old, new);
    diff.unified_diff()
        .context_radius(options.context_lines)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string()
}
