//! Word processor documents (`spec/grading.md` §8.5).
//!
//! Paragraphs and tables in the order of the document, headings marked with `#`, the cells of a row
//! separated by tabs, list items with their marks. Tracked changes count as accepted: what was
//! deleted or moved away is not there, what was inserted is; a list of the changes comes apart.
//! Headers and footers, notes and comments stand at the end under headings.

mod lists;
mod redlines;

use std::collections::HashMap;

use self::lists::{Item, Lists};
use self::redlines::{Redlines, heading_like};
use super::package::{Package, relations};
use super::xml::{Node, attribute, walk};
use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

const FORMAT: &str = "docx";

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let mut package = Package::open(bytes, FORMAT, limits)?;
    let body = package
        .xml("word/document.xml")?
        .ok_or_else(|| ExtractError::broken(FORMAT, "it has no `word/document.xml`"))?;
    let lists = Lists::read(&mut package, limits)?;
    let mut reader = Body::new(lists, limits);
    walk(&body, FORMAT, limits, |node| reader.visit(node))?;
    let margins = margins(&mut package, limits)?;
    let notes = notes(&mut package, limits)?;
    let mut sink = reader.sink;
    sink.push(&margins);
    sink.push(&notes);
    let comments = match package.xml("word/comments.xml")? {
        Some(xml) => comments(&xml, limits, &reader.anchors)?,
        None => None,
    };
    if let Some(comments) = &comments {
        sink.push(comments);
    }
    let mut document = sink.into_document(Format::Docx);
    document.comments = comments;
    document.tracked_changes = reader.redlines.into_text();
    Ok(document)
}

/// The text of the document's body.
struct Body {
    sink: TextSink,
    /// The paragraph that is being read, and those around it that wait (text boxes).
    paragraphs: Vec<Paragraph>,
    /// The table rows that are being read, the innermost last.
    rows: Vec<Vec<String>>,
    in_text: bool,
    /// Depth inside of elements whose content does not count.
    skipped: usize,
    /// Comments whose range begins in the paragraphs that are being read.
    anchors: HashMap<String, String>,
    lists: Lists,
    redlines: Redlines,
    /// Paragraphs begun so far.
    count: usize,
    /// The last paragraph that is like a heading.
    place: Option<String>,
}

#[derive(Default)]
struct Paragraph {
    text: String,
    heading: usize,
    item: Option<Item>,
    comments: Vec<String>,
}

/// Elements whose content is not part of the accepted text, or stands twice.
const SKIPPED: &[&str] = &["del", "moveFrom", "Fallback", "delText", "instrText"];

impl Body {
    fn new(lists: Lists, limits: &Limits) -> Self {
        Self {
            sink: TextSink::new(limits),
            paragraphs: Vec::new(),
            rows: Vec::new(),
            in_text: false,
            skipped: 0,
            anchors: HashMap::new(),
            lists,
            redlines: Redlines::default(),
            count: 0,
            place: None,
        }
    }

    fn visit(&mut self, node: Node<'_, '_>) {
        let (place, count) = (&self.place, self.count);
        self.redlines.visit(node, || {
            place.clone().unwrap_or_else(|| format!("Para {count}"))
        });
        match node {
            Node::Open(name, _) if self.skipped > 0 || SKIPPED.contains(&name) => self.skipped += 1,
            Node::Close(_) if self.skipped > 0 => self.skipped -= 1,
            Node::Text(text) if self.in_text && self.skipped == 0 => self.write(text),
            Node::Open(name, element) => match name {
                "p" => {
                    self.count += 1;
                    self.paragraphs.push(Paragraph::default());
                }
                "t" => self.in_text = true,
                "tab" => self.write("\t"),
                "br" | "cr" => self.write("\n"),
                "noBreakHyphen" => self.write("-"),
                "tr" => self.rows.push(Vec::new()),
                "tc" => {
                    if let Some(row) = self.rows.last_mut() {
                        row.push(String::new());
                    }
                }
                "pStyle" => {
                    if let (Some(style), Some(paragraph)) =
                        (attribute(element, "val"), self.paragraphs.last_mut())
                    {
                        paragraph.heading = heading(&style);
                        paragraph.item = paragraph.item.take().or_else(|| list_style(&style));
                    }
                }
                "numId" | "ilvl" => {
                    if let (Some(value), Some(paragraph)) =
                        (attribute(element, "val"), self.paragraphs.last_mut())
                    {
                        numbering(paragraph, name, value);
                    }
                }
                "footnoteReference" | "endnoteReference" => {
                    if let Some(id) = attribute(element, "id") {
                        self.write(&format!("[{}]", note_mark(name, &id)));
                    }
                }
                "commentRangeStart" | "commentReference" => {
                    if let (Some(id), Some(paragraph)) =
                        (attribute(element, "id"), self.paragraphs.last_mut())
                    {
                        paragraph.comments.push(id);
                    }
                }
                _ => {}
            },
            Node::Close("t") => self.in_text = false,
            Node::Close("p") => self.end_paragraph(),
            Node::Close("tr") => self.end_row(),
            Node::Close(_) | Node::Text(_) => {}
        }
    }

    fn write(&mut self, text: &str) {
        if let Some(paragraph) = self.paragraphs.last_mut() {
            paragraph.text.push_str(text);
        }
    }

    fn end_paragraph(&mut self) {
        let Some(paragraph) = self.paragraphs.pop() else {
            return;
        };
        let text = paragraph.text.trim();
        for id in paragraph.comments {
            self.anchors.entry(id).or_insert_with(|| text.to_owned());
        }
        if text.is_empty() {
            return;
        }
        if let Some(place) = heading_like(text) {
            self.place = Some(place);
        }
        match self.rows.last_mut().and_then(|row| row.last_mut()) {
            Some(cell) => {
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(&text.replace(['\n', '\t'], " "));
            }
            None if paragraph.heading > 0 => {
                let marks = "#".repeat(paragraph.heading);
                self.sink.line(&format!("{marks} {text}"));
            }
            None => {
                let mark = paragraph.item.map(|item| self.lists.mark(&item));
                self.sink.line(&(mark.unwrap_or_default() + text));
            }
        }
    }

    fn end_row(&mut self) {
        let Some(row) = self.rows.pop() else { return };
        // A table inside of a cell becomes a part of the cell.
        match self.rows.last_mut().and_then(|outer| outer.last_mut()) {
            Some(cell) => {
                if !cell.is_empty() {
                    cell.push_str(" / ");
                }
                cell.push_str(&row.join(" | "));
            }
            None => self.sink.line(&row.join("\t")),
        }
    }
}

/// The level of a heading style (`Heading 2`, `heading2`, `Title`); 0 for other styles.
fn heading(style: &str) -> usize {
    let style = style.to_lowercase().replace(' ', "");
    if style == "title" {
        return 1;
    }
    style
        .strip_prefix("heading")
        .and_then(|level| level.parse().ok())
        .filter(|level| (1..=9).contains(level))
        .unwrap_or(0)
}

/// The list item that a style makes of a paragraph: `List Bullet`, `ListNumber2`.
fn list_style(style: &str) -> Option<Item> {
    let style = style.to_lowercase().replace(' ', "");
    let rest = style
        .strip_prefix("listbullet")
        .or_else(|| style.strip_prefix("listnumber"))?;
    let level = rest
        .parse::<usize>()
        .map_or(0, |level| level.saturating_sub(1));
    Some(Item { list: style, level })
}

/// A numbering property of the paragraph itself, which wins over that of its style. The list `0`
/// is none.
fn numbering(paragraph: &mut Paragraph, name: &str, value: String) {
    if name == "numId" && value == "0" {
        paragraph.item = None;
        return;
    }
    let item = paragraph.item.get_or_insert_with(|| Item {
        list: String::new(),
        level: 0,
    });
    if name == "numId" {
        item.list = value;
    } else {
        item.level = value.parse().unwrap_or(0);
    }
}

/// The texts of headers and footers, each once.
fn margins(package: &mut Package<'_>, limits: &Limits) -> Result<String, ExtractError> {
    let mut related: Vec<(String, String)> = relations(package, "word/document.xml", limits)?
        .into_values()
        .filter(|(kind, _)| kind == "header" || kind == "footer")
        .collect();
    related.sort();
    let mut lines: Vec<String> = Vec::new();
    for (kind, path) in related {
        let Some(xml) = package.xml(&path)? else {
            continue;
        };
        let mut reader = Body::new(Lists::default(), limits);
        walk(&xml, FORMAT, limits, |node| reader.visit(node))?;
        let text = reader.sink.into_text();
        let line = format!("{kind}: {}", text.trim().replace('\n', " / "));
        if !text.trim().is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
    Ok(section("HEADERS AND FOOTERS", &lines))
}

/// How a note is marked in the text and at its own place.
fn note_mark(element: &str, id: &str) -> String {
    let kind = if element.starts_with("end") {
        "endnote"
    } else {
        "footnote"
    };
    format!("{kind} {id}")
}

/// Footnotes and endnotes.
fn notes(package: &mut Package<'_>, limits: &Limits) -> Result<String, ExtractError> {
    let mut lines = Vec::new();
    for path in ["word/footnotes.xml", "word/endnotes.xml"] {
        let Some(xml) = package.xml(path)? else {
            continue;
        };
        let mut mark = None;
        let mut reader = Body::new(Lists::default(), limits);
        walk(&xml, FORMAT, limits, |node| match node {
            Node::Open(name @ ("footnote" | "endnote"), element) => {
                // Those with a type are the lines that part notes from the text.
                let plain = attribute(element, "type").is_none_or(|kind| kind == "normal");
                mark = attribute(element, "id")
                    .filter(|_| plain)
                    .map(|id| note_mark(name, &id));
                reader = Body::new(Lists::default(), limits);
            }
            Node::Close("footnote" | "endnote") => {
                let done = std::mem::replace(&mut reader, Body::new(Lists::default(), limits));
                let text = done.sink.into_text();
                if let (Some(mark), false) = (mark.take(), text.trim().is_empty()) {
                    lines.push(format!("[{mark}] {}", text.trim().replace('\n', " / ")));
                }
            }
            node => reader.visit(node),
        })?;
    }
    Ok(section("NOTES", &lines))
}

fn section(heading: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    format!("=== {heading} ===\n{}\n", lines.join("\n"))
}

/// All comments with author, date, the paragraph they belong to and their text.
fn comments(
    xml: &str,
    limits: &Limits,
    anchors: &HashMap<String, String>,
) -> Result<Option<String>, ExtractError> {
    let mut lines = Vec::new();
    let mut head = String::new();
    let mut text = String::new();
    let mut in_text = false;
    walk(xml, FORMAT, limits, |node| match node {
        Node::Open("comment", element) => {
            let of = |name| attribute(element, name).unwrap_or_default();
            let anchor = anchors
                .get(&of("id"))
                .map(String::as_str)
                .unwrap_or_default();
            head = format!(
                "{} ({}) on \"{}\"",
                of("author"),
                of("date"),
                shortened(anchor)
            );
            text.clear();
        }
        Node::Open("t", _) => in_text = true,
        Node::Close("t") => in_text = false,
        Node::Close("p") => text.push(' '),
        Node::Text(piece) if in_text => text.push_str(piece),
        Node::Close("comment") => lines.push(format!("{head}: {}", text.trim())),
        _ => {}
    })?;
    Ok((!lines.is_empty()).then(|| format!("=== DOCUMENT COMMENTS ===\n{}\n", lines.join("\n"))))
}

/// At most 100 characters of a paragraph, enough to find it.
fn shortened(paragraph: &str) -> String {
    match paragraph.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &paragraph[..end]),
        None => paragraph.to_owned(),
    }
}
