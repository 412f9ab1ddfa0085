//! What changed inside of a file, as lines that begin like those of a diff.

use formats::diff::{ChangeKind, FileChange, PictureFacts, Row, RowChange, TableChange};
use serde_json::Value;

use crate::excerpt::one_line;
use crate::figures::{bytes, count};

/// Rows of one table, or members of one archive, that are shown.
const SHOWN: usize = 20;

/// Columns that one value may take.
const VALUE: usize = 60;

/// A line for each table, row and member that changed; none where nothing is known of the inside.
pub(crate) fn lines(change: &FileChange) -> Vec<String> {
    let mut lines = Vec::new();
    for table in &change.tables {
        table_lines(table, &mut lines);
    }
    for member in change.members.iter().take(SHOWN) {
        let sizes = match (member.old_size, member.new_size) {
            (Some(old), Some(new)) => format!("{} → {}", bytes(old), bytes(new)),
            (Some(size), None) | (None, Some(size)) => bytes(size),
            (None, None) => String::new(),
        };
        let name = one_line(&member.name, 2 * VALUE);
        lines.push(format!("{} {name}  {sizes}", mark(member.kind)));
    }
    more(change.members.len(), "members", &mut lines);
    let old = change.old_picture.as_ref().map(picture);
    let new = change.new_picture.as_ref().map(picture);
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            lines.push(format!("- {old}"));
            lines.push(format!("+ {new}"));
        }
        (_, Some(picture)) => lines.push(format!("  {picture}")),
        (Some(picture), None) => lines.push(format!("- {picture}")),
        (None, None) => {}
    }
    lines
}

fn table_lines(table: &TableChange, lines: &mut Vec<String>) {
    let name = match table.name.as_str() {
        "" => "rows".to_owned(),
        name => one_line(name, VALUE),
    };
    let word = match table.kind {
        ChangeKind::Created => " (new)",
        ChangeKind::Deleted => " (gone)",
        _ => "",
    };
    lines.push(format!(
        "@@ {name}{word}: {} added, {} deleted, {} modified @@",
        count(table.rows_added),
        count(table.rows_deleted),
        count(table.rows_modified)
    ));
    if let Some(error) = &table.error {
        lines.push(format!("  not compared: {}", one_line(error, 2 * VALUE)));
    }
    for (mark, columns) in [('+', &table.columns_added), ('-', &table.columns_removed)] {
        if !columns.is_empty() {
            let columns = one_line(&columns.join(", "), 2 * VALUE);
            lines.push(format!("{mark} columns: {columns}"));
        }
    }
    for note in &table.notes {
        lines.push(format!("  {}", one_line(note, 2 * VALUE)));
    }
    for row in table.rows.iter().take(SHOWN) {
        lines.push(row_line(row, &table.key));
    }
    let all = table.rows_added + table.rows_deleted + table.rows_modified;
    if table.error.is_none() {
        more(usize::try_from(all).unwrap_or(usize::MAX), "rows", lines);
    }
}

fn more(all: usize, what: &str, lines: &mut Vec<String>) {
    if all > SHOWN {
        lines.push(format!(
            "  … and {} more {what}",
            count((all - SHOWN) as u64)
        ));
    }
}

/// A row; of a modified one its key and what is not the same.
fn row_line(row: &RowChange, key: &[String]) -> String {
    let place = match &row.place {
        Some(place) => format!("{}: ", one_line(place, VALUE)),
        None => String::new(),
    };
    let values = match (&row.before, &row.after) {
        (Some(before), Some(after)) => modified(before, after, key),
        (None, Some(values)) | (Some(values), None) => listed(values.iter()),
        (None, None) => String::new(),
    };
    format!("{} {place}{values}", mark(row.kind))
}

fn listed<'r>(values: impl Iterator<Item = (&'r String, &'r Value)>) -> String {
    let values: Vec<String> = values
        .map(|(column, cell)| format!("{} {}", one_line(column, VALUE), value(cell)))
        .collect();
    values.join(", ")
}

fn modified(before: &Row, after: &Row, key: &[String]) -> String {
    let mut parts = Vec::new();
    if !key.is_empty() {
        parts.push(listed(
            after.iter().filter(|(column, _)| key.contains(column)),
        ));
    }
    // The cells of a sheet may have moved: then their names differ and their order is the same.
    let names = before.keys().ne(after.keys());
    let same_length = before.len() == after.len();
    if names && same_length && !before.keys().any(|column| after.contains_key(column)) {
        for ((place, old), (now, new)) in before.iter().zip(after) {
            let (place, now) = (one_line(place, VALUE), one_line(now, VALUE));
            parts.push(format!("{place} {} → {now} {}", value(old), value(new)));
        }
        return parts.join(", ");
    }
    for (column, new) in after {
        match before.get(column) {
            Some(old) if old == new => {}
            // Of a column that is new, the heading of the table tells.
            None => {}
            Some(old) => parts.push(format!(
                "{} {} → {}",
                one_line(column, VALUE),
                value(old),
                value(new)
            )),
        }
    }
    parts.join(", ")
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "(empty)".to_owned(),
        Value::String(text) => one_line(text, VALUE),
        other => one_line(&other.to_string(), VALUE),
    }
}

fn picture(facts: &PictureFacts) -> String {
    let kind = facts.mime.as_deref().unwrap_or("no picture");
    match (facts.width, facts.height) {
        (Some(width), Some(height)) => format!("{kind}, {width} × {height} pixels"),
        _ => kind.to_owned(),
    }
}

const fn mark(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Created => '+',
        ChangeKind::Deleted => '-',
        _ => '~',
    }
}
