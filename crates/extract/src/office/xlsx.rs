//! Workbooks (`spec/grading.md` §8.3): one part per visible sheet, one line per row, cells
//! separated by tabs so that columns keep their places.
//!
//! A cell with a formula shows the formula. The value that stands in the file beside it was put
//! there by whatever program saved the file last, or by none: it is marked as stored and not
//! calculated here, and where there is none the cell says so. A judge must neither take a cell for
//! empty nor an old value for the formula's.

use super::sheet_extras::Extras;
use super::workbook::{Flow, Workbook};
use crate::document::{Document, Format, Part, PartKind};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

/// Empty rows in a row that are written as empty lines; longer gaps become one line.
const WRITTEN_GAP: u32 = 3;

pub(crate) fn extract(
    extension: &str,
    bytes: &[u8],
    limits: &Limits,
) -> Result<Document, ExtractError> {
    let mut workbook = Workbook::open(extension, bytes, limits)?;
    // The other formats keep them in other ways.
    let mut extras = if workbook.has_extras() {
        Some(Extras::open(bytes, limits)?)
    } else {
        None
    };
    let mut whole = TextSink::new(limits);
    let mut parts = Vec::new();
    let mut notes = Vec::new();
    let mut hidden = Vec::new();
    for (index, sheet) in workbook.sheets().into_iter().enumerate() {
        if !sheet.cells {
            notes.push(format!(
                "`{}` is no sheet of cells and is left out",
                sheet.name
            ));
            continue;
        }
        if !sheet.visible {
            hidden.push(sheet.name);
            continue;
        }
        if parts.len() == limits.parts {
            notes.push(format!(
                "only {} sheets are read (limit `parts`)",
                limits.parts
            ));
            break;
        }
        let (mut text, left_out) = read_sheet(&mut workbook, &sheet.name, limits)?;
        notes.extend(left_out);
        if let Some(extras) = &mut extras {
            let (sections, remarks) = extras.of(&sheet.name)?;
            text.push_str(&sections);
            notes.extend(remarks);
        }
        if let Some((sections, cut)) = workbook.listed_extras(&sheet.name) {
            text.push_str(sections);
            notes.extend(cut.then(|| {
                format!(
                    "sheet `{}`: only some cells are read (limit `cell_bytes`)",
                    sheet.name
                )
            }));
        }
        whole.line(&format!("=== Sheet: {} ===", sheet.name));
        whole.push(&text);
        parts.push(Part {
            index,
            kind: PartKind::Sheet,
            title: sheet.name,
            text,
        });
        if whole.is_full() {
            break;
        }
    }
    if !hidden.is_empty() {
        notes.push(format!("hidden sheets are left out: {}", hidden.join(", ")));
    }
    if !workbook.defined_names().is_empty() {
        whole.line("=== Defined Names ===");
    }
    for (name, reference) in workbook.defined_names() {
        whole.line(&format!("{name} = {reference}"));
    }
    let mut document = whole.into_document(Format::Xlsx);
    document.parts = parts;
    document.notes.extend(notes);
    Ok(document)
}

/// The text of one sheet, and what was left out of it.
fn read_sheet(
    workbook: &mut Workbook<'_>,
    name: &str,
    limits: &Limits,
) -> Result<(String, Vec<String>), ExtractError> {
    let mut sheet = Sheet {
        sink: TextSink::new(limits),
        row: String::new(),
        row_number: 0,
        column: 0,
    };
    let mut beyond = false;
    workbook.cells(name, |cell| {
        if cell.row >= limits.rows || cell.column >= limits.columns {
            beyond = true;
            return Flow::Continue;
        }
        sheet.cell(cell.row, cell.column, &cell_text(cell.value, cell.formula));
        if sheet.sink.is_full() {
            Flow::Stop
        } else {
            Flow::Continue
        }
    })?;
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
    match formula {
        None => value.to_owned(),
        Some(formula) if value.is_empty() => format!("{{={formula}; not calculated}}"),
        Some(formula) => format!("{value} {{={formula}; stored value, not calculated here}}"),
    }
}
