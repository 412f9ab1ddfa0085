//! What a sheet has beside values and formulas: number formats, comments, charts, hidden rows.

use std::collections::HashMap;

use super::chart;
use super::number_format::{built_in, display};
use super::package::{Package, relations};
use super::workbook::letters;
use super::xml::{Node, attribute, value, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

const FORMAT: &str = "xlsx";

/// The largest sheet, unpacked, whose number formats and hidden rows are looked up.
const SHEET_BYTES: u64 = 64 << 20;

/// Cells of one sheet whose number format is listed.
const LISTED: usize = 1_000;

/// The extras of the sheets of a workbook.
pub(super) struct Extras<'a, 'l> {
    package: Package<'a>,
    limits: &'l Limits,
    /// Path of each sheet, by name.
    sheets: HashMap<String, String>,
    /// Number format of each cell style.
    formats: Vec<Option<String>>,
}

impl<'a, 'l> Extras<'a, 'l> {
    pub(super) fn open(bytes: &'a [u8], limits: &'l Limits) -> Result<Self, ExtractError> {
        let mut package = Package::open(bytes, FORMAT, limits)?;
        let sheets = sheet_paths(&mut package, limits)?;
        let formats = match package.xml("xl/styles.xml")? {
            Some(xml) => formats(&xml, limits)?,
            None => Vec::new(),
        };
        Ok(Self {
            package,
            limits,
            sheets,
            formats,
        })
    }

    /// Sections to add to the text of a sheet, and notes.
    pub(super) fn of(&mut self, name: &str) -> Result<(String, Vec<String>), ExtractError> {
        let Some(path) = self.sheets.get(name).cloned() else {
            return Ok((String::new(), Vec::new()));
        };
        let mut text = String::new();
        let mut notes = Vec::new();
        if let Some(xml) = self.package.small_xml(&path, SHEET_BYTES)? {
            let mut cells = Cells {
                formats: &self.formats,
                ..Cells::default()
            };
            walk(&xml, FORMAT, self.limits, |node| cells.visit(node))?;
            section(&mut text, "Number Formats", &cells.listed);
            if cells.more > 0 {
                notes.push(format!(
                    "sheet `{name}`: {} more number formats",
                    cells.more
                ));
            }
            if !cells.hidden.is_empty() {
                let hidden = cells.hidden.join(", ");
                notes.push(format!("sheet `{name}`: hidden, but shown here: {hidden}"));
            }
        }
        let mut comments = Vec::new();
        let mut charts = Vec::new();
        let mut related: Vec<_> = relations(&mut self.package, &path, self.limits)?
            .into_values()
            .collect();
        related.sort();
        for (kind, target) in related {
            match kind.as_str() {
                "comments" => {
                    if let Some(xml) = self.package.xml(&target)? {
                        comments.extend(read_comments(&xml, self.limits)?);
                    }
                }
                "drawing" => {
                    charts.extend(charts_of(&mut self.package, &target, FORMAT, self.limits)?);
                }
                _ => {}
            }
        }
        section(&mut text, "Comments", &comments);
        section(&mut text, "Charts", &charts);
        Ok((text, notes))
    }
}

/// A line for each chart that the drawing or slide at `path` shows.
pub(super) fn charts_of(
    package: &mut Package<'_>,
    path: &str,
    format: &'static str,
    limits: &Limits,
) -> Result<Vec<String>, ExtractError> {
    let mut charts: Vec<String> = relations(package, path, limits)?
        .into_values()
        .filter(|(kind, _)| kind == "chart")
        .map(|(_, target)| target)
        .collect();
    charts.sort();
    let mut lines = Vec::new();
    for target in charts {
        if let Some(xml) = package.xml(&target)? {
            lines.push(chart::describe(&xml, format, limits)?);
        }
    }
    Ok(lines)
}

pub(super) fn section(text: &mut String, heading: &str, lines: &[String]) {
    if !lines.is_empty() {
        text.push_str(&format!("=== {heading} ===\n{}\n", lines.join("\n")));
    }
}

fn sheet_paths(
    package: &mut Package<'_>,
    limits: &Limits,
) -> Result<HashMap<String, String>, ExtractError> {
    let mut paths = HashMap::new();
    let Some(workbook) = package.xml("xl/workbook.xml")? else {
        return Ok(paths);
    };
    let targets = relations(package, "xl/workbook.xml", limits)?;
    walk(&workbook, FORMAT, limits, |node| {
        if let Node::Open("sheet", element) = node {
            let relation = element
                .attributes()
                .flatten()
                .find(|a| a.key.as_ref().ends_with(":id"))
                .and_then(|a| value(&a));
            let target = relation.and_then(|id| targets.get(&id));
            if let (Some(name), Some((_, path))) = (attribute(element, "name"), target) {
                paths.insert(name, path.clone());
            }
        }
    })?;
    Ok(paths)
}

/// The number format of each style of cells.
fn formats(xml: &str, limits: &Limits) -> Result<Vec<Option<String>>, ExtractError> {
    let mut own = HashMap::new();
    let mut styles = Vec::new();
    let mut in_cells = false;
    walk(xml, FORMAT, limits, |node| match node {
        Node::Open("numFmt", element) => {
            let id = attribute(element, "numFmtId").and_then(|id| id.parse::<u32>().ok());
            if let (Some(id), Some(code)) = (id, attribute(element, "formatCode")) {
                own.insert(id, code);
            }
        }
        Node::Open("cellXfs", _) => in_cells = true,
        Node::Close("cellXfs") => in_cells = false,
        Node::Open("xf", element) if in_cells => {
            let id = attribute(element, "numFmtId").and_then(|id| id.parse::<u32>().ok());
            styles.push(id.unwrap_or_default());
        }
        _ => {}
    })?;
    let code = |id: u32| {
        own.get(&id)
            .cloned()
            .or_else(|| built_in(id).map(str::to_owned))
    };
    Ok(styles.into_iter().map(code).collect())
}

/// The cells of a sheet, looked at for their number formats.
#[derive(Default)]
struct Cells<'f> {
    formats: &'f [Option<String>],
    listed: Vec<String>,
    more: usize,
    hidden: Vec<String>,
    /// Place and format of the cell that is being read.
    cell: Option<(String, &'f str)>,
    in_value: bool,
    text: String,
}

impl Cells<'_> {
    fn visit(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open("c", element) => {
                let number = attribute(element, "t").is_none_or(|kind| kind == "n");
                let style = attribute(element, "s").and_then(|s| s.parse::<usize>().ok());
                let format = style.and_then(|style| self.formats.get(style)?.as_deref());
                self.cell = match (attribute(element, "r"), format) {
                    (Some(place), Some(format)) if number => Some((place, format)),
                    _ => None,
                };
            }
            Node::Open("v", _) => {
                self.in_value = true;
                self.text.clear();
            }
            Node::Text(text) if self.in_value => self.text.push_str(text),
            Node::Close("v") => {
                self.in_value = false;
                self.list();
            }
            Node::Open("row", element) if is_hidden(element) => {
                if let Some(row) = attribute(element, "r") {
                    self.hide(format!("row {row}"));
                }
            }
            Node::Open("col", element) if is_hidden(element) => {
                let of = |name| attribute(element, name).and_then(|c| c.parse::<u32>().ok());
                if let (Some(from), Some(to)) = (of("min"), of("max")) {
                    let (from, to) = (
                        letters(from.saturating_sub(1)),
                        letters(to.saturating_sub(1)),
                    );
                    self.hide(if from == to {
                        format!("column {from}")
                    } else {
                        format!("columns {from}-{to}")
                    });
                }
            }
            _ => {}
        }
    }

    fn list(&mut self) {
        let Some((place, format)) = self.cell.take() else {
            return;
        };
        let shown = self
            .text
            .trim()
            .parse()
            .ok()
            .and_then(|n| display(n, format));
        match shown {
            Some(_) if self.listed.len() >= LISTED => self.more += 1,
            Some(shown) => self.listed.push(format!("{place}\t{shown}\t{format}")),
            None => {}
        }
    }

    fn hide(&mut self, what: String) {
        if self.hidden.len() < 100 {
            self.hidden.push(what);
        }
    }
}

fn is_hidden(element: &quick_xml::events::BytesStart<'_>) -> bool {
    attribute(element, "hidden").is_some_and(|hidden| hidden == "1" || hidden == "true")
}

/// `B2 (Ann): text` for each comment.
fn read_comments(xml: &str, limits: &Limits) -> Result<Vec<String>, ExtractError> {
    let mut authors: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    let mut head = String::new();
    let mut text = String::new();
    let mut reading = false;
    walk(xml, FORMAT, limits, |node| match node {
        Node::Open("author", _) => {
            text.clear();
            reading = true;
        }
        Node::Close("author") => {
            authors.push(text.trim().to_owned());
            reading = false;
        }
        Node::Open("comment", element) => {
            let author = attribute(element, "authorId").and_then(|id| id.parse::<usize>().ok());
            let author = author
                .and_then(|id| authors.get(id))
                .map_or("", String::as_str);
            let place = attribute(element, "ref").unwrap_or_default();
            head = format!("{place} ({author})");
            text.clear();
        }
        Node::Open("t", _) => reading = true,
        Node::Close("t") => reading = false,
        Node::Text(piece) if reading => text.push_str(piece),
        Node::Close("comment") => {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("{head}: {text}"));
        }
        _ => {}
    })?;
    Ok(lines)
}
