//! The values of one sheet of a workbook or csv file.

use std::collections::HashMap;
use std::io::Cursor;

use calamine::{Data, DataType as _, Reader as _, Xls, Xlsx};
use serde_json::Value;

use super::formula::Calculation;
use crate::tidy;

/// Cells of one sheet that are read at most.
const MAX_CELLS: usize = 2_000_000;

/// The cells of a sheet by row and column, from 0.
pub(super) type Cells = HashMap<(u32, u32), Cell>;

/// One sheet.
#[derive(Debug)]
pub(super) enum Sheet {
    Workbook {
        cells: Cells,
        /// Results of formulas that the file has no result of.
        calculated: HashMap<(u32, u32), Result<Value, String>>,
    },
    Csv(Vec<Vec<Value>>),
}

#[derive(Debug)]
pub(super) struct Cell {
    pub(super) value: Value,
    pub(super) formula: Option<String>,
}

impl Sheet {
    /// The sheet `name` of a file, the first one if `name` is empty; `None` where there is no such
    /// sheet. A csv file is a single sheet, whatever the name. Formulas without a stored result are
    /// calculated where they are `wanted`.
    pub(super) fn read(
        extension: &str,
        bytes: &[u8],
        name: &str,
        wanted: &[(u32, u32)],
    ) -> Result<Option<Self>, String> {
        match extension {
            "csv" => Ok(Some(Self::Csv(csv(bytes)))),
            "xls" => xls(bytes, name),
            _ => xlsx(bytes, name, wanted),
        }
    }

    /// The value at a position from 0; nothing where the sheet does not reach.
    ///
    /// # Errors
    /// Why the formula that stands there without a result cannot be calculated.
    pub(super) fn cell(&self, row: u32, column: u32) -> Result<Value, String> {
        match self {
            Self::Csv(rows) => Ok(rows
                .get(row as usize)
                .and_then(|cells| cells.get(column as usize))
                .cloned()
                .unwrap_or_default()),
            Self::Workbook { cells, calculated } => match calculated.get(&(row, column)) {
                Some(result) => result.clone(),
                None => Ok(cells
                    .get(&(row, column))
                    .map(|cell| cell.value.clone())
                    .unwrap_or_default()),
            },
        }
    }

    /// The formula at a position from 0.
    pub(super) fn formula(&self, row: u32, column: u32) -> Option<&str> {
        match self {
            Self::Csv(_) => None,
            Self::Workbook { cells, .. } => cells.get(&(row, column))?.formula.as_deref(),
        }
    }
}

fn named(names: &[String], name: &str) -> Option<String> {
    match name {
        "" => names.first().cloned(),
        name => names.iter().find(|other| *other == name).cloned(),
    }
}

/// A workbook whose sheets are read as they are needed.
pub(super) struct Book<'a> {
    workbook: Xlsx<Cursor<&'a [u8]>>,
    names: Vec<String>,
    sheets: HashMap<usize, Cells>,
    /// The last rows of the sheets that were read.
    bottoms: HashMap<usize, u32>,
    cells_left: usize,
}

impl<'a> Book<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(|e| e.to_string())?;
        Ok(Self {
            names: workbook.sheet_names(),
            workbook,
            sheets: HashMap::new(),
            bottoms: HashMap::new(),
            cells_left: MAX_CELLS,
        })
    }

    /// The position of the sheet that a formula names, whatever the case.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.names
            .iter()
            .position(|other| other.to_lowercase() == name)
    }

    /// The cells of the sheet at `position`.
    ///
    /// # Errors
    /// A sheet that cannot be read, and more cells than are read of one workbook.
    pub(super) fn cells(&mut self, position: usize) -> Result<&Cells, String> {
        if !self.sheets.contains_key(&position) {
            let cells = self.read(position)?;
            let bottom = cells.keys().map(|(row, _)| *row).max();
            self.bottoms.insert(position, bottom.unwrap_or_default());
            self.sheets.insert(position, cells);
        }
        self.sheets
            .get(&position)
            .ok_or_else(|| "there is no such sheet".to_owned())
    }

    /// The last row of the sheet at `position` that has a cell.
    ///
    /// # Errors
    /// As [`Self::cells`].
    pub(super) fn bottom(&mut self, position: usize) -> Result<u32, String> {
        self.cells(position)?;
        Ok(self.bottoms.get(&position).copied().unwrap_or_default())
    }

    /// Cells come as a stream: a cell in the last corner costs no more than any other.
    fn read(&mut self, position: usize) -> Result<Cells, String> {
        let name = self.names.get(position).ok_or("there is no such sheet")?;
        let mut reader = self
            .workbook
            .worksheet_cells_reader(name)
            .map_err(|error| error.to_string())?;
        let mut cells = HashMap::new();
        while let Some(cell) = reader
            .next_cell_with_formula()
            .map_err(|error| error.to_string())?
        {
            self.cells_left = self.cells_left.checked_sub(1).ok_or_else(|| {
                format!("the sheets up to `{name}` have more than {MAX_CELLS} cells")
            })?;
            let at = cell.pos;
            let formula = cell.formula.as_deref().map(str::to_owned);
            let value = json(&Data::from(cell.value));
            cells.insert(at, Cell { value, formula });
        }
        Ok(cells)
    }
}

fn xlsx(bytes: &[u8], name: &str, wanted: &[(u32, u32)]) -> Result<Option<Sheet>, String> {
    let mut book = Book::open(bytes)?;
    let Some(name) = named(&book.names, name) else {
        return Ok(None);
    };
    let Some(position) = book.names.iter().position(|other| *other == name) else {
        return Ok(None);
    };
    let cells = book.cells(position)?;
    let without_result = |at: &&(u32, u32)| {
        let cell = cells.get(at);
        cell.is_some_and(|cell| cell.value.is_null() && cell.formula.is_some())
    };
    let missing: Vec<(u32, u32)> = wanted.iter().filter(without_result).copied().collect();
    let mut calculation = Calculation::new(&mut book);
    let calculated = missing
        .into_iter()
        .map(|(row, column)| ((row, column), calculation.cell(position, row, column)))
        .collect();
    let cells = book.sheets.remove(&position).unwrap_or_default();
    Ok(Some(Sheet::Workbook { cells, calculated }))
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
    Ok(Some(Sheet::Workbook {
        cells: cells.collect(),
        calculated: HashMap::new(),
    }))
}

fn json(data: &Data) -> Value {
    match data {
        Data::Int(integer) => (*integer).into(),
        // What a workbook stores has no kind of its own for integers.
        Data::Float(float) => tidy(*float),
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
}
