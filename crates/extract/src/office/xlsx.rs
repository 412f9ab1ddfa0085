//! Workbooks (`spec/grading.md` §8.3): one part per visible sheet, one line per row, cells
//! separated by tabs so that columns keep their places.
//!
//! A cell with a formula shows the formula. The value that stands in the file beside it was put
//! there by whatever program saved the file last, or by none: it is marked as stored and not
//! calculated here, and where there is none the cell says so. A judge must neither take a cell for
//! empty nor an old value for the formula's.

use std::fmt::Write as _;
use std::io::Cursor;

use calamine::{DataRef, ExcelDateTime, Reader as _, SheetType, SheetVisible, Xlsx, XlsxError};

use super::package::Package;
use crate::document::{Document, Format, Part, PartKind};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

const FORMAT: &str = "xlsx";

/// Empty rows in a row that are written as empty lines; longer gaps become one line.
const WRITTEN_GAP: u32 = 3;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    Package::open(bytes, FORMAT, limits)?.measure()?;
    let broken = |error: XlsxError| ExtractError::broken(FORMAT, error);
    let mut workbook: Xlsx<_> = Xlsx::new(Cursor::new(bytes)).map_err(broken)?;
    let sheets = workbook.sheets_metadata().to_vec();
    let mut whole = TextSink::new(limits);
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    let mut hidden = Vec::new();
    for (index, sheet) in sheets.iter().enumerate() {
        if sheet.typ != SheetType::WorkSheet {
            notes.push(format!(
                "`{}` is no sheet of cells and is left out",
                sheet.name
            ));
            continue;
        }
        if sheet.visible != SheetVisible::Visible {
            hidden.push(sheet.name.as_str());
            continue;
        }
        if parts.len() == limits.parts {
            notes.push(format!(
                "only {} sheets are read (limit `parts`)",
                limits.parts
            ));
            break;
        }
        let (text, left_out) = read_sheet(&mut workbook, &sheet.name, limits)?;
        notes.extend(left_out);
        whole.line(&format!("=== Sheet: {} ===", sheet.name));
        whole.push(&text);
        parts.push(Part {
            index,
            kind: PartKind::Sheet,
            title: sheet.name.clone(),
            text,
        });
        if whole.is_full() {
            break;
        }
    }
    if !hidden.is_empty() {
        notes.push(format!("hidden sheets are left out: {}", hidden.join(", ")));
    }
    let mut document = whole.into_document(Format::Xlsx);
    document.parts = parts;
    document.notes.extend(notes);
    Ok(document)
}

/// The text of one sheet, and what was left out of it. Cells come as a stream: a sheet with one
/// cell in the last corner costs no more than any other.
fn read_sheet(
    workbook: &mut Xlsx<Cursor<&[u8]>>,
    name: &str,
    limits: &Limits,
) -> Result<(String, Vec<String>), ExtractError> {
    let broken =
        |error: XlsxError| ExtractError::broken(FORMAT, format!("sheet `{name}`: {error}"));
    let mut cells = workbook.worksheet_cells_reader(name).map_err(broken)?;
    let mut sheet = Sheet {
        sink: TextSink::new(limits),
        row: String::new(),
        row_number: 0,
        column: 0,
    };
    let mut beyond = false;
    while let Some(cell) = cells.next_cell_with_formula().map_err(broken)? {
        let value = value_text(&cell.value);
        let text = cell_text(&value, cell.formula.as_deref());
        if text.is_empty() {
            continue;
        }
        let (row, column) = cell.pos;
        if row >= limits.rows || column >= limits.columns {
            beyond = true;
            continue;
        }
        sheet.cell(row, column, &text);
        if sheet.sink.is_full() {
            break;
        }
    }
    let full = sheet.sink.is_full();
    let mut left_out = Vec::new();
    if beyond {
        left_out.push(format!(
            "sheet `{name}`: only {} rows and {} columns are read (limits `rows`, `columns`)",
            limits.rows, limits.columns
        ));
    }
    if full {
        left_out.push(format!(
            "sheet `{name}` is cut after {} characters (limit `text_chars`)",
            limits.text_chars
        ));
    }
    Ok((sheet.finish(), left_out))
}

/// The lines of a sheet under construction.
struct Sheet {
    sink: TextSink,
    row: String,
    row_number: u32,
    column: u32,
}

impl Sheet {
    fn cell(&mut self, row: u32, column: u32, text: &str) {
        // Cells come in order; one that goes back (a damaged file) is written where it comes.
        if row > self.row_number {
            self.end_row();
            let gap = row - self.row_number - 1;
            if gap > WRITTEN_GAP {
                self.sink.line(&format!("[{gap} empty rows]"));
            } else {
                (0..gap).for_each(|_| self.sink.line(""));
            }
            self.row_number = row;
        }
        while self.column < column {
            self.row.push('\t');
            self.column += 1;
        }
        // Tabs and line breaks inside a cell would move the others.
        for c in text.chars() {
            match c {
                '\t' => self.row.push(' '),
                '\n' => self.row.push('⏎'),
                '\r' => {}
                other => self.row.push(other),
            }
        }
    }

    fn end_row(&mut self) {
        self.sink.line(&self.row);
        self.row.clear();
        self.column = 0;
    }

    fn finish(mut self) -> String {
        if !self.row.is_empty() {
            self.end_row();
        }
        self.sink.into_text()
    }
}

/// The text of a cell: its value, or its formula in braces with what is known of its value.
fn cell_text(value: &str, formula: Option<&str>) -> String {
    match formula.map(str::trim).filter(|formula| !formula.is_empty()) {
        None => value.to_owned(),
        Some(formula) if value.is_empty() => format!("{{={formula}; not calculated}}"),
        Some(formula) => format!("{value} {{={formula}; stored value, not calculated here}}"),
    }
}

fn value_text(value: &DataRef<'_>) -> String {
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
