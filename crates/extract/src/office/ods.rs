//! Spreadsheets of the OpenDocument format (OASIS ODF 1.3, part 3, §9).
//!
//! Rows and cells that are alike stand in the file once, with a number: a file of a few bytes can
//! mean a billion cells, so they are unrolled within a budget.

use std::collections::HashSet;

use quick_xml::events::BytesStart;

use super::listed::{CellBudget, ListedCell, ListedSheet, ListedWorkbook};
use super::package::Package;
use super::workbook::letters;
use super::xml::{Node, attribute, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

const FORMAT: &str = "ods";

/// Cells of one sheet whose displayed text, or whose comment, is listed.
const LISTED: usize = 1_000;

pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<ListedWorkbook, ExtractError> {
    let mut package = Package::open(bytes, FORMAT, limits)?;
    if let Some(manifest) = package.xml("META-INF/manifest.xml")?
        && manifest.contains("encryption-data")
    {
        return Err(ExtractError::Encrypted { format: FORMAT });
    }
    let content = package
        .xml("content.xml")?
        .ok_or_else(|| ExtractError::broken(FORMAT, "it has no `content.xml`"))?;
    let mut reader = Reader {
        book: ListedWorkbook::default(),
        budget: CellBudget::new(limits.cell_bytes, limits.rows, limits.columns),
        limits,
        style: String::new(),
        hidden_styles: HashSet::new(),
        sheet: None,
        row: Row::default(),
        cell: None,
        depth_of_tables: 0,
        annotation: None,
    };
    walk(&content, FORMAT, limits, |node| reader.visit(node))?;
    Ok(reader.book)
}

struct Reader<'l> {
    book: ListedWorkbook,
    budget: CellBudget,
    limits: &'l Limits,
    /// The style that is being read, and those that hide a sheet.
    style: String,
    hidden_styles: HashSet<String>,
    sheet: Option<Sheet>,
    row: Row,
    cell: Option<Cell>,
    /// Tables can lie inside of cells; those are not read.
    depth_of_tables: usize,
    annotation: Option<Annotation>,
}

struct Sheet {
    listed: ListedSheet,
    next_row: u32,
    shown: Vec<String>,
    comments: Vec<String>,
}

#[derive(Default)]
struct Row {
    repeated: u32,
    next_column: u32,
    /// Column, how many alike, value, formula.
    cells: Vec<(u32, u32, String, Option<String>)>,
}

struct Cell {
    repeated: u32,
    kind: String,
    /// The value as the file states it, where it is no text.
    stated: Option<String>,
    formula: Option<String>,
    text: String,
}

#[derive(Default)]
struct Annotation {
    author: String,
    text: String,
    in_author: bool,
    in_date: bool,
}

fn number(element: &BytesStart<'_>, name: &str) -> u32 {
    let number = attribute(element, name).and_then(|n| n.parse().ok());
    number.unwrap_or(1_u32).max(1)
}

impl Reader<'_> {
    fn visit(&mut self, node: Node<'_, '_>) {
        if self.annotation.is_some() {
            self.annotated(node);
            return;
        }
        match node {
            Node::Open("style", element) => {
                self.style = attribute(element, "name").unwrap_or_default();
            }
            Node::Open("table-properties", element)
                if attribute(element, "display").is_some_and(|shown| shown == "false") =>
            {
                self.hidden_styles.insert(self.style.clone());
            }
            Node::Open("named-range", element) => {
                let of = |name| attribute(element, name).unwrap_or_default();
                let (name, range) = (of("name"), of("cell-range-address"));
                self.book.names.push((name, range));
            }
            Node::Open("table", element) => self.open_table(element),
            Node::Close("table") => self.close_table(),
            _ if self.depth_of_tables != 1 => {}
            Node::Open("table-row", element) => {
                self.row = Row {
                    repeated: number(element, "number-rows-repeated"),
                    ..Row::default()
                };
            }
            Node::Close("table-row") => self.close_row(),
            Node::Open("table-cell" | "covered-table-cell", element) => {
                self.cell = Some(Cell::of(element));
            }
            Node::Close("table-cell" | "covered-table-cell") => self.close_cell(),
            Node::Open("annotation", _) => self.annotation = Some(Annotation::default()),
            Node::Open("p", _) => self.write(|text| !text.is_empty(), "\n"),
            Node::Open("s", element) => {
                let spaces = number(element, "c").min(1_000) as usize;
                self.write(|_| true, &" ".repeat(spaces));
            }
            Node::Open("tab", _) => self.write(|_| true, "\t"),
            Node::Open("line-break", _) => self.write(|_| true, "\n"),
            Node::Text(text) => self.write(|_| true, text),
            _ => {}
        }
    }

    fn write(&mut self, when: impl Fn(&str) -> bool, more: &str) {
        if let Some(cell) = &mut self.cell
            && when(&cell.text)
        {
            cell.text.push_str(more);
        }
    }

    fn open_table(&mut self, element: &BytesStart<'_>) {
        self.depth_of_tables += 1;
        if self.depth_of_tables > 1 {
            return;
        }
        let style = attribute(element, "style-name").unwrap_or_default();
        self.sheet = Some(Sheet {
            listed: ListedSheet {
                name: attribute(element, "name").unwrap_or_default(),
                visible: !self.hidden_styles.contains(&style),
                ..ListedSheet::default()
            },
            next_row: 0,
            shown: Vec::new(),
            comments: Vec::new(),
        });
    }

    fn close_table(&mut self) {
        self.depth_of_tables = self.depth_of_tables.saturating_sub(1);
        if self.depth_of_tables > 0 {
            return;
        }
        if let Some(mut sheet) = self.sheet.take() {
            for (heading, lines) in [
                ("Number Formats", &sheet.shown),
                ("Comments", &sheet.comments),
            ] {
                super::sheet_extras::section(&mut sheet.listed.sections, heading, lines);
            }
            self.book.sheets.push(sheet.listed);
        }
    }

    fn close_cell(&mut self) {
        let (Some(cell), Some(sheet)) = (self.cell.take(), &mut self.sheet) else {
            return;
        };
        let column = self.row.next_column;
        self.row.next_column = column.saturating_add(cell.repeated);
        let value = cell.value();
        if matches!(cell.kind.as_str(), "percentage" | "currency")
            && !cell.text.is_empty()
            && sheet.shown.len() < LISTED
        {
            let place = place(sheet.next_row, column);
            sheet.shown.push(format!("{place}\t{}", cell.text));
        }
        if !value.is_empty() || cell.formula.is_some() {
            self.row
                .cells
                .push((column, cell.repeated, value, cell.formula));
        }
    }

    fn close_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let Some(sheet) = &mut self.sheet else {
            return;
        };
        let first = sheet.next_row;
        sheet.next_row = first.saturating_add(row.repeated);
        if row.cells.is_empty() {
            return;
        }
        let rows = CellBudget::repeated(self.limits.rows, first, row.repeated);
        for row_number in first..first.saturating_add(rows) {
            for (column, repeated, value, formula) in &row.cells {
                let columns = CellBudget::repeated(self.limits.columns, *column, *repeated);
                for column in *column..column.saturating_add(columns) {
                    let cell = ListedCell {
                        row: row_number,
                        column,
                        value: value.clone(),
                        formula: formula.clone(),
                    };
                    if sheet.listed.cut || !self.budget.add(&mut sheet.listed, cell) {
                        return;
                    }
                }
            }
        }
    }

    /// The comment of a cell.
    fn annotated(&mut self, node: Node<'_, '_>) {
        let Some(annotation) = &mut self.annotation else {
            return;
        };
        match node {
            Node::Open("creator", _) => annotation.in_author = true,
            Node::Close("creator") => annotation.in_author = false,
            Node::Open("date" | "date-string", _) => annotation.in_date = true,
            Node::Close("date" | "date-string") => annotation.in_date = false,
            Node::Open("p", _) => annotation.text.push(' '),
            Node::Text(text) if annotation.in_author => annotation.author.push_str(text),
            Node::Text(text) if !annotation.in_date => annotation.text.push_str(text),
            Node::Close("annotation") => {
                let text: Vec<&str> = annotation.text.split_whitespace().collect();
                if let Some(sheet) = &mut self.sheet
                    && sheet.comments.len() < LISTED
                {
                    let place = place(sheet.next_row, self.row.next_column);
                    let author = annotation.author.trim();
                    let line = format!("{place} ({author}): {}", text.join(" "));
                    sheet.comments.push(line);
                }
                self.annotation = None;
            }
            _ => {}
        }
    }
}

impl Cell {
    fn of(element: &BytesStart<'_>) -> Self {
        let kind = attribute(element, "value-type").unwrap_or_default();
        let stated = match kind.as_str() {
            "float" | "percentage" | "currency" => attribute(element, "value"),
            "date" => attribute(element, "date-value").map(|date| date.replacen('T', " ", 1)),
            "boolean" => attribute(element, "boolean-value").map(|value| value.to_uppercase()),
            "string" => attribute(element, "string-value"),
            _ => None,
        };
        // `of:=SUM([.B2:.B3])`: the language of the formula stands in front.
        let formula = attribute(element, "formula").map(|formula| match formula.split_once('=') {
            Some((_, formula)) => formula.to_owned(),
            None => formula,
        });
        Self {
            repeated: number(element, "number-columns-repeated"),
            kind,
            stated,
            formula: formula.filter(|formula| !formula.is_empty()),
            text: String::new(),
        }
    }

    /// The value: as the file states it, else the text.
    fn value(&self) -> String {
        self.stated.clone().unwrap_or_else(|| self.text.clone())
    }
}

fn place(row: u32, column: u32) -> String {
    format!("{}{}", letters(column), u64::from(row) + 1)
}
