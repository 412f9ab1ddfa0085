//! What must be true of a cell, and which cells a reference means.

use fancy_regex::{Regex, RegexBuilder};
use serde_json::Value;

/// Cells of a range at most.
const MAX_CELLS: usize = 10_000;

/// Steps after which a search is given up.
const STEP_LIMIT: usize = 1_000_000;

/// Share of the expected number by which a number may differ.
const SHARE: f64 = 1e-4;

/// A check of one value.
#[derive(Debug)]
pub(super) enum Check {
    Text {
        kind: Text,
        expected: Option<String>,
        case: bool,
    },
    Pattern(Regex),
    Number(Number),
    Empty(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    Exact,
    Contains,
    NotContains,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Equals(f64),
    Above(f64),
    Below(f64),
    Between(f64, f64),
}

impl Check {
    pub(super) fn of(
        check_type: &str,
        expected: &Value,
        bounds: (Option<f64>, Option<f64>),
        case: bool,
    ) -> Result<Self, String> {
        let needs = |what: &str| format!("needs `{what}`");
        let text = (!expected.is_null()).then(|| text(expected));
        let text_of = |kind| Check::Text {
            kind,
            expected: text.clone(),
            case,
        };
        let kind = check_type.trim();
        let Some(kind) = kind.strip_prefix("value_") else {
            return Err("must begin with `value_` or `formatting_`".to_owned());
        };
        Ok(match kind {
            "exact_match" => text_of(Text::Exact),
            "contains" => text_of(Text::Contains),
            "not_contains" => text_of(Text::NotContains),
            "regex" => {
                let pattern = text.ok_or_else(|| needs("expected_value"))?;
                Check::Pattern(
                    RegexBuilder::new(&pattern)
                        .case_insensitive(!case)
                        .backtrack_limit(STEP_LIMIT)
                        .build()
                        .map_err(|error| {
                            format!("needs a regular expression in `expected_value` ({error})")
                        })?,
                )
            }
            "equals_number" => {
                let number = number(expected)
                    .ok_or_else(|| "needs a number in `expected_value`".to_owned())?;
                Check::Number(Number::Equals(number))
            }
            "greater_than" => {
                let bound = bounds.0.ok_or_else(|| needs("expected_min"))?;
                Check::Number(Number::Above(bound))
            }
            "less_than" => {
                let bound = bounds.1.ok_or_else(|| needs("expected_max"))?;
                Check::Number(Number::Below(bound))
            }
            "between" => match bounds {
                (Some(min), Some(max)) => Check::Number(Number::Between(min, max)),
                _ => return Err("needs `expected_min` and `expected_max`".to_owned()),
            },
            "not_empty" => Check::Empty(false),
            "is_empty" => Check::Empty(true),
            _ => return Err("unknown check of a value".to_owned()),
        })
    }

    /// Why `value` does not pass.
    pub(super) fn examine(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Text {
                kind,
                expected,
                case,
            } => {
                let fold = |text: &str| {
                    if *case {
                        text.to_owned()
                    } else {
                        text.to_lowercase()
                    }
                };
                let actual = fold(&text(value));
                let wanted = expected.as_deref().map(fold);
                let holds = match (kind, wanted) {
                    (Text::Exact, wanted) => actual == wanted.unwrap_or_default(),
                    (_, None) => return Err("`expected_value` is not given".to_owned()),
                    (Text::Contains, Some(wanted)) => actual.contains(&wanted),
                    (Text::NotContains, Some(wanted)) => !actual.contains(&wanted),
                };
                verdict(holds, value)
            }
            Self::Pattern(regex) => match regex.is_match(&text(value)) {
                Ok(holds) => verdict(holds, value),
                Err(error) => Err(format!("the search was given up: {error}")),
            },
            Self::Number(rule) => {
                let Some(actual) = number(value) else {
                    return Err(format!("found {:?}, which is no number", text(value)));
                };
                let holds = match *rule {
                    Number::Equals(expected) => {
                        let room = if expected == 0.0 {
                            SHARE
                        } else {
                            SHARE * expected.abs()
                        };
                        (actual - expected).abs() <= room
                    }
                    Number::Above(bound) => actual > bound,
                    Number::Below(bound) => actual < bound,
                    Number::Between(min, max) => (min..=max).contains(&actual),
                };
                verdict(holds, value)
            }
            Self::Empty(wanted) => verdict(text(value).trim().is_empty() == *wanted, value),
        }
    }
}

fn verdict(holds: bool, value: &Value) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(format!("found {:?}", text(value)))
    }
}

/// The text of a value: integers without a point, floats with one.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e16 => {
                format!("{float:.1}")
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// The number of a value, written for people or not: currency, separators, `%`, brackets for
/// negative ones.
fn number(value: &Value) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number);
    }
    let text: String = value
        .as_str()?
        .chars()
        .filter(|c| !matches!(c, '$' | '€' | '£' | '¥' | ',') && !c.is_whitespace())
        .collect();
    let (text, sign) = match text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        Some(inner) => (inner.to_owned(), -1.0),
        None => (text, 1.0),
    };
    let (text, factor) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text.as_str(), 1.0),
    };
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number * sign * factor)
}

/// The cells of a reference, row by row: name, row and column from 0.
pub(super) fn cells(reference: &str) -> Result<Vec<(String, u32, u32)>, String> {
    let bad = || "must be a cell such as `B2` or a range such as `B2:C5`".to_owned();
    let (first, last) = reference.split_once(':').unwrap_or((reference, reference));
    let (row_a, column_a) = cell(first).ok_or_else(bad)?;
    let (row_b, column_b) = cell(last).ok_or_else(bad)?;
    let rows = row_a.min(row_b)..=row_a.max(row_b);
    let columns = column_a.min(column_b)..=column_a.max(column_b);
    let count = rows.clone().count().saturating_mul(columns.clone().count());
    if count > MAX_CELLS {
        return Err(format!("has {count} cells, more than {MAX_CELLS}"));
    }
    Ok(rows
        .flat_map(|row| columns.clone().map(move |column| (row, column)))
        .map(|(row, column)| (format!("{}{}", letters(column), row + 1), row, column))
        .collect())
}

/// The cell that a name such as `B2` means: row and column from 0.
pub(super) fn cell(name: &str) -> Option<(u32, u32)> {
    let name = name.trim().to_ascii_uppercase();
    let split = name.find(|c: char| c.is_ascii_digit())?;
    let (letters, digits) = name.split_at(split);
    if letters.is_empty() || letters.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut column = 0_u32;
    for letter in letters.bytes() {
        if !letter.is_ascii_uppercase() {
            return None;
        }
        column = column * 26 + u32::from(letter - b'A') + 1;
    }
    let row: u32 = digits.parse().ok().filter(|row| *row >= 1)?;
    Some((row - 1, column - 1))
}

fn letters(column: u32) -> String {
    let mut left = column + 1;
    let mut letters = Vec::new();
    while left > 0 {
        left -= 1;
        letters.push(char::from(b'A' + u8::try_from(left % 26).unwrap_or(0)));
        left /= 26;
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passes(
        check: &str,
        expected: &Value,
        bounds: (Option<f64>, Option<f64>),
        value: &Value,
    ) -> bool {
        Check::of(check, expected, bounds, false)
            .unwrap()
            .examine(value)
            .is_ok()
    }

    #[test]
    fn each_check_has_its_rule() {
        let none = (None, None);
        for (check, expected, bounds, value, holds) in [
            (
                "value_exact_match",
                json!("Total"),
                none,
                json!("total"),
                true,
            ),
            ("value_exact_match", json!(7), none, json!(7), true),
            ("value_exact_match", json!("7"), none, json!(7.0), false),
            ("value_exact_match", json!(null), none, json!(null), true),
            ("value_contains", json!("ota"), none, json!("TOTAL"), true),
            ("value_contains", json!(null), none, json!("TOTAL"), false),
            ("value_not_contains", json!("x"), none, json!("TOTAL"), true),
            ("value_regex", json!("^t.*l$"), none, json!("Total"), true),
            (
                "value_equals_number",
                json!("1,250"),
                none,
                json!("$1,250.1"),
                true,
            ),
            (
                "value_equals_number",
                json!(1250),
                none,
                json!(1250.2),
                false,
            ),
            ("value_equals_number", json!("12%"), none, json!(0.12), true),
            ("value_equals_number", json!(-5), none, json!("(5)"), true),
            ("value_equals_number", json!(0), none, json!(0.0001), true),
            (
                "value_greater_than",
                json!(null),
                (Some(1.0), None),
                json!(1),
                false,
            ),
            (
                "value_less_than",
                json!(null),
                (None, Some(1.0)),
                json!(0.5),
                true,
            ),
            (
                "value_between",
                json!(null),
                (Some(1.0), Some(2.0)),
                json!(2),
                true,
            ),
            (
                "value_between",
                json!(null),
                (Some(1.0), Some(2.0)),
                json!("two"),
                false,
            ),
            ("value_not_empty", json!(null), none, json!(" "), false),
            ("value_is_empty", json!(null), none, json!(null), true),
        ] {
            let name = format!("{check} {expected} {value}");
            assert_eq!(passes(check, &expected, bounds, &value), holds, "{name}");
        }
        for check in [
            "",
            "value_nonsense",
            "formatting_bold",
            "value_regex",
            "value_between",
        ] {
            assert!(
                Check::of(check, &Value::Null, none, false).is_err(),
                "{check}"
            );
        }
    }

    #[test]
    fn ranges_are_expanded_row_by_row() {
        let names = |reference: &str| {
            let cells = cells(reference).unwrap();
            cells
                .into_iter()
                .map(|(name, _, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names("b2:C3"), ["B2", "C2", "B3", "C3"]);
        assert_eq!(names("AA1"), ["AA1"]);
        assert_eq!(cells("aa10").unwrap()[0], ("AA10".to_owned(), 9, 26));
        for bad in ["", "A0", "1A", "Sheet1!A1", "ABCD1", "A1:ZZZ99999"] {
            assert!(cells(bad).is_err(), "{bad}");
        }
    }
}
