//! What a field of the world must be: how a value is compared, and in which world it is looked for
//! (§6.5).

use evidence::Side;
use formats::lenient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object;
use eval::Verdict;
use settings::problem::Findings;
use settings::{flag, number};

/// How far decimals may differ where nothing else is said.
const fn cent() -> f64 {
    0.01
}

/// The text by which results are compared: `None` for nothing, a point in every float.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e16 => {
                format!("{float:.1}")
            }
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// How the result is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultType {
    /// Equal text, white space around it and (unless `case_sensitive`) case aside.
    #[default]
    String,
    /// Equal integers.
    Integer,
    /// Numbers that differ by at most `tolerance`.
    Decimal,
    /// A count above 0, or a word for true, against the word that is expected.
    Boolean,
    /// Whether there is a row.
    Exists,
    /// The number of rows.
    RowCount,
}

impl ResultType {
    /// Whether `actual` is what is expected. Nothing never matches.
    pub(crate) fn matches(
        self,
        actual: &Value,
        expected: &Value,
        tolerance: f64,
        case_sensitive: bool,
    ) -> bool {
        if actual.is_null() {
            return false;
        }
        match self {
            Self::String => {
                let fold = |value: &Value| {
                    let text = text(value).trim().to_owned();
                    if case_sensitive {
                        text
                    } else {
                        text.to_lowercase()
                    }
                };
                fold(actual) == fold(expected)
            }
            Self::Integer | Self::RowCount => {
                let whole = |value: &Value| lenient::number(value).filter(|n| n.fract() == 0.0);
                whole(actual)
                    .zip(whole(expected))
                    .is_some_and(|(a, b)| a == b)
            }
            Self::Decimal => lenient::number(actual)
                .zip(lenient::number(expected))
                // Sums of decimals are rarely exact.
                .is_some_and(|(a, b)| (a - b).abs() <= tolerance + 1e-9),
            Self::Boolean | Self::Exists => {
                let holds = match lenient::number(actual) {
                    Some(number) => Some(number > 0.0),
                    None => lenient::flag(actual),
                };
                holds.is_some() && holds == lenient::flag(expected)
            }
        }
    }
}

/// Which world is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// The world after the agent worked.
    #[default]
    Final,
    /// The world before.
    Initial,
    /// Both: `expected_value` is `changed` or `unchanged`.
    Both,
}

/// What the settings of a check say of a field.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Expectation {
    /// How the value is compared. `row_count` is the number of rows, or the length of a list or
    /// object.
    #[serde(default)]
    pub(super) result_type: ResultType,
    /// What is expected.
    #[serde(default)]
    expected_value: Value,
    /// How far decimals may differ.
    #[serde(default = "cent", deserialize_with = "number")]
    tolerance: f64,
    /// Whether case counts in texts.
    #[serde(default, deserialize_with = "flag")]
    case_sensitive: bool,
    /// Which world is asked.
    #[serde(default)]
    snapshot: Asked,
}

/// What was found: in one world, or in both.
pub(super) enum Found {
    One(Value),
    Both(Value, Value),
}

impl Expectation {
    /// Reports an expected value that cannot be.
    pub(super) fn check(&self, findings: &mut Findings) {
        let word = self.expected_value.as_str();
        if self.snapshot == Asked::Both && !matches!(word, Some("changed" | "unchanged")) {
            let rule = "must be `changed` or `unchanged` where both worlds are asked";
            findings.error("expected_value", rule, self.expected_value.clone());
        } else if self.expected_value.is_null() {
            findings.missing("expected_value", "must be given");
        }
    }

    /// Where to look: in one world, or in the first and then the second.
    pub(super) const fn sides(&self) -> (Side, Option<Side>) {
        match self.snapshot {
            Asked::Final => (Side::Final, None),
            Asked::Initial => (Side::Initial, None),
            Asked::Both => (Side::Initial, Some(Side::Final)),
        }
    }

    /// Whether what was found is what is expected.
    pub(super) fn verdict(&self, found: Found) -> Verdict {
        let (actual, passed) = match found {
            Found::One(actual) => {
                let passed = self.result_type.matches(
                    &actual,
                    &self.expected_value,
                    self.tolerance,
                    self.case_sensitive,
                );
                (actual, passed)
            }
            Found::Both(before, after) => {
                let changed = before != after;
                let wanted = self.expected_value.as_str() == Some("changed");
                (
                    json!({ "before": before, "after": after }),
                    changed == wanted,
                )
            }
        };
        let message = format!("found {actual}, expected {}", self.expected_value);
        let values = json!({
            "actual_value": actual, "expected_value": self.expected_value, "matches": passed,
        });
        Verdict::new(passed, object(values)).with_message(message)
    }
}
