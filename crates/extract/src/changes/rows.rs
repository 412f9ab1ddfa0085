//! Which rows of two tables are the same, and collecting those that are not.
//!
//! Rows come twice: once to be hashed, and once, those that differ, to be shown. Nothing but a hash
//! of each row is kept in between.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Instant;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{ChangeLimits, Happened, Row, RowChange, TableChange};
use crate::error::ExtractError;

/// A row as it is read: the text of its cells by position.
pub(super) type Cells = Vec<String>;

/// A stream of rows.
pub(super) type Stream<'a> = Box<dyn Iterator<Item = Result<Cells, ExtractError>> + 'a>;

/// Replaced blocks of at most this many pairs of rows are searched for the best pairs; of larger
/// blocks the rows are paired in their order.
const SEARCHED_PAIRS: usize = 20_000;

/// Takes rows while there is room, and counts all.
pub(super) struct Collector<'l> {
    limits: &'l ChangeLimits,
    bytes_left: usize,
}

impl<'l> Collector<'l> {
    /// For all tables of one file.
    pub(super) const fn new(limits: &'l ChangeLimits) -> Self {
        Self {
            limits,
            bytes_left: limits.shown_bytes,
        }
    }

    /// Counts a row, and shows it if there is room. `rows` makes the place and both sides.
    pub(super) fn add(
        &mut self,
        table: &mut TableChange,
        happened: Happened,
        rows: impl FnOnce() -> (Option<String>, Option<Row>, Option<Row>),
    ) {
        let count = match happened {
            Happened::Added => &mut table.added,
            Happened::Removed => &mut table.removed,
            Happened::Changed => &mut table.changed,
        };
        *count += 1;
        if *count > self.limits.shown_rows as u64 || self.bytes_left == 0 {
            table.truncated = true;
            return;
        }
        let (place, mut before, mut after) = rows();
        let mut size = 0;
        for row in [&mut before, &mut after].into_iter().flatten() {
            for (column, value) in row.iter_mut() {
                size += column.len() + 16;
                if let Value::String(text) = value {
                    shorten(text, self.limits.cell_chars);
                    size += text.len();
                }
            }
        }
        if size > self.bytes_left {
            self.bytes_left = 0;
            table.truncated = true;
            return;
        }
        self.bytes_left -= size;
        table.rows.push(RowChange {
            happened,
            place,
            before,
            after,
        });
    }
}

fn shorten(text: &mut String, chars: usize) {
    if let Some((end, _)) = text.char_indices().nth(chars) {
        let left = text[end..].chars().count();
        text.truncate(end);
        text.push_str(&format!("… [{left} more characters]"));
    }
}

/// How the rows of a table become rows to show.
pub(super) trait Shape {
    /// The cells that are compared, in one order for both sides.
    fn compared<'c>(&self, side: Side, cells: &'c [String]) -> Vec<&'c str>;

    /// The row of this number (from 0), whole.
    fn whole(&self, side: Side, number: usize, cells: &[String]) -> Row;

    /// Both sides of a changed row.
    fn changed(&self, old: (usize, &[String]), new: (usize, &[String])) -> (Row, Row) {
        (
            self.whole(Side::Old, old.0, old.1),
            self.whole(Side::New, new.0, new.1),
        )
    }
}

/// Which version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Old,
    New,
}

/// Compares two streams of rows by their order; `streams` opens one side.
pub(super) fn compare<'s>(
    table: &mut TableChange,
    collector: &mut Collector<'_>,
    shape: &impl Shape,
    streams: impl Fn(Side) -> Result<Stream<'s>, ExtractError>,
) -> Result<(), ExtractError> {
    let limits = collector.limits;
    let state = RandomState::new();
    let hashes = |side| -> Result<(Vec<u64>, bool), ExtractError> {
        let mut hashes = Vec::new();
        for row in streams(side)? {
            if hashes.len() == limits.rows {
                return Ok((hashes, true));
            }
            let row = row?;
            let mut cells = shape.compared(side, &row);
            // Empty cells at the end are no difference.
            while cells.last().is_some_and(|cell| cell.is_empty()) {
                cells.pop();
            }
            hashes.push(state.hash_one(cells));
        }
        Ok((hashes, false))
    };
    let (old, old_cut) = hashes(Side::Old)?;
    let (new, new_cut) = hashes(Side::New)?;
    if old_cut || new_cut {
        table.notes.push(format!(
            "only the first {} rows are compared (limit `rows`)",
            limits.rows
        ));
    }
    let deadline = Instant::now() + limits.time;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    drop((old, new));
    let mut old = Numbered::new(streams(Side::Old)?);
    let mut new = Numbered::new(streams(Side::New)?);
    for op in ops {
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete {
                old_index, old_len, ..
            } => block(
                table,
                collector,
                shape,
                &mut old,
                old_index..old_index + old_len,
                &mut new,
                0..0,
            )?,
            DiffOp::Insert {
                new_index, new_len, ..
            } => block(
                table,
                collector,
                shape,
                &mut old,
                0..0,
                &mut new,
                new_index..new_index + new_len,
            )?,
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => block(
                table,
                collector,
                shape,
                &mut old,
                old_index..old_index + old_len,
                &mut new,
                new_index..new_index + new_len,
            )?,
        }
    }
    Ok(())
}

/// A stream of rows from which rows are taken by ascending numbers.
struct Numbered<'s> {
    stream: Stream<'s>,
    next: usize,
}

impl<'s> Numbered<'s> {
    const fn new(stream: Stream<'s>) -> Self {
        Self { stream, next: 0 }
    }

    /// The row of this number; empty if the file has become shorter meanwhile.
    fn take(&mut self, number: usize) -> Result<Cells, ExtractError> {
        while self.next < number {
            self.next += 1;
            self.stream.next().transpose()?;
        }
        self.next += 1;
        Ok(self.stream.next().transpose()?.unwrap_or_default())
    }
}

type Range = std::ops::Range<usize>;

/// Rows `old_rows` became `new_rows`.
fn block(
    table: &mut TableChange,
    collector: &mut Collector<'_>,
    shape: &impl Shape,
    old: &mut Numbered<'_>,
    old_rows: Range,
    new: &mut Numbered<'_>,
    new_rows: Range,
) -> Result<(), ExtractError> {
    let mut report = Report {
        table,
        collector,
        shape,
    };
    if !old_rows.is_empty() && old_rows.len().saturating_mul(new_rows.len()) <= SEARCHED_PAIRS {
        let olds = taken(old, old_rows)?;
        let news = taken(new, new_rows)?;
        report.searched(&olds, &news);
        return Ok(());
    }
    let mut left = old_rows;
    for number in new_rows {
        let now = (number, new.take(number)?);
        let Some(number) = left.next() else {
            report.added(&now);
            continue;
        };
        let was = (number, old.take(number)?);
        if report.similar(&was, &now) {
            report.changed(&was, &now);
        } else {
            report.removed(&was);
            report.added(&now);
        }
    }
    for number in left {
        report.removed(&(number, old.take(number)?));
    }
    Ok(())
}

type NumberedRow = (usize, Cells);

fn taken(rows: &mut Numbered<'_>, range: Range) -> Result<Vec<NumberedRow>, ExtractError> {
    range
        .map(|number| Ok((number, rows.take(number)?)))
        .collect()
}

struct Report<'r, 'l, S> {
    table: &'r mut TableChange,
    collector: &'r mut Collector<'l>,
    shape: &'r S,
}

impl<S: Shape> Report<'_, '_, S> {
    /// Pairs each new row with the next old row that it can have come from.
    fn searched(&mut self, olds: &[NumberedRow], news: &[NumberedRow]) {
        let mut next = 0;
        for now in news {
            let found = olds[next..].iter().position(|was| self.similar(was, now));
            let Some(skipped) = found else {
                self.added(now);
                continue;
            };
            for was in &olds[next..next + skipped] {
                self.removed(was);
            }
            self.changed(&olds[next + skipped], now);
            next += skipped + 1;
        }
        for was in &olds[next..] {
            self.removed(was);
        }
    }

    /// Whether at least half of the cells that hold something are equal.
    fn similar(&self, was: &NumberedRow, now: &NumberedRow) -> bool {
        let old = self.shape.compared(Side::Old, &was.1);
        let new = self.shape.compared(Side::New, &now.1);
        let cell = |cells: &[&str], at: usize| cells.get(at).copied().unwrap_or("").to_owned();
        let (mut filled, mut equal) = (0_usize, 0_usize);
        for at in 0..old.len().max(new.len()) {
            let (old, new) = (cell(&old, at), cell(&new, at));
            if !old.is_empty() || !new.is_empty() {
                filled += 1;
                equal += usize::from(old == new);
            }
        }
        // A row of one cell that has changed is still that row.
        equal * 2 >= filled || filled == 1
    }

    fn added(&mut self, now: &NumberedRow) {
        let shape = self.shape;
        self.collector.add(self.table, Happened::Added, || {
            let row = shape.whole(Side::New, now.0, &now.1);
            (Some(format!("row {}", now.0 + 1)), None, Some(row))
        });
    }

    fn removed(&mut self, was: &NumberedRow) {
        let shape = self.shape;
        self.collector.add(self.table, Happened::Removed, || {
            let row = shape.whole(Side::Old, was.0, &was.1);
            (Some(format!("row {}", was.0 + 1)), Some(row), None)
        });
    }

    fn changed(&mut self, was: &NumberedRow, now: &NumberedRow) {
        let shape = self.shape;
        self.collector.add(self.table, Happened::Changed, || {
            let place = if was.0 == now.0 {
                format!("row {}", now.0 + 1)
            } else {
                format!("row {} (was {})", now.0 + 1, was.0 + 1)
            };
            let (before, after) = shape.changed((was.0, &was.1), (now.0, &now.1));
            (Some(place), Some(before), Some(after))
        });
    }
}
