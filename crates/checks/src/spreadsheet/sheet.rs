//! The values of one sheet of a workbook or csv file.

use std::collections::HashMap;
use std::io::Cursor;

use calamine::{Data, DataType as _, Reader as _, Xls, Xlsx};
use serde_json::Value;

/// Cells of one sheet that are read at most.
const MAX_CELLS: usize = 2_000_000;

/// One sheet.
#[derive(Debug)]
pub(super) enum Sheet {
    Workbook(HashMap<(u32, u32), Cell>),
    Csv(Vec<Vec<Value>>),
}

#[derive(Debug)]
pub(super) struct Cell {
    value: Value,
    formula: Option<String>,
}

impl Sheet {
    /// The sheet `name` of a file, the first one if `name` is empty; `None` where there is no such
    /// sheet. A csv file is a single sheet, whatever the name.
    pub(super) fn read(extension: &str, bytes: &[u8], name: &str) -> Result<Option<Self>, String> {
        match extension {
            "csv" => Ok(Some(Self::Csv(csv(bytes)))),
            "xls" => xls(bytes, name),
            _ => xlsx(bytes, name),
        }
    }

    /// The value at a position from 0; nothing where the sheet does not reach.
    pub(super) fn cell(&self, row: u32, column: u32) -> Value {
        match self {
            Self::Csv(rows) => rows
                .get(row as usize)
                .and_then(|cells| cells.get(column as usize))
                .cloned()
                .unwrap_or_default(),
            Self::Workbook(cells) => {
                let Some(cell) = cells.get(&(row, column)) else {
                    return Value::Null;
                };
                if !cell.value.is_null() {
                    return cell.value.clone();
                }
                // A formula without a stored result: a plain reference can be followed.
                let at = cell.formula.as_deref().and_then(referred);
                at.and_then(|at| cells.get(&at))
                    .map(|cell| cell.value.clone())
                    .unwrap_or_default()
            }
        }
    }

    /// The formula at a position from 0.
    pub(super) fn formula(&self, row: u32, column: u32) -> Option<&str> {
        match self {
            Self::Csv(_) => None,
            Self::Workbook(cells) => cells.get(&(row, column))?.formula.as_deref(),
        }
    }
}

fn named(names: &[String], name: &str) -> Option<String> {
    match name {
        "" => names.first().cloned(),
        name => names.iter().find(|other| *other == name).cloned(),
    }
}

/// Cells come as a stream: a cell in the last corner costs no more than any other.
fn xlsx(bytes: &[u8], name: &str) -> Result<Option<Sheet>, String> {
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let Some(name) = named(&workbook.sheet_names(), name) else {
        return Ok(None);
    };
    let mut reader = workbook
        .worksheet_cells_reader(&name)
        .map_err(|error| error.to_string())?;
    let mut cells = HashMap::new();
    while let Some(cell) = reader
        .next_cell_with_formula()
        .map_err(|error| error.to_string())?
    {
        if cells.len() == MAX_CELLS {
            return Err(format!("sheet `{name}` has more than {MAX_CELLS} cells"));
        }
        let at = cell.pos;
        let formula = cell.formula.as_deref().map(str::to_owned);
        let value = json(&Data::from(cell.value));
        cells.insert(at, Cell { value, formula });
    }
    Ok(Some(Sheet::Workbook(cells)))
}

/// A sheet of this format has at most 65,536 rows of 256 cells.
fn xls(bytes: &[u8], name: &str) -> Result<Option<Sheet>, String> {
    let mut workbook: Xls<_> = Xls::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
    let Some(name) = named(&workbook.sheet_names(), name) else {
        return Ok(None);
    };
    let range = workbook
        .worksheet_range(&name)
        .map_err(|error| error.to_string())?;
    let (top, left) = range.start().unwrap_or_default();
    let cells = range.used_cells().filter_map(|(row, column, data)| {
        let row = u32::try_from(row).ok()? + top;
        let column = u32::try_from(column).ok()? + left;
        let value = json(data);
        Some((
            (row, column),
            Cell {
                value,
                formula: None,
            },
        ))
    });
    Ok(Some(Sheet::Workbook(cells.collect())))
}

/// The cell that a formula like `B3` on the same sheet names.
fn referred(formula: &str) -> Option<(u32, u32)> {
    let formula = formula.trim().trim_start_matches('=').replace('$', "");
    let cells = super::check::cells(&formula).ok()?;
    match &cells[..] {
        [(_, row, column)] => Some((*row, *column)),
        _ => None,
    }
}

fn json(data: &Data) -> Value {
    match data {
        Data::Int(integer) => (*integer).into(),
        // What a workbook stores has no kind of its own for integers.
        Data::Float(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "checked to be whole and small"
            )]
            let integer = *float as i64;
            integer.into()
        }
        Data::Float(float) => (*float).into(),
        Data::String(text) => text.as_str().into(),
        Data::Bool(flag) => (*flag).into(),
        Data::DateTime(_) => data.as_datetime().map(|time| time.to_string()).into(),
        Data::DateTimeIso(text) | Data::DurationIso(text) => text.as_str().into(),
        Data::Error(error) => error.to_string().into(),
        Data::Empty => Value::Null,
    }
}

/// The rows of a csv file: comma, double quotes; UTF-8, else Latin-1.
fn csv(bytes: &[u8]) -> Vec<Vec<Value>> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => quoted = true,
            ',' if !quoted => row.push(typed(&std::mem::take(&mut cell))),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !quoted => {
                row.push(typed(&std::mem::take(&mut cell)));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(typed(&cell));
        rows.push(row);
    }
    rows
}

/// Nothing, an integer, a float, or text.
fn typed(cell: &str) -> Value {
    if cell.is_empty() {
        return Value::Null;
    }
    if let Ok(integer) = cell.parse::<i64>() {
        return integer.into();
    }
    match cell.parse::<f64>() {
        Ok(float) if float.is_finite() => float.into(),
        _ => cell.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn csv_cells_are_typed_and_quotes_are_read() {
        let rows = csv(b"name,n,\"a, \"\"b\"\"\"\r\nx,007,\n\"two\nlines\",1.50,t\xe9");
        assert_eq!(rows[0], [json!("name"), json!("n"), json!("a, \"b\"")]);
        assert_eq!(rows[1], [json!("x"), json!(7), json!(null)]);
        assert_eq!(rows[2], [json!("two\nlines"), json!(1.5), json!("té")]);
    }

    #[test]
    fn plain_references_are_followed() {
        assert_eq!(referred("=$B$3"), Some((2, 1)));
        assert_eq!(referred("B3+1"), None);
        assert_eq!(referred("Other!B3"), None);
    }
}
