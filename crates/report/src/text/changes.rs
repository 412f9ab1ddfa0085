//! What changed in the world.

use formats::diff::{ChangeKind, FileChange, WorldDiff};

use super::{Colour, Style};
use crate::excerpt::{Bounds, excerpt, one_line};
use crate::figures::bytes;
use crate::inside;

/// Changes that are listed.
const FILES: usize = 40;

/// Text diffs that are shown.
const DIFFS: usize = 8;

/// How much of one text diff is shown.
const DIFF: Bounds = Bounds {
    lines: 12,
    characters: 2000,
};

/// How much of the rows and members of one file is shown.
const INSIDE: Bounds = Bounds {
    lines: 40,
    characters: 8000,
};

/// The mark and the word of a kind of change.
pub(crate) const fn mark(kind: ChangeKind) -> (char, &'static str) {
    match kind {
        ChangeKind::Created => ('+', "created"),
        ChangeKind::Deleted => ('-', "deleted"),
        ChangeKind::Renamed => ('>', "renamed"),
        ChangeKind::Metadata => ('·', "metadata"),
        _ => ('~', "modified"),
    }
}

/// `2 created, 1 deleted, 5 unchanged`.
pub(crate) fn totals(diff: &WorldDiff) -> String {
    let kinds = [
        ChangeKind::Created,
        ChangeKind::Modified,
        ChangeKind::Deleted,
        ChangeKind::Renamed,
        ChangeKind::Metadata,
    ];
    let mut parts: Vec<String> = kinds
        .into_iter()
        .map(|kind| (diff.count(kind), kind))
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{count} {}", mark(kind).1))
        .collect();
    if parts.is_empty() {
        parts.push("nothing changed".to_owned());
    }
    parts.push(format!("{} unchanged", diff.unchanged));
    parts.join(", ")
}

/// `1.2 kB`, or `310 B → 322 B`.
pub(crate) fn sizes(change: &FileChange) -> String {
    match (change.old_size, change.new_size) {
        (Some(old), Some(new)) if old != new => format!("{} → {}", bytes(old), bytes(new)),
        (_, Some(size)) | (Some(size), None) => bytes(size),
        (None, None) => String::new(),
    }
}

/// The path, with the former one of a renamed file.
pub(crate) fn path(change: &FileChange, columns: usize) -> String {
    let path = one_line(&change.path, columns);
    match &change.old_path {
        Some(old) => format!("{} → {path}", one_line(old, columns)),
        None => path,
    }
}

/// What changed between two states of a world.
#[must_use]
pub fn diff(diff: &WorldDiff, style: Style) -> String {
    let mut text = lines(diff, style).join("\n");
    text.push('\n');
    text
}

/// The section's lines.
pub(super) fn lines(diff: &WorldDiff, style: Style) -> Vec<String> {
    let mut lines = vec![format!(
        "{}  {}",
        style.paint(Colour::Bold, "World"),
        totals(diff)
    )];
    let mut diffs = 0;
    for change in diff.changes.iter().take(FILES) {
        let (mark, _) = mark(change.kind);
        let colour = match change.kind {
            ChangeKind::Created => Colour::Green,
            ChangeKind::Deleted => Colour::Red,
            _ => Colour::Yellow,
        };
        let mark = style.paint(colour, &mark.to_string());
        let path = path(change, style.width.saturating_sub(30).max(30));
        let mut line = format!(
            "  {mark} {path}  {}",
            style.paint(Colour::Dim, &sizes(change))
        );
        if let Some(note) = &change.note {
            line.push_str(&format!("  ({})", one_line(note, 60)));
        }
        lines.push(line.trim_end().to_owned());
        if diffs == DIFFS {
            continue;
        }
        // Rows say more than lines do.
        let inside = inside::lines(change).join("\n");
        if !inside.is_empty() {
            diffs += 1;
            lines.extend(diff_lines(&inside, INSIDE, style));
        } else if let Some(text) = &change.text_diff {
            diffs += 1;
            lines.extend(diff_lines(without_header(text), DIFF, style));
        }
    }
    if diff.changes.len() > FILES {
        lines.push(format!("  … and {} more", diff.changes.len() - FILES));
    }
    lines
}

/// Lines of a diff, coloured by their first character.
fn diff_lines(text: &str, bounds: Bounds, style: Style) -> Vec<String> {
    let columns = style.width.saturating_sub(6).max(30);
    excerpt(text, bounds)
        .lines()
        .map(|line| {
            // Indentation is part of a diff, so lines are cut here and not joined.
            let shown: String = line.chars().take(columns).collect();
            let shown = match line.chars().next() {
                Some('+') => style.paint(Colour::Green, &shown),
                Some('-') => style.paint(Colour::Red, &shown),
                Some('~') => style.paint(Colour::Yellow, &shown),
                _ => style.paint(Colour::Dim, &shown),
            };
            format!("      {shown}")
        })
        .collect()
}

/// A unified diff from its first hunk on.
pub(crate) fn without_header(diff: &str) -> &str {
    match diff.find("@@") {
        Some(at)
            if diff[..at]
                .lines()
                .all(|line| line.starts_with("--- ") || line.starts_with("+++ ")) =>
        {
            &diff[at..]
        }
        _ => diff,
    }
}
