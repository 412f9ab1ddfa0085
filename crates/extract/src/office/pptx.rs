//! Presentations (`spec/grading.md` §8.4): the text of each slide, tables by rows, then the
//! speaker's notes under a heading.

use super::package::{Package, relations};
use super::sheet_extras::charts_of;
use super::xml::{Node, attribute, value, walk};
use crate::document::{Document, Format, Part, PartKind};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

const FORMAT: &str = "pptx";

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let mut package = Package::open(bytes, FORMAT, limits)?;
    let paths = slide_paths(&mut package, limits)?;
    let mut whole = TextSink::new(limits);
    let mut parts = Vec::new();
    for (index, path) in paths.iter().take(limits.parts).enumerate() {
        let Some(xml) = package.xml(path)? else {
            continue;
        };
        let mut slide = shapes(&xml, limits)?;
        for chart in charts_of(&mut package, path, FORMAT, limits)? {
            slide.text.push_str(&format!("[{chart}]\n"));
        }
        if let Some(notes) = notes(&mut package, path, limits)? {
            slide.text.push_str("--- Notes ---\n");
            slide.text.push_str(&notes);
        }
        let title = slide.title();
        whole.line(&format!("=== Slide {}: {title} ===", index + 1));
        whole.push(&slide.text);
        parts.push(Part {
            index,
            kind: PartKind::Slide,
            title,
            text: slide.text,
        });
        if whole.is_full() {
            break;
        }
    }
    let mut document = whole.into_document(Format::Pptx);
    if parts.len() < paths.len() {
        document.truncated = true;
        document.notes.push(format!(
            "{} of {} slides are read",
            parts.len(),
            paths.len()
        ));
    }
    document.parts = parts;
    Ok(document)
}

/// The files of the slides in the order of the presentation.
pub(super) fn slide_paths(
    package: &mut Package<'_>,
    limits: &Limits,
) -> Result<Vec<String>, ExtractError> {
    let missing = |name: &str| ExtractError::broken(FORMAT, format!("it has no `{name}`"));
    let name = "ppt/presentation.xml";
    let presentation = package.xml(name)?.ok_or_else(|| missing(name))?;
    let targets = relations(package, "ppt/presentation.xml", limits)?;
    let mut paths = Vec::new();
    walk(&presentation, FORMAT, limits, |node| {
        if let Node::Open("sldId", element) = node {
            // `id` stands there twice: without prefix a number, with prefix the relation.
            let relation = element
                .attributes()
                .flatten()
                .find(|a| a.key.as_ref().ends_with(":id"))
                .and_then(|a| value(&a));
            if let Some((_, path)) = relation.and_then(|id| targets.get(&id)) {
                paths.push(path.clone());
            }
        }
    })?;
    Ok(paths)
}

/// The text of the shapes of a slide.
#[derive(Default)]
struct Shapes {
    text: String,
    /// Text of the shape that is the title.
    title: String,
    /// Text of the body placeholders: of a notes page, the notes.
    body: String,
    placeholder: String,
    paragraph: String,
    /// Cells of the table row that is being read.
    row: Option<Vec<String>>,
    in_text: bool,
    /// Depth inside of alternatives that stand twice.
    skipped: usize,
}

fn shapes(xml: &str, limits: &Limits) -> Result<Shapes, ExtractError> {
    let mut shapes = Shapes::default();
    walk(xml, FORMAT, limits, |node| shapes.visit(node))?;
    Ok(shapes)
}

impl Shapes {
    fn visit(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open(name, _) if self.skipped > 0 || name == "Fallback" => self.skipped += 1,
            Node::Close(_) if self.skipped > 0 => self.skipped -= 1,
            Node::Text(text) if self.in_text && self.skipped == 0 => self.paragraph.push_str(text),
            Node::Open("sp", _) => self.placeholder.clear(),
            Node::Open("ph", element) => {
                // Without a type it is a placeholder of the body.
                let kind = attribute(element, "type");
                self.placeholder = kind.unwrap_or_else(|| "body".to_owned());
            }
            Node::Open("t", _) => self.in_text = true,
            Node::Close("t") => self.in_text = false,
            Node::Open("br", _) => self.paragraph.push('\n'),
            Node::Open("tr", _) => self.row = Some(Vec::new()),
            Node::Open("tc", _) => {
                if let Some(row) = &mut self.row {
                    row.push(String::new());
                }
            }
            Node::Close("p") => self.end_paragraph(),
            Node::Close("tr") => {
                if let Some(row) = self.row.take() {
                    self.text.push_str(&row.join("\t"));
                    self.text.push('\n');
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let text = paragraph.trim();
        if text.is_empty() {
            return;
        }
        if let Some(cell) = self.row.as_mut().and_then(|row| row.last_mut()) {
            if !cell.is_empty() {
                cell.push(' ');
            }
            cell.push_str(&text.replace(['\n', '\t'], " "));
            return;
        }
        let own = match self.placeholder.as_str() {
            "title" | "ctrTitle" => Some(&mut self.title),
            "body" => Some(&mut self.body),
            _ => None,
        };
        for target in [Some(&mut self.text), own].into_iter().flatten() {
            target.push_str(text);
            target.push('\n');
        }
    }

    /// The title, else the first line, at most 100 characters.
    fn title(&self) -> String {
        let title = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = if title.is_empty() {
            self.text
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        } else {
            title
        };
        title.chars().take(100).collect()
    }
}

/// The speaker's notes of the slide at `path`.
fn notes(
    package: &mut Package<'_>,
    path: &str,
    limits: &Limits,
) -> Result<Option<String>, ExtractError> {
    let relations = relations(package, path, limits)?;
    let notes = relations
        .into_values()
        .find(|(kind, _)| kind == "notesSlide");
    let Some((_, path)) = notes else {
        return Ok(None);
    };
    let Some(xml) = package.xml(&path)? else {
        return Ok(None);
    };
    let body = shapes(&xml, limits)?.body;
    Ok((!body.trim().is_empty()).then_some(body))
}
