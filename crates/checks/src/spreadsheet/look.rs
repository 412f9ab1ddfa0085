//! What must be true of the look of a cell, or of its formula.

use extract::{CellFormat, CellRange, Colour, SheetFormats};
use formats::lenient;
use serde_json::{Map, Value, json};

use super::SpreadsheetValues;
use super::check::cells;
use super::sheet::Sheet;

/// A check of formatting, with what is expected.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Look {
    Highlight(String),
    TextColour(String),
    Bold(bool),
    Formula(String),
}

impl Look {
    /// The check that `check_type` names after `formatting_`.
    pub(super) fn of(kind: &str, values: &SpreadsheetValues) -> Result<Self, String> {
        let text = |key: &str, value: &Value| match value {
            Value::String(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            _ => Err(format!("needs text in `{key}`")),
        };
        match kind {
            "highlight" => {
                text("expected_highlight", &values.expected_highlight).map(Self::Highlight)
            }
            "text_color" => {
                text("expected_text_color", &values.expected_text_color).map(Self::TextColour)
            }
            "bold" => lenient::flag(&values.expected_bold)
                .map(Self::Bold)
                .ok_or_else(|| "needs true or false in `expected_bold`".to_owned()),
            "formula" => text("expected_formula", &values.expected_formula).map(Self::Formula),
            _ => Err("unknown check of formatting".to_owned()),
        }
    }

    /// The name under which it stands in results.
    const fn key(&self) -> &'static str {
        match self {
            Self::Highlight(_) => "highlight",
            Self::TextColour(_) => "text_color",
            Self::Bold(_) => "bold",
            Self::Formula(_) => "formula",
        }
    }

    fn expected(&self) -> Value {
        match self {
            Self::Highlight(text) | Self::TextColour(text) | Self::Formula(text) => {
                text.as_str().into()
            }
            Self::Bold(bold) => (*bold).into(),
        }
    }

    /// What the cell has, and whether that is what is expected.
    fn examine(&self, format: &CellFormat, formula: Option<&str>) -> (Value, bool) {
        match self {
            Self::Highlight(wanted) => coloured(format.highlight.as_ref(), wanted),
            Self::TextColour(wanted) => coloured(format.text.as_ref(), wanted),
            Self::Bold(wanted) => (format.bold.into(), format.bold == *wanted),
            Self::Formula(wanted) => {
                let actual = formula.map(|formula| format!("={}", formula.trim_start_matches('=')));
                let same = actual.as_deref().map(folded) == Some(folded(wanted));
                (json!(actual), same)
            }
        }
    }

    /// The account of the range `reference`, and why it does not pass. Cells that are covered by a
    /// merged one do not count.
    pub(super) fn account(
        &self,
        reference: &str,
        sheet: &Sheet,
        formats: &SheetFormats,
    ) -> (Value, Option<String>) {
        let cells = match cells(reference) {
            Ok(cells) => cells,
            Err(reason) => return row(reference, 0, &Map::new(), Some(reason)),
        };
        let mut results = Map::new();
        let mut failures: Vec<String> = Vec::new();
        let mut checked = 0;
        for (name, at, column) in cells {
            if formats.is_covered(at, column) {
                continue;
            }
            checked += 1;
            let formula = sheet.formula(at, column);
            let (actual, matches) = self.examine(&formats.cell(at, column), formula);
            if !matches {
                failures.push(format!("{name} has {actual}"));
            }
            let details = json!({
                "expected": self.expected(), "actual": actual, "match": matches,
            });
            let mut result = Map::new();
            result.insert("passed".to_owned(), matches.into());
            result.insert(self.key().to_owned(), details);
            results.insert(name, result.into());
        }
        let problem = match (checked, failures.first()) {
            (0, _) => Some("no cell is left beside merged ones".to_owned()),
            (_, Some(first)) => Some(format!(
                "{} of {checked} cells differ from {} {}: {first}",
                failures.len(),
                self.key(),
                self.expected()
            )),
            (_, None) => None,
        };
        row(reference, checked, &results, problem)
    }
}

fn row(
    reference: &str,
    checked: usize,
    results: &Map<String, Value>,
    problem: Option<String>,
) -> (Value, Option<String>) {
    let passed = results
        .values()
        .filter(|r| r["passed"] == Value::Bool(true))
        .count();
    let row = json!({
        "cell_reference": reference,
        "passed": problem.is_none(),
        "reason": problem.clone().unwrap_or_else(|| "as expected".to_owned()),
        "details": {
            "cells_checked": checked, "cells_passed": passed, "cell_results": results,
        },
    });
    (row, problem)
}

/// The range that `reference` spans; a single cell where it is no reference.
pub(super) fn range(reference: &str) -> CellRange {
    let cells = cells(reference).unwrap_or_default();
    let first = cells
        .first()
        .map_or((0, 0), |(_, row, column)| (*row, *column));
    let last = cells
        .last()
        .map_or((0, 0), |(_, row, column)| (*row, *column));
    CellRange {
        top: first.0,
        left: first.1,
        bottom: last.0,
        right: last.1,
    }
}

/// A colour as results show it, and whether it is `wanted`: `#RRGGBB`, with opacity in front or
/// without, or `theme:<number>:<tint>`.
fn coloured(colour: Option<&Colour>, wanted: &str) -> (Value, bool) {
    let Some(colour) = colour else {
        return (Value::Null, false);
    };
    let theme = colour
        .theme
        .map(|(number, tint)| format!("theme:{number}:{tint:.2}"));
    let digits = |text: &str| {
        let text = text.trim().trim_start_matches('#').to_uppercase();
        match (text.len(), text.is_ascii()) {
            (8, true) => text[2..].to_owned(),
            _ => text,
        }
    };
    let by_theme = theme.as_deref() == Some(wanted.trim());
    let actual = colour.rgb.as_deref().map(digits);
    let by_rgb = match (&actual, colour.theme) {
        // Programs round tints of a theme's colours differently.
        (Some(actual), Some((_, tint))) if tint != 0.0 => near(actual, &digits(wanted)),
        _ => actual == Some(digits(wanted)),
    };
    let shown = colour.rgb.clone().or(theme);
    (json!(shown), by_theme || by_rgb)
}

/// Whether two colours of six digits differ by no more than rounding.
fn near(one: &str, other: &str) -> bool {
    let parts = |text: &str| {
        let number = u32::from_str_radix(text, 16)
            .ok()
            .filter(|_| text.len() == 6);
        number.map(u32::to_be_bytes)
    };
    match (parts(one), parts(other)) {
        (Some(one), Some(other)) => one.iter().zip(other).all(|(a, b)| a.abs_diff(b) <= 3),
        _ => false,
    }
}

/// A formula without white space, case and the sign in front.
fn folded(formula: &str) -> String {
    let formula = formula.trim();
    let formula = formula.strip_prefix('=').unwrap_or(formula);
    formula
        .chars()
        .filter(|c| !c.is_whitespace())
        .flat_map(char::to_uppercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_compared_without_opacity_and_case() {
        let red = Colour {
            rgb: Some("#FF0000".to_owned()),
            theme: None,
        };
        for wanted in ["#ff0000", "FF0000", "80FF0000"] {
            assert!(coloured(Some(&red), wanted).1, "{wanted}");
        }
        assert!(!coloured(Some(&red), "#FF0001").1);
        assert!(!coloured(None, "#FF0000").1);
        let accent = Colour {
            rgb: Some("#5B9BD5".to_owned()),
            theme: Some((4, 0.3999)),
        };
        assert!(coloured(Some(&accent), "theme:4:0.40").1);
        assert!(coloured(Some(&accent), "5b9bd5").1);
    }

    #[test]
    fn formulas_are_compared_without_white_space() {
        assert_eq!(folded("= sum( A1:A3 )"), "SUM(A1:A3)");
        assert_ne!(folded("=A1"), folded("=A2"));
    }
}
