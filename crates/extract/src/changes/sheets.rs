//! Cells of workbooks. A cell counts as changed when its value or its formula is another.

use std::collections::BTreeMap;

use serde_json::Value;

use super::rows::{self, Cells, Collector, Shape, Side, Stream};
use super::{ChangeLimits, Content, ContentChanges, Happened, Row, TableChange, bytes_of};
use crate::document::extension;
use crate::error::ExtractError;
use crate::office::workbook::{Cell, Flow, SheetInfo, Workbook, letters};

pub(super) fn compare(
    name: &str,
    before: Option<&dyn Content>,
    after: Option<&dyn Content>,
    limits: &ChangeLimits,
    changes: &mut ContentChanges,
) -> Result<(), ExtractError> {
    let extension = extension(name);
    let of = |content: Option<&dyn Content>| {
        content
            .map(|content| bytes_of(content, &limits.documents))
            .transpose()
    };
    let (old_bytes, new_bytes) = (of(before)?, of(after)?);
    let mut old = Version::open(&extension, old_bytes.as_deref(), limits)?;
    let mut new = Version::open(&extension, new_bytes.as_deref(), limits)?;
    let mut collector = Collector::new(limits);
    for (name, happened) in names(&old.sheets, &new.sheets) {
        let mut table = TableChange::new(&name, happened);
        visibility(&mut table, old.sheet(&name), new.sheet(&name));
        let rows = [
            old.rows(&name, limits, &mut table)?,
            new.rows(&name, limits, &mut table)?,
        ];
        rows::compare(&mut table, &mut collector, &Grid, |side| {
            let rows = match side {
                Side::Old => &rows[0],
                Side::New => &rows[1],
            };
            let stream: Stream<'_> = Box::new(rows.iter().map(|row| Ok(row.clone())));
            Ok(stream)
        })?;
        if table.says_something() {
            changes.tables.push(table);
        }
    }
    defined_names(&old, &new, changes);
    if changes.tables.is_empty() && changes.notes.is_empty() {
        changes
            .notes
            .push("no value and no formula of a cell has changed".to_owned());
    }
    Ok(())
}

/// One version of a workbook; one that is missing has no sheets.
struct Version<'a> {
    workbook: Option<Workbook<'a>>,
    sheets: Vec<SheetInfo>,
}

impl<'a> Version<'a> {
    fn open(
        extension: &str,
        bytes: Option<&'a [u8]>,
        limits: &ChangeLimits,
    ) -> Result<Self, ExtractError> {
        let workbook = bytes
            .map(|bytes| Workbook::open(extension, bytes, &limits.documents))
            .transpose()?;
        let sheets = workbook.as_ref().map(Workbook::sheets).unwrap_or_default();
        Ok(Self {
            workbook,
            sheets: sheets.into_iter().take(limits.documents.parts).collect(),
        })
    }

    fn sheet(&self, name: &str) -> Option<&SheetInfo> {
        self.sheets.iter().find(|sheet| sheet.name == name)
    }

    /// The rows of a sheet; none where there is no such sheet.
    fn rows(
        &mut self,
        name: &str,
        limits: &ChangeLimits,
        table: &mut TableChange,
    ) -> Result<Vec<Cells>, ExtractError> {
        let has_cells = self.sheet(name).is_some_and(|sheet| sheet.cells);
        let (true, Some(workbook)) = (has_cells, &mut self.workbook) else {
            return Ok(Vec::new());
        };
        if workbook.listed_extras(name).is_some_and(|(_, cut)| cut) {
            let note = "only some cells are compared (limit `cell_bytes`)".to_owned();
            if !table.notes.contains(&note) {
                table.notes.push(note);
            }
        }
        let mut rows: Vec<Cells> = Vec::new();
        let mut beyond = false;
        workbook.cells(name, |cell| {
            let (row, column) = (cell.row as usize, cell.column as usize);
            if row >= limits.documents.rows as usize || column >= limits.columns {
                beyond = true;
                return Flow::Continue;
            }
            if rows.len() <= row {
                rows.resize_with(row + 1, Vec::new);
            }
            let cells = &mut rows[row];
            if cells.len() <= column {
                cells.resize_with(column + 1, String::new);
            }
            cells[column] = cell_text(&cell);
            Flow::Continue
        })?;
        if beyond {
            let note = format!(
                "only {} rows and {} columns are compared (limits `rows`, `columns`)",
                limits.documents.rows, limits.columns
            );
            if !table.notes.contains(&note) {
                table.notes.push(note);
            }
        }
        Ok(rows)
    }
}

/// The stored value with the formula behind it.
fn cell_text(cell: &Cell<'_>) -> String {
    match cell.formula {
        None => cell.value.to_owned(),
        Some(formula) if cell.value.is_empty() => format!("{{={formula}; not calculated}}"),
        Some(formula) => format!("{} {{={formula}}}", cell.value),
    }
}

/// All sheets: those of the second version in their order, then those that are gone.
fn names(old: &[SheetInfo], new: &[SheetInfo]) -> Vec<(String, Happened)> {
    let is_in = |sheets: &[SheetInfo], name: &str| sheets.iter().any(|sheet| sheet.name == name);
    let now = new.iter().map(|sheet| {
        let happened = if is_in(old, &sheet.name) {
            Happened::Changed
        } else {
            Happened::Added
        };
        (sheet.name.clone(), happened)
    });
    let gone = old
        .iter()
        .filter(|sheet| !is_in(new, &sheet.name))
        .map(|sheet| (sheet.name.clone(), Happened::Removed));
    now.chain(gone).collect()
}

fn visibility(table: &mut TableChange, old: Option<&SheetInfo>, new: Option<&SheetInfo>) {
    let note = match (
        old.map(|sheet| sheet.visible),
        new.map(|sheet| sheet.visible),
    ) {
        (Some(true), Some(false)) => "the sheet is now hidden",
        (Some(false), Some(true)) => "the sheet is no longer hidden",
        (None, Some(false)) => "the sheet is hidden",
        _ => return,
    };
    table.notes.push(note.to_owned());
}

fn defined_names(old: &Version<'_>, new: &Version<'_>, changes: &mut ContentChanges) {
    let of = |version: &Version<'_>| -> BTreeMap<String, String> {
        let names = version.workbook.as_ref().map(Workbook::defined_names);
        names.unwrap_or_default().iter().cloned().collect()
    };
    let (was, now) = (of(old), of(new));
    for (name, reference) in &now {
        match was.get(name) {
            None => changes
                .notes
                .push(format!("defined name `{name}` is new: {reference}")),
            Some(before) if before != reference => changes.notes.push(format!(
                "defined name `{name}` was {before}, is {reference}"
            )),
            Some(_) => {}
        }
    }
    for name in was.keys().filter(|name| !now.contains_key(*name)) {
        changes.notes.push(format!("defined name `{name}` is gone"));
    }
}

/// Cells by their coordinates.
struct Grid;

impl Shape for Grid {
    fn compared<'c>(&self, _: Side, cells: &'c [String]) -> Vec<&'c str> {
        cells.iter().map(String::as_str).collect()
    }

    fn whole(&self, _: Side, number: usize, cells: &[String]) -> Row {
        cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(column, cell)| (coordinate(number, column), Value::String(cell.clone())))
            .collect()
    }

    fn changed(&self, old: (usize, &[String]), new: (usize, &[String])) -> (Row, Row) {
        let (mut before, mut after) = (Row::new(), Row::new());
        let at = |cells: &[String], column: usize| cells.get(column).cloned().unwrap_or_default();
        for column in 0..old.1.len().max(new.1.len()) {
            let (was, now) = (at(old.1, column), at(new.1, column));
            if was != now {
                before.insert(coordinate(old.0, column), was.into());
                after.insert(coordinate(new.0, column), now.into());
            }
        }
        (before, after)
    }
}

/// `B3`, from row and column counted from 0.
fn coordinate(row: usize, column: usize) -> String {
    let column = u32::try_from(column).unwrap_or(u32::MAX);
    format!("{}{}", letters(column), row + 1)
}
