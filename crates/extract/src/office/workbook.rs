//! The cells of workbooks, as a stream.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Cursor;

use calamine::{DataRef, ExcelDateTime, Reader as _, SheetType, SheetVisible, Xlsb, Xlsx};

use super::listed::ListedWorkbook;
use super::package::Package;
use super::{ods, xls};
use crate::error::ExtractError;
use crate::limits::Limits;

/// An open workbook in one of the formats whose cells can be read one after the other.
pub(crate) struct Workbook<'a> {
    format: &'static str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Xlsx(Xlsx<Cursor<&'a [u8]>>),
    Xlsb(Xlsb<Cursor<&'a [u8]>>),
    /// A format that is read as a whole.
    Listed(ListedWorkbook),
}

/// Extensions of workbooks.
const EXTENSIONS: &[&str] = &["ods", "xls", "xlsb", "xlsm", "xlsx"];

/// Whether a file of this extension is a workbook.
pub(crate) fn is_workbook(extension: &str) -> bool {
    EXTENSIONS.contains(&extension)
}

/// Whether a file called `xls` is a workbook: many programs give that name to tables of HTML or
/// text, which spreadsheets open too.
pub(crate) fn is_called_workbook_only(extension: &str, bytes: &[u8]) -> bool {
    extension == "xls" && !bytes.starts_with(xls::MAGIC) && !bytes.starts_with(b"PK")
}

/// A sheet, before its cells are read.
#[derive(Debug, Clone)]
pub(crate) struct SheetInfo {
    pub(crate) name: String,
    pub(crate) visible: bool,
    /// Whether it has cells; a chart sheet has none.
    pub(crate) cells: bool,
}

/// A cell that holds something. `row` and `column` count from 0.
pub(crate) struct Cell<'c> {
    pub(crate) row: u32,
    pub(crate) column: u32,
    /// The value that is stored, as text; empty where a formula has none.
    pub(crate) value: &'c str,
    /// The formula, without `=`.
    pub(crate) formula: Option<&'c str>,
}

/// Whether to read on.
#[derive(PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

impl<'a> Workbook<'a> {
    /// Opens a workbook: its format is told by `extension`, of an xls file by how it begins.
    pub(crate) fn open(
        extension: &str,
        bytes: &'a [u8],
        limits: &Limits,
    ) -> Result<Self, ExtractError> {
        let format = match extension {
            "xlsb" => "xlsb",
            "ods" => "ods",
            "xls" if bytes.starts_with(xls::MAGIC) => "xls",
            _ => "xlsx",
        };
        let broken = |error: &dyn std::fmt::Display| ExtractError::broken(format, error);
        let kind = match format {
            "xls" => Kind::Listed(xls::read(bytes, limits)?),
            "ods" => Kind::Listed(ods::read(bytes, limits)?),
            _ => {
                Package::open(bytes, format, limits)?.measure()?;
                let input = Cursor::new(bytes);
                if format == "xlsb" {
                    Kind::Xlsb(Xlsb::new(input).map_err(|e| broken(&e))?)
                } else {
                    Kind::Xlsx(Xlsx::new(input).map_err(|e| broken(&e))?)
                }
            }
        };
        Ok(Self { format, kind })
    }

    /// Whether it is a package of XML files as ECMA-376 says, which has more than cells to show.
    pub(crate) fn has_extras(&self) -> bool {
        matches!(self.kind, Kind::Xlsx(_))
    }

    /// What a sheet has beside its cells, where that is known already, and whether cells are missing.
    pub(crate) fn listed_extras(&self, name: &str) -> Option<(&str, bool)> {
        let Kind::Listed(workbook) = &self.kind else {
            return None;
        };
        let sheet = workbook.sheets.iter().find(|sheet| sheet.name == name)?;
        Some((&sheet.sections, sheet.cut))
    }

    /// All sheets, hidden ones too, in their order.
    pub(crate) fn sheets(&self) -> Vec<SheetInfo> {
        let sheets = match &self.kind {
            Kind::Xlsx(workbook) => workbook.sheets_metadata(),
            Kind::Xlsb(workbook) => workbook.sheets_metadata(),
            Kind::Listed(workbook) => {
                let sheets = workbook.sheets.iter().map(|sheet| SheetInfo {
                    name: sheet.name.clone(),
                    visible: sheet.visible,
                    cells: true,
                });
                return sheets.collect();
            }
        };
        sheets
            .iter()
            .map(|sheet| SheetInfo {
                name: sheet.name.clone(),
                visible: sheet.visible == SheetVisible::Visible,
                cells: sheet.typ == SheetType::WorkSheet,
            })
            .collect()
    }

    /// Names of cells and ranges, with what they stand for.
    pub(crate) fn defined_names(&self) -> &[(String, String)] {
        match &self.kind {
            Kind::Xlsx(workbook) => workbook.defined_names(),
            Kind::Xlsb(workbook) => workbook.defined_names(),
            Kind::Listed(workbook) => &workbook.names,
        }
    }

    /// Calls `visit` for every cell of the sheet `name` that holds something, in their order. A
    /// sheet with one cell in the last corner costs no more than any other.
    pub(crate) fn cells(
        &mut self,
        name: &str,
        mut visit: impl FnMut(Cell<'_>) -> Flow,
    ) -> Result<(), ExtractError> {
        let format = self.format;
        let broken = |error: &dyn std::fmt::Display| {
            ExtractError::broken(format, format!("sheet `{name}`: {error}"))
        };
        match &mut self.kind {
            Kind::Listed(workbook) => {
                let sheet = workbook.sheets.iter().find(|sheet| sheet.name == name);
                for cell in sheet.into_iter().flat_map(|sheet| &sheet.cells) {
                    let flow = visit(Cell {
                        row: cell.row,
                        column: cell.column,
                        value: &cell.value,
                        formula: cell.formula.as_deref(),
                    });
                    if flow == Flow::Stop {
                        break;
                    }
                }
            }
            Kind::Xlsx(workbook) => {
                let mut cells = workbook
                    .worksheet_cells_reader(name)
                    .map_err(|e| broken(&e))?;
                while let Some(cell) = cells.next_cell_with_formula().map_err(|e| broken(&e))? {
                    let formula = cell.formula.as_deref();
                    if visit_cell(cell.pos, &cell.value, formula, &mut visit) == Flow::Stop {
                        break;
                    }
                }
            }
            Kind::Xlsb(workbook) => {
                let mut formulas = HashMap::new();
                let mut cells = workbook
                    .worksheet_cells_reader(name)
                    .map_err(|e| broken(&e))?;
                while let Some(cell) = cells.next_formula().map_err(|e| broken(&e))? {
                    formulas.insert(cell.get_position(), cell.get_value().clone());
                }
                drop(cells);
                let mut cells = workbook
                    .worksheet_cells_reader(name)
                    .map_err(|e| broken(&e))?;
                while let Some(cell) = cells.next_cell().map_err(|e| broken(&e))? {
                    let position = cell.get_position();
                    let formula = formulas.remove(&position);
                    if visit_cell(position, cell.get_value(), formula.as_deref(), &mut visit)
                        == Flow::Stop
                    {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

fn visit_cell(
    (row, column): (u32, u32),
    value: &DataRef<'_>,
    formula: Option<&str>,
    visit: &mut impl FnMut(Cell<'_>) -> Flow,
) -> Flow {
    let value = value_text(value);
    let formula = formula.map(str::trim).filter(|formula| !formula.is_empty());
    if value.is_empty() && formula.is_none() {
        return Flow::Continue;
    }
    visit(Cell {
        row,
        column,
        value: &value,
        formula,
    })
}

/// The letters of a column, from 0: `A`, `Z`, `AA`.
pub(crate) fn letters(column: u32) -> String {
    let mut rest = u64::from(column) + 1;
    let mut letters = Vec::new();
    while rest > 0 {
        rest -= 1;
        letters.push(char::from(b'A' + u8::try_from(rest % 26).unwrap_or(0)));
        rest /= 26;
    }
    letters.iter().rev().collect()
}

pub(super) fn value_text(value: &DataRef<'_>) -> String {
    match value {
        DataRef::Empty => String::new(),
        DataRef::Int(number) => number.to_string(),
        DataRef::Float(number) => number.to_string(),
        DataRef::String(text) => text.clone(),
        DataRef::SharedString(text) => (*text).to_owned(),
        DataRef::Bool(true) => "TRUE".to_owned(),
        DataRef::Bool(false) => "FALSE".to_owned(),
        DataRef::DateTime(moment) => date_text(*moment),
        DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => text.clone(),
        DataRef::Error(error) => error.to_string(),
    }
}

/// A date, a time, or both, without what is zero; a duration as hours, minutes, seconds.
fn date_text(moment: ExcelDateTime) -> String {
    let serial = moment.as_f64();
    if moment.is_duration() {
        let seconds = (serial * 86_400.0).round();
        let sign = if seconds < 0.0 { "-" } else { "" };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float that is too large becomes the largest integer"
        )]
        let seconds = seconds.abs() as u64;
        let (hours, rest) = (seconds / 3600, seconds % 3600);
        return format!("{sign}{hours}:{:02}:{:02}", rest / 60, rest % 60);
    }
    let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
    let mut text = String::new();
    // Serial numbers below 1 are times of no day.
    if serial >= 1.0 {
        let _ = write!(text, "{year:04}-{month:02}-{day:02}");
    }
    if serial.fract() != 0.0 || serial < 1.0 {
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = write!(text, "{hour:02}:{minute:02}:{second:02}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn columns_have_letters() {
        let letters: Vec<String> = [0, 25, 26, 51, 701, 702, 16_383].map(letters).to_vec();
        assert_eq!(letters, ["A", "Z", "AA", "AZ", "ZZ", "AAA", "XFD"]);
    }
}
