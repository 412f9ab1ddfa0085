//! How the cells of a workbook look: fill, colour and weight of the text (ECMA-376 part 1, 18.8).

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use super::colours::{Colour, Palette};
use super::package::{Package, relations};
use super::xml::{Node, attribute, value, walk};
use crate::error::ExtractError;
use crate::limits::Limits;

const FORMAT: &str = "xlsx";

/// Cells of a rectangle, counted from 0, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRange {
    /// The first row.
    pub top: u32,
    /// The first column.
    pub left: u32,
    /// The last row.
    pub bottom: u32,
    /// The last column.
    pub right: u32,
}

impl CellRange {
    fn contains(&self, (row, column): (u32, u32)) -> bool {
        (self.top..=self.bottom).contains(&row) && (self.left..=self.right).contains(&column)
    }

    /// `A1` or `B2:C5`.
    fn read(text: &str) -> Option<Self> {
        let (first, last) = text.split_once(':').unwrap_or((text, text));
        let ((top, left), (bottom, right)) = (position(first)?, position(last)?);
        Some(Self {
            top,
            left,
            bottom,
            right,
        })
    }
}

/// How one cell looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellFormat {
    /// The colour of a solid fill.
    pub highlight: Option<Colour>,
    /// The colour of the text, where one is set.
    pub text: Option<Colour>,
    /// Whether the text is bold.
    pub bold: bool,
}

/// How cells of one sheet look.
#[derive(Debug, Default)]
pub struct SheetFormats {
    formats: Vec<CellFormat>,
    /// Number of the format by position; absent where a cell was never touched.
    cells: HashMap<(u32, u32), usize>,
    merged: Vec<CellRange>,
}

impl SheetFormats {
    /// How the cell at a position from 0 looks.
    #[must_use]
    pub fn cell(&self, row: u32, column: u32) -> CellFormat {
        let format = self.cells.get(&(row, column)).copied().unwrap_or_default();
        self.formats.get(format).cloned().unwrap_or_default()
    }

    /// Whether the cell is hidden under the first cell of a merged range.
    #[must_use]
    pub fn is_covered(&self, row: u32, column: u32) -> bool {
        self.merged
            .iter()
            .any(|range| range.contains((row, column)) && (range.top, range.left) != (row, column))
    }
}

/// How the cells of `range` look in the sheet `name` of an xlsx or xlsm file (the first one if
/// empty); `None` where there is no such sheet.
///
/// # Errors
/// [`ExtractError`] where the file is broken or crosses a limit.
pub fn sheet_formats(
    bytes: &[u8],
    name: &str,
    range: CellRange,
    limits: &Limits,
) -> Result<Option<SheetFormats>, ExtractError> {
    let mut package = Package::open(bytes, FORMAT, limits)?;
    let Some(path) = sheet_path(&mut package, name, limits)? else {
        return Ok(None);
    };
    let Some(xml) = package.xml(&path)? else {
        return Ok(None);
    };
    let mut sheet = SheetFormats::default();
    walk(&xml, FORMAT, limits, |node| match node {
        Node::Open("c", cell) => {
            let at = attribute(cell, "r").as_deref().and_then(position);
            let format = attribute(cell, "s").and_then(|number| number.parse().ok());
            if let (Some(at), Some(format)) = (at, format)
                && range.contains(at)
            {
                sheet.cells.insert(at, format);
            }
        }
        Node::Open("mergeCell", cells) => {
            let merged = attribute(cells, "ref");
            sheet
                .merged
                .extend(merged.as_deref().and_then(CellRange::read));
        }
        _ => {}
    })?;
    sheet.formats = formats(&mut package, limits)?;
    Ok(Some(sheet))
}

/// The file of the sheet `name`, or of the first one.
fn sheet_path(
    package: &mut Package<'_>,
    name: &str,
    limits: &Limits,
) -> Result<Option<String>, ExtractError> {
    let workbook = "xl/workbook.xml";
    let Some(xml) = package.xml(workbook)? else {
        return Err(ExtractError::broken(
            FORMAT,
            format!("it has no `{workbook}`"),
        ));
    };
    let targets = relations(package, workbook, limits)?;
    let mut found = None;
    walk(&xml, FORMAT, limits, |node| {
        if let Node::Open("sheet", sheet) = node
            && found.is_none()
            && (name.is_empty() || attribute(sheet, "name").as_deref() == Some(name))
        {
            let id = sheet
                .attributes()
                .flatten()
                .find(|a| a.key.as_ref().ends_with(":id"))
                .and_then(|a| value(&a));
            found = id.and_then(|id| targets.get(&id).map(|(_, path)| path.clone()));
        }
    })?;
    Ok(found)
}

/// All formats of the workbook by their numbers.
fn formats(package: &mut Package<'_>, limits: &Limits) -> Result<Vec<CellFormat>, ExtractError> {
    let mut palette = Palette::default();
    if let Some(theme) = package.xml("xl/theme/theme1.xml")? {
        palette.read_theme(&theme, FORMAT, limits)?;
    }
    let Some(xml) = package.xml("xl/styles.xml")? else {
        return Ok(Vec::new());
    };
    let mut styles = Styles::default();
    walk(&xml, FORMAT, limits, |node| styles.take(node))?;
    if !styles.indexed.is_empty() {
        palette.indexed = styles.indexed;
    }
    let colour = |raw: Option<&RawColour>| raw.and_then(|raw| raw.resolved(&palette));
    Ok(styles
        .formats
        .iter()
        .map(|(font, fill)| {
            let font = styles.fonts.get(*font);
            CellFormat {
                highlight: colour(styles.fills.get(*fill).and_then(Option::as_ref)),
                text: colour(font.and_then(|font| font.colour.as_ref())),
                bold: font.is_some_and(|font| font.bold),
            }
        })
        .collect())
}

/// A colour as the file names it.
#[derive(Debug)]
enum RawColour {
    Rgb(String),
    Indexed(usize),
    Theme(usize, f64),
}

impl RawColour {
    fn of(element: &BytesStart<'_>) -> Option<Self> {
        if let Some(rgb) = attribute(element, "rgb") {
            return Some(Self::Rgb(rgb));
        }
        if let Some(theme) = attribute(element, "theme") {
            let tint = attribute(element, "tint").and_then(|tint| tint.parse().ok());
            return Some(Self::Theme(theme.parse().ok()?, tint.unwrap_or_default()));
        }
        attribute(element, "indexed")?
            .parse()
            .ok()
            .map(Self::Indexed)
    }

    fn resolved(&self, palette: &Palette) -> Option<Colour> {
        match self {
            Self::Rgb(rgb) => Colour::of_hex(rgb),
            Self::Indexed(number) => palette.indexed(*number),
            Self::Theme(number, tint) => Some(palette.themed(*number, *tint)),
        }
    }
}

#[derive(Debug, Default)]
struct Font {
    bold: bool,
    colour: Option<RawColour>,
}

/// What stands in `styles.xml`.
#[derive(Debug, Default)]
struct Styles {
    /// The list that is being read; fonts and fills also stand in lists of other kinds.
    list: String,
    fonts: Vec<Font>,
    fills: Vec<Option<RawColour>>,
    solid: bool,
    /// Font and fill of each format.
    formats: Vec<(usize, usize)>,
    indexed: Vec<String>,
}

impl Styles {
    fn take(&mut self, node: Node<'_, '_>) {
        match node {
            Node::Open(name @ ("fonts" | "fills" | "cellXfs" | "dxfs" | "indexedColors"), _) => {
                name.clone_into(&mut self.list);
            }
            Node::Close("fonts" | "fills" | "cellXfs" | "dxfs" | "indexedColors") => {
                self.list.clear();
            }
            Node::Open(name, element) => match self.list.as_str() {
                "fonts" => self.font(name, element),
                "fills" => self.fill(name, element),
                "cellXfs" if name == "xf" => {
                    let id = |key| attribute(element, key).and_then(|id| id.parse().ok());
                    let (font, fill) = (id("fontId"), id("fillId"));
                    self.formats
                        .push((font.unwrap_or_default(), fill.unwrap_or_default()));
                }
                "indexedColors" if name == "rgbColor" => {
                    self.indexed.extend(attribute(element, "rgb"));
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn font(&mut self, name: &str, element: &BytesStart<'_>) {
        match (name, self.fonts.last_mut()) {
            ("font", _) => self.fonts.push(Font::default()),
            ("b", Some(font)) => {
                let off = attribute(element, "val").is_some_and(|v| v == "0" || v == "false");
                font.bold = !off;
            }
            ("color", Some(font)) => font.colour = RawColour::of(element),
            _ => {}
        }
    }

    fn fill(&mut self, name: &str, element: &BytesStart<'_>) {
        match (name, self.fills.last_mut()) {
            ("fill", _) => {
                self.fills.push(None);
                self.solid = false;
            }
            ("patternFill", _) => {
                self.solid = attribute(element, "patternType").as_deref() == Some("solid");
            }
            ("fgColor", Some(fill)) if self.solid => *fill = RawColour::of(element),
            _ => {}
        }
    }
}

/// Row and column of `B7`, from 0.
fn position(reference: &str) -> Option<(u32, u32)> {
    let digits = reference.find(|c: char| c.is_ascii_digit())?;
    let (letters, row) = reference.split_at(digits);
    let mut column = 0_u32;
    for letter in letters.chars() {
        let number = letter.to_ascii_uppercase().to_digit(36)?.checked_sub(9)?;
        column = column.checked_mul(26)?.checked_add(number)?;
    }
    Some((
        row.parse::<u32>().ok()?.checked_sub(1)?,
        column.checked_sub(1)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_positions() {
        assert_eq!(position("A1"), Some((0, 0)));
        assert_eq!(position("AB12"), Some((11, 27)));
        assert_eq!(position("A0"), None);
        assert_eq!(position("12"), None);
        let range = CellRange::read("B2:C5").unwrap();
        assert!(range.contains((1, 1)) && range.contains((4, 2)) && !range.contains((5, 2)));
    }
}
