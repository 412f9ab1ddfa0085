//! Word processor documents (`spec/grading.md` §8.5).
//!
//! Paragraphs and tables in the order of the document, headings marked with `#`, the cells of a row
//! separated by tabs. Tracked changes count as accepted: what was deleted or moved away is not
//! there, what was inserted is. Comments stand at the end under a heading.

use std::collections::HashMap;

use super::package::Package;
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
    let mut reader = Body::new(limits);
    walk(&body, FORMAT, limits, |node| reader.visit(node))?;
    let mut sink = reader.sink;
    let comments = match package.xml("word/comments.xml")? {
        Some(xml) => comments(&xml, limits, &reader.anchors)?,
        None => None,
    };
    if let Some(comments) = &comments {
        sink.push(comments);
    }
    let mut document = sink.into_document(Format::Docx);
    document.comments = comments;
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
}

#[derive(Default)]
struct Paragraph {
    text: String,
    heading: usize,
    comments: Vec<String>,
}

/// Elements whose content is not part of the accepted text, or stands twice.
const SKIPPED: &[&str] = &["del", "moveFrom", "Fallback", "delText", "instrText"];

impl Body {
    fn new(limits: &Limits) -> Self {
        Self {
            sink: TextSink::new(limits),
            paragraphs: Vec::new(),
            rows: Vec::new(),
            in_text: false,
            skipped: 0,
            anchors: HashMap::new(),
        }
    }

    fn visit(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open(name, _) if self.skipped > 0 || SKIPPED.contains(&name) => self.skipped += 1,
            Node::Close(_) if self.skipped > 0 => self.skipped -= 1,
            Node::Text(text) if self.in_text && self.skipped == 0 => self.write(text),
            Node::Open(name, element) => match name {
                "p" => self.paragraphs.push(Paragraph::default()),
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
            None => self.sink.line(text),
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
