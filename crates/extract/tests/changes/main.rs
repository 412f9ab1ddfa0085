//! What changed inside of files: rows, cells, members, pictures.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod database;
mod delimited;
mod others;
mod sheets;

use extract::{ChangeLimits, Content, ContentChanges, ExtractError, Happened, RowChange};

fn changes(name: &str, old: &[u8], new: &[u8]) -> Result<ContentChanges, ExtractError> {
    limited(name, old, new, &ChangeLimits::default())
}

fn limited(
    name: &str,
    old: &[u8],
    new: &[u8],
    limits: &ChangeLimits,
) -> Result<ContentChanges, ExtractError> {
    extract::content_changes(name, Some(&old), Some(&new), limits)
}

/// One side only.
fn lone(name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> ContentChanges {
    let old = old.as_ref().map(|bytes| bytes as &dyn Content);
    let new = new.as_ref().map(|bytes| bytes as &dyn Content);
    extract::content_changes(name, old, new, &ChangeLimits::default()).unwrap()
}

/// `+ row 2: {"a":"1"}`.
fn lines(rows: &[RowChange]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let mark = match row.happened {
                Happened::Added => '+',
                Happened::Removed => '-',
                Happened::Changed => '~',
            };
            let place = row
                .place
                .as_ref()
                .map(|p| format!("{p}: "))
                .unwrap_or_default();
            let sides: Vec<String> = [&row.before, &row.after]
                .into_iter()
                .flatten()
                .map(|side| serde_json::to_string(side).unwrap())
                .collect();
            format!("{mark} {place}{}", sides.join(" -> "))
        })
        .collect()
}
