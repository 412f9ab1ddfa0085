//! How the slides of a presentation look: where shapes are, and how their texts are set.

use quick_xml::events::BytesStart;
use serde::Serialize;

use super::package::Package;
use super::pptx::slide_paths;
use super::xml::{Node, attribute, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

const FORMAT: &str = "pptx";

/// Units of length in a document for one centimetre.
const EMU_PER_CM: f64 = 360_000.0;

/// Shapes of one slide, and runs of text of one shape, at most.
const MAX_SHAPES: usize = 500;
const MAX_RUNS: usize = 200;

/// Characters of one run that are kept.
const RUN_CHARS: usize = 500;

/// How one slide looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SlideLook {
    /// Position, from 1.
    pub slide: usize,
    /// Its shapes from back to front.
    pub shapes: Vec<ShapeLook>,
}

/// A shape of a slide. What is absent comes from the layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ShapeLook {
    /// Its name in the document.
    pub name: String,
    /// `shape`, `picture`, `table_or_chart` or `line`.
    pub kind: &'static str,
    /// What it stands for in the layout, such as `title` or `body`.
    pub placeholder: Option<String>,
    /// Left edge, top edge, width and height in centimetres.
    pub box_cm: Option<[f64; 4]>,
    /// The colour that it is filled with: `#RRGGBB` or the name of a theme's colour.
    pub fill: Option<String>,
    /// Its texts.
    pub texts: Vec<RunLook>,
}

/// A run of text that is set in one way. What is absent comes from the layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunLook {
    /// The text.
    pub text: String,
    /// The typeface.
    pub font: Option<String>,
    /// Size in points.
    pub size_pt: Option<f64>,
    /// Whether it is bold.
    pub bold: Option<bool>,
    /// Whether it is italic.
    pub italic: Option<bool>,
    /// `#RRGGBB` or the name of a theme's colour.
    pub colour: Option<String>,
}

/// How all slides of a pptx file look.
///
/// # Errors
/// [`ExtractError`] where the file is broken or crosses a limit.
pub fn slide_looks(bytes: &[u8], limits: &Limits) -> Result<Vec<SlideLook>, ExtractError> {
    let mut package = Package::open(bytes, FORMAT, limits)?;
    let mut slides = Vec::new();
    let paths = slide_paths(&mut package, limits)?;
    for (at, path) in paths.iter().take(limits.parts).enumerate() {
        let Some(xml) = package.xml(path)? else {
            continue;
        };
        let mut reader = Reader::default();
        walk(&xml, FORMAT, limits, |node| reader.take(node))?;
        slides.push(SlideLook {
            slide: at + 1,
            shapes: reader.done,
        });
    }
    Ok(slides)
}

/// Where a colour belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Of {
    #[default]
    Nothing,
    Shape,
    Run,
}

#[derive(Debug, Default)]
struct Reader {
    done: Vec<ShapeLook>,
    open: Option<ShapeLook>,
    run: Option<RunLook>,
    colours: Of,
    in_fill: bool,
    in_text: bool,
    /// The line around a shape has a fill of its own.
    in_line: bool,
}

impl Reader {
    fn take(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open(name, element) => self.open(name, element),
            Node::Close(name) => self.close(name),
            Node::Text(text) => {
                if self.in_text
                    && let Some(run) = &mut self.run
                {
                    let left = RUN_CHARS.saturating_sub(run.text.chars().count());
                    run.text.extend(text.chars().take(left));
                }
            }
        }
    }

    fn open(&mut self, name: &str, element: &BytesStart<'_>) {
        if let Some(kind) = kind(name) {
            self.open = Some(ShapeLook {
                kind,
                ..ShapeLook::default()
            });
        }
        let Some(shape) = &mut self.open else { return };
        match name {
            "cNvPr" if shape.name.is_empty() => {
                shape.name = attribute(element, "name").unwrap_or_default();
            }
            "ph" => {
                let kind = attribute(element, "type");
                shape.placeholder = Some(kind.unwrap_or_else(|| "body".to_owned()));
            }
            "off" => place(shape, 0, ["x", "y"], element),
            "ext" if attribute(element, "cx").is_some() => place(shape, 2, ["cx", "cy"], element),
            "spPr" => self.colours = Of::Shape,
            "ln" => self.in_line = true,
            "r" | "fld" => self.run = Some(RunLook::default()),
            "rPr" => {
                self.colours = Of::Run;
                if let Some(run) = &mut self.run {
                    set(run, element);
                }
            }
            "latin" if self.colours == Of::Run => {
                if let Some(run) = &mut self.run {
                    run.font = attribute(element, "typeface");
                }
            }
            "solidFill" => self.in_fill = !self.in_line,
            "srgbClr" | "schemeClr" if self.in_fill => {
                let value = attribute(element, "val");
                let colour = value.map(|value| match name {
                    "srgbClr" => format!("#{}", value.to_uppercase()),
                    _ => value,
                });
                match (self.colours, &mut self.run) {
                    (Of::Shape, _) => shape.fill = colour,
                    (Of::Run, Some(run)) => run.colour = colour,
                    _ => {}
                }
            }
            "t" => self.in_text = true,
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "spPr" | "rPr" => self.colours = Of::Nothing,
            "solidFill" => self.in_fill = false,
            "ln" => self.in_line = false,
            "t" => self.in_text = false,
            "r" | "fld" => {
                if let (Some(shape), Some(run)) = (&mut self.open, self.run.take())
                    && shape.texts.len() < MAX_RUNS
                    && !run.text.is_empty()
                {
                    shape.texts.push(run);
                }
            }
            name if kind(name).is_some() => {
                if let Some(shape) = self.open.take()
                    && self.done.len() < MAX_SHAPES
                {
                    self.done.push(shape);
                }
            }
            _ => {}
        }
    }
}

fn kind(element: &str) -> Option<&'static str> {
    match element {
        "sp" => Some("shape"),
        "pic" => Some("picture"),
        "graphicFrame" => Some("table_or_chart"),
        "cxnSp" => Some("line"),
        _ => None,
    }
}

/// Sets two lengths of the shape's box.
fn place(shape: &mut ShapeLook, at: usize, names: [&str; 2], element: &BytesStart<'_>) {
    let length = |name: &str| attribute(element, name)?.parse::<f64>().ok();
    let frame = shape.box_cm.get_or_insert([0.0; 4]);
    for (slot, name) in frame[at..].iter_mut().zip(names) {
        let cm = length(name).unwrap_or_default() / EMU_PER_CM;
        *slot = (cm * 100.0).round() / 100.0;
    }
}

fn set(run: &mut RunLook, element: &BytesStart<'_>) {
    let flag = |name| attribute(element, name).map(|word| word == "1" || word == "true");
    let size = attribute(element, "sz").and_then(|size| size.parse::<f64>().ok());
    run.size_pt = size.map(|hundredths| hundredths / 100.0);
    run.bold = flag("b");
    run.italic = flag("i");
}
