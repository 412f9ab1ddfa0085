//! `sql_validator` and `sql_field_check`: what a query on a database of the world gives (§6.3.9,
//! §6.5).

use formats::{Object, lenient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::object;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::{NoSettings, flag, number, optional_number};
use evidence::{Answer, Side};

/// How far numbers may differ where nothing else is said.
const TOLERANCE: f64 = 1e-9;

/// Settings of `sql_validator`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SqlValidatorValues {
    /// The query.
    sql_query: String,
    /// What it must give: the value of a single cell, `None` for no rows, else the number of rows.
    #[serde(default)]
    expected_result: Value,
    /// The database: its alias (the path with `_` for `/`, without extension), its path or the end
    /// of it; anything will do where there is only one.
    #[serde(default)]
    db_alias: String,
    /// How far a number may differ.
    #[serde(default, deserialize_with = "optional_number")]
    tolerance: Option<f64>,
}

/// Settings of an eval config of `sql_validator`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SqlValidatorConfig {
    /// For people.
    #[serde(default)]
    #[expect(dead_code, reason = "informational")]
    snapshot_db_registry: String,
}

pub(crate) struct SqlValidator;

impl Eval for SqlValidator {
    type Values = SqlValidatorValues;
    type Config = SqlValidatorConfig;

    fn id(&self) -> &'static str {
        "sql_validator"
    }

    fn about(&self) -> &'static str {
        "a query on a database of the final world gives a result"
    }

    fn check(&self, values: &SqlValidatorValues, _: &SqlValidatorConfig, findings: &mut Findings) {
        if values.sql_query.trim().is_empty() {
            findings.missing("sql_query", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &SqlValidatorValues,
        _: &SqlValidatorConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let answer = case
            .evidence
            .query(
                Side::Final,
                &values.db_alias,
                &values.sql_query,
                Object::new(),
            )
            .await?;
        let actual = scalar(&answer);
        let tolerance = values.tolerance.unwrap_or(TOLERANCE);
        let passed = equal(&actual, &values.expected_result, tolerance);
        let number = lenient::number(&actual).unwrap_or_default();
        Ok(Verdict::new(
            passed,
            object(json!({
                "query_type": "scalar",
                "result_value": number,
                "actual_result": actual,
                "row_count": answer.row_count,
                "database": answer.database,
            })),
        )
        .with_message(format!(
            "the query gives {}, expected {}",
            text(&actual),
            text(&values.expected_result)
        )))
    }
}

/// The one cell, nothing, or the number of rows.
fn scalar(answer: &Answer) -> Value {
    match (answer.row_count, answer.rows.first()) {
        (0, _) => Value::Null,
        (1, Some(row)) if row.len() == 1 => row[0].clone(),
        (count, _) => count.into(),
    }
}

/// The text by which results are compared: `None` for nothing, a point in every float.
fn text(value: &Value) -> String {
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

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(word) => matches!(word.trim().to_lowercase().as_str(), "" | "none" | "null"),
        _ => false,
    }
}

fn equal(actual: &Value, expected: &Value, tolerance: f64) -> bool {
    if actual.is_null() || expected.is_null() {
        return is_nothing(actual) && is_nothing(expected);
    }
    text(actual) == text(expected)
        || lenient::number(actual)
            .zip(lenient::number(expected))
            .is_some_and(|(a, b)| (a - b).abs() <= tolerance)
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

/// Settings of `sql_field_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SqlFieldValues {
    /// The database: alias, path or the end of it; may be absent where there is only one.
    #[serde(default)]
    db: String,
    /// The query; its first cell counts. Named parameters (`:name`) come from `params`.
    sql: String,
    /// Values of the parameters.
    #[serde(default)]
    params: Object,
    /// How the result is compared.
    #[serde(default)]
    result_type: ResultType,
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

pub(crate) const fn cent() -> f64 {
    0.01
}

pub(crate) struct SqlFieldCheck;

impl SqlFieldCheck {
    async fn value(values: &SqlFieldValues, side: Side, case: &Case) -> Result<Value, EvalError> {
        let answer = case
            .evidence
            .query(side, &values.db, &values.sql, values.params.clone())
            .await?;
        Ok(match values.result_type {
            ResultType::RowCount => answer.row_count.into(),
            ResultType::Exists => (answer.row_count > 0).into(),
            _ => answer.first(),
        })
    }
}

impl Eval for SqlFieldCheck {
    type Values = SqlFieldValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "sql_field_check"
    }

    fn about(&self) -> &'static str {
        "the first cell of a query with parameters has a value, or has changed"
    }

    fn check(&self, values: &SqlFieldValues, _: &NoSettings, findings: &mut Findings) {
        if values.sql.trim().is_empty() {
            findings.missing("sql", "must not be empty");
        }
        let word = values.expected_value.as_str();
        if values.snapshot == Asked::Both && !matches!(word, Some("changed" | "unchanged")) {
            let rule = "must be `changed` or `unchanged` where both worlds are asked";
            findings.error("expected_value", rule, values.expected_value.clone());
        } else if values.expected_value.is_null() {
            findings.missing("expected_value", "must be given");
        }
    }

    async fn evaluate(
        &self,
        values: &SqlFieldValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let (actual, passed) = match values.snapshot {
            Asked::Both => {
                let before = Self::value(values, Side::Initial, case).await?;
                let after = Self::value(values, Side::Final, case).await?;
                let changed = before != after;
                let wanted = values.expected_value.as_str() == Some("changed");
                (
                    json!({ "before": before, "after": after }),
                    changed == wanted,
                )
            }
            Asked::Initial | Asked::Final => {
                let side = match values.snapshot {
                    Asked::Initial => Side::Initial,
                    _ => Side::Final,
                };
                let actual = Self::value(values, side, case).await?;
                let passed = values.result_type.matches(
                    &actual,
                    &values.expected_value,
                    values.tolerance,
                    values.case_sensitive,
                );
                (actual, passed)
            }
        };
        let message = format!("found {actual}, expected {}", values.expected_value);
        Ok(Verdict::new(
            passed,
            object(json!({
                "actual_value": actual,
                "expected_value": values.expected_value,
                "field_checked": values.sql,
                "matches": passed,
            })),
        )
        .with_message(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_as_text_or_as_numbers() {
        for (actual, expected, same) in [
            (json!(5), json!("5"), true),
            (json!(5.0), json!("5.0"), true),
            (json!(5.0), json!("5"), true),
            (json!(0.1), json!("0.1000000001"), true),
            (json!(0.1), json!("0.10001"), false),
            (json!(null), json!("None"), true),
            (json!(null), json!(""), true),
            (json!(null), json!("0"), false),
            (json!("won"), json!("won"), true),
            (json!("won"), json!("Won"), false),
            (json!("None"), json!("None"), true),
        ] {
            assert_eq!(
                equal(&actual, &expected, TOLERANCE),
                same,
                "{actual} {expected}"
            );
        }
    }

    #[test]
    fn each_result_type_has_its_rule() {
        use ResultType::{Boolean, Decimal, Integer, String};
        for (kind, actual, expected, matches) in [
            (String, json!(" Won "), json!("won"), true),
            (Integer, json!(3.0), json!("3"), true),
            (Integer, json!(3.5), json!("3.5"), false),
            (Decimal, json!(10.01), json!("10"), true),
            (Decimal, json!(10.02), json!("10"), false),
            (Boolean, json!(2), json!("yes"), true),
            (Boolean, json!(0), json!("true"), false),
            (Boolean, json!(0), json!("f"), true),
            (String, json!(null), json!("None"), false),
        ] {
            let got = kind.matches(&actual, &expected, 0.01, false);
            assert_eq!(got, matches, "{kind:?} {actual} {expected}");
        }
    }
}
