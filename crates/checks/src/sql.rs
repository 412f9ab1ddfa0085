//! `sql_validator` and `sql_field_check`: what a query on a database of the world gives (§6.3.9,
//! §6.5).

use formats::{Object, lenient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::field::{Expectation, Found, ResultType, text};
use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::{Answer, Side};
use settings::problem::Findings;
use settings::{NoSettings, optional_number};

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
    #[serde(flatten)]
    expectation: Expectation,
}

pub(crate) struct SqlFieldCheck;

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
        values.expectation.check(findings);
    }

    async fn evaluate(
        &self,
        values: &SqlFieldValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let value = async |side: Side| {
            let answer = case
                .evidence
                .query(side, &values.db, &values.sql, values.params.clone())
                .await?;
            Ok::<Value, EvalError>(match values.expectation.result_type {
                ResultType::RowCount => answer.row_count.into(),
                ResultType::Exists => (answer.row_count > 0).into(),
                _ => answer.first(),
            })
        };
        let expectation = &values.expectation;
        let found = match expectation.sides() {
            (side, None) => Found::One(value(side).await?),
            (before, Some(after)) => Found::Both(value(before).await?, value(after).await?),
        };
        let mut verdict = expectation.verdict(found);
        let field = values.sql.as_str().into();
        verdict.values.insert("field_checked".to_owned(), field);
        Ok(verdict)
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
