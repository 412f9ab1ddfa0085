//! `json_field_check`: a value in a JSON file of the world (§6.5).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sql::{Asked, ResultType, cent};
use super::{object, path_pattern};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::{NoSettings, flag, number};
use evidence::Side;

/// Settings of `json_field_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct JsonFieldValues {
    /// The file: a pattern for the last components of its path. Of several the first by path
    /// counts.
    file: String,
    /// Where the value is: a JSON pointer (`/orders/0/id`), or names and numbers in the form
    /// `orders[0].id`. Empty for the whole document.
    #[serde(default)]
    path: String,
    /// How the value is compared. `row_count` is the length of a list or object.
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
    /// Which world is looked at.
    #[serde(default)]
    snapshot: Asked,
}

/// The path as a JSON pointer.
fn pointer(path: &str) -> String {
    let path = path.trim();
    if path.is_empty() || path.starts_with('/') {
        return path.to_owned();
    }
    let path = path.strip_prefix('$').unwrap_or(path);
    let mut pointer = String::new();
    for step in path
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'))
    {
        if !step.is_empty() {
            pointer.push('/');
            let step = step.trim_matches(['"', '\'']);
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        }
    }
    pointer
}

pub(crate) struct JsonFieldCheck;

impl JsonFieldCheck {
    /// The value, and the file that it was looked for in. No file and no value are `null`.
    async fn value(
        values: &JsonFieldValues,
        side: Side,
        case: &Case,
    ) -> Result<(Value, Option<String>), EvalError> {
        let (file, at) = (values.file.trim().to_owned(), pointer(&values.path));
        let found = case
            .evidence
            .in_world::<_, EvalError>(side, move |world, limits| {
                let mut entries = world.entries().iter();
                let entry = entries
                    .find(|entry| entry.is_file() && path_pattern::matches(&file, entry.path()));
                let Some(entry) = entry else {
                    return Ok(None);
                };
                let path = entry.path().to_owned();
                let bytes = world
                    .read_entry(entry, limits.file_bytes)
                    .map_err(|error| EvalError::helper(error.to_string()))?;
                // What the agent left is broken: that is no value, not an obstacle.
                let document = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
                let value = document.pointer(&at).cloned().unwrap_or_default();
                Ok(Some((value, path)))
            })
            .await?;
        let Some((value, path)) = found else {
            return Ok((Value::Null, None));
        };
        let value = match (values.result_type, &value) {
            (ResultType::RowCount, Value::Array(list)) => list.len().into(),
            (ResultType::RowCount, Value::Object(map)) => map.len().into(),
            (ResultType::Exists, value) => (!value.is_null()).into(),
            _ => value,
        };
        Ok((value, Some(path)))
    }
}

impl Eval for JsonFieldCheck {
    type Values = JsonFieldValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "json_field_check"
    }

    fn about(&self) -> &'static str {
        "a value in a JSON file has a value, or has changed"
    }

    fn check(&self, values: &JsonFieldValues, _: &NoSettings, findings: &mut Findings) {
        path_pattern::check("file", &values.file, findings);
        let word = values.expected_value.as_str();
        if values.snapshot == Asked::Both && !matches!(word, Some("changed" | "unchanged")) {
            let rule = "must be `changed` or `unchanged` where both worlds are looked at";
            findings.error("expected_value", rule, values.expected_value.clone());
        } else if values.expected_value.is_null() {
            findings.missing("expected_value", "must be given");
        }
    }

    async fn evaluate(
        &self,
        values: &JsonFieldValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let (actual, file, passed) = match values.snapshot {
            Asked::Both => {
                let (before, _) = Self::value(values, Side::Initial, case).await?;
                let (after, file) = Self::value(values, Side::Final, case).await?;
                let changed = before != after;
                let wanted = values.expected_value.as_str() == Some("changed");
                (
                    json!({ "before": before, "after": after }),
                    file,
                    changed == wanted,
                )
            }
            asked => {
                let side = match asked {
                    Asked::Initial => Side::Initial,
                    _ => Side::Final,
                };
                let (actual, file) = Self::value(values, side, case).await?;
                // Whether something exists can be answered without the file.
                let actual = match (&file, values.result_type) {
                    (None, ResultType::Exists) => false.into(),
                    _ => actual,
                };
                let passed = values.result_type.matches(
                    &actual,
                    &values.expected_value,
                    values.tolerance,
                    values.case_sensitive,
                );
                (actual, file, passed)
            }
        };
        let message = match &file {
            Some(file) => format!(
                "found {actual} in `{file}`, expected {}",
                values.expected_value
            ),
            None => format!("no file matches `{}`", values.file.trim()),
        };
        Ok(Verdict::new(
            passed,
            object(json!({
                "actual_value": actual,
                "expected_value": values.expected_value,
                "field_checked": values.path,
                "file_checked": file,
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
    fn paths_in_both_forms() {
        for (path, expected) in [
            ("", ""),
            ("/a/0/b", "/a/0/b"),
            ("a[0].b", "/a/0/b"),
            ("$.a['x/y'][2]", "/a/x~1y/2"),
            ("[1]", "/1"),
        ] {
            assert_eq!(pointer(path), expected, "{path}");
        }
    }
}
