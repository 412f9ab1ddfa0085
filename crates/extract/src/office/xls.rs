//! Workbooks of the format before 2007 (BIFF in a compound file), read as a whole.
//!
//! The parser is not made for hostile files: where the program offers it
//! ([`run_child`](crate::run_child)) it runs in a child process, elsewhere on a thread.

use std::collections::HashMap;
use std::io::Cursor;
use std::time::Duration;

use calamine::{Data, DataRef, Reader as _, SheetVisible, Xls};

use super::listed::{CellBudget, ListedCell, ListedSheet, ListedWorkbook};
use super::workbook::value_text;
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::untrusted::{self, Parsed};

const FORMAT: &str = "xls";

/// How a compound file begins.
pub(super) const MAGIC: &[u8] = b"\xd0\xcf\x11\xe0";

pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<ListedWorkbook, ExtractError> {
    untrusted::parse::<ListedWorkbook>(bytes, limits)?.map_err(|reason| {
        if reason.to_lowercase().contains("password") {
            ExtractError::Encrypted { format: FORMAT }
        } else {
            ExtractError::broken(FORMAT, reason)
        }
    })
}

impl Parsed for ListedWorkbook {
    const FORMAT: &'static str = FORMAT;
    const TIME: &'static str = "workbook_time";

    fn time(limits: &Limits) -> Duration {
        limits.workbook_time
    }

    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, String> {
        parse(bytes, limits)
    }
}

fn parse(bytes: &[u8], limits: &Limits) -> Result<ListedWorkbook, String> {
    let mut workbook = Xls::new(Cursor::new(bytes)).map_err(|error| error.to_string())?;
    let mut budget = CellBudget::new(limits.cell_bytes, limits.rows, limits.columns);
    let sheets: Vec<(String, bool)> = workbook
        .sheets_metadata()
        .iter()
        .map(|sheet| (sheet.name.clone(), sheet.visible == SheetVisible::Visible))
        .collect();
    let mut listed = ListedWorkbook {
        names: workbook.defined_names().to_vec(),
        ..ListedWorkbook::default()
    };
    for (name, visible) in sheets {
        let values = workbook
            .worksheet_range(&name)
            .map_err(|error| format!("sheet `{name}`: {error}"))?;
        // Formulas that the parser does not know are no reason to hide the values.
        let formulas = workbook.worksheet_formula(&name).unwrap_or_default();
        let (top, left) = formulas.start().unwrap_or_default();
        let mut formulas: HashMap<(u32, u32), String> = formulas
            .used_cells()
            .filter_map(|(row, column, formula)| {
                let place = (
                    top.saturating_add(u32::try_from(row).ok()?),
                    left.saturating_add(u32::try_from(column).ok()?),
                );
                (!formula.is_empty()).then(|| (place, formula.clone()))
            })
            .collect();
        let mut sheet = ListedSheet {
            name,
            visible,
            ..ListedSheet::default()
        };
        let (top, left) = values.start().unwrap_or_default();
        for (row, column, value) in values.used_cells() {
            let (Ok(row), Ok(column)) = (u32::try_from(row), u32::try_from(column)) else {
                continue;
            };
            let (row, column) = (top.saturating_add(row), left.saturating_add(column));
            let cell = ListedCell {
                row,
                column,
                value: value_text(&borrowed(value)),
                formula: formulas.remove(&(row, column)),
            };
            if !budget.add(&mut sheet, cell) {
                break;
            }
        }
        without_value(&mut sheet, formulas, &mut budget);
        listed.sheets.push(sheet);
    }
    Ok(listed)
}

/// Formulas of cells that have no value.
fn without_value(
    sheet: &mut ListedSheet,
    formulas: HashMap<(u32, u32), String>,
    budget: &mut CellBudget,
) {
    if formulas.is_empty() || sheet.cut {
        return;
    }
    for ((row, column), formula) in formulas {
        let cell = ListedCell {
            row,
            column,
            value: String::new(),
            formula: Some(formula),
        };
        if !budget.add(sheet, cell) {
            break;
        }
    }
    sheet.cells.sort_by_key(|cell| (cell.row, cell.column));
}

fn borrowed(value: &Data) -> DataRef<'_> {
    match value {
        Data::Int(number) => DataRef::Int(*number),
        Data::Float(number) => DataRef::Float(*number),
        Data::String(text) => DataRef::SharedString(text),
        Data::Bool(yes) => DataRef::Bool(*yes),
        Data::DateTime(moment) => DataRef::DateTime(*moment),
        Data::DateTimeIso(text) => DataRef::DateTimeIso(text.clone()),
        Data::DurationIso(text) => DataRef::DurationIso(text.clone()),
        Data::Error(error) => DataRef::Error(error.clone()),
        Data::Empty => DataRef::Empty,
    }
}
