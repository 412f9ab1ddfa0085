//! `json_field_check`: a value in a JSON, YAML or XML file of the world (§6.5).

mod documents;

use evidence::Side;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::field::{Expectation, Found, ResultType};
use super::path_pattern;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use settings::NoSettings;
use settings::problem::Findings;

/// Settings of `json_field_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct JsonFieldValues {
    /// The file: a pattern for the last components of its path. Of several the first by path
    /// counts. Files that end in `.yaml`, `.yml` or `.xml` are read as that, others as JSON.
    file: String,
    /// Where the value is: a JSON pointer (`/orders/0/id`), or names and numbers in the form
    /// `orders[0].id`. Empty for the whole document. In XML an element is an object of its
    /// attributes (`@name`), its text (`#text`) and its elements, which are lists where there are
    /// several of one name; one with nothing but text is that text.
    #[serde(default)]
    path: String,
    #[serde(flatten)]
    expectation: Expectation,
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

impl JsonFieldValues {
    /// The value, and the file that it was looked for in. No file and no value are `null`.
    async fn find(&self, side: Side, case: &Case) -> Result<(Value, Option<String>), EvalError> {
        let (file, at) = (self.file.trim().to_owned(), pointer(&self.path));
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
                let document = documents::read(&path, &bytes).unwrap_or_default();
                let value = document.pointer(&at).cloned().unwrap_or_default();
                Ok(Some((value, path)))
            })
            .await?;
        let (value, path) = match found {
            Some((value, path)) => (value, Some(path)),
            None => (Value::Null, None),
        };
        let value = match (self.expectation.result_type, &value) {
            (ResultType::RowCount, Value::Array(list)) => list.len().into(),
            (ResultType::RowCount, Value::Object(map)) => map.len().into(),
            // Whether something exists can be answered without the file.
            (ResultType::Exists, value) => (!value.is_null()).into(),
            _ => value,
        };
        Ok((value, path))
    }
}

impl Eval for JsonFieldCheck {
    type Values = JsonFieldValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "json_field_check"
    }

    fn about(&self) -> &'static str {
        "a value in a JSON, YAML or XML file has a value, or has changed"
    }

    fn check(&self, values: &JsonFieldValues, _: &NoSettings, findings: &mut Findings) {
        path_pattern::check("file", &values.file, findings);
        values.expectation.check(findings);
    }

    async fn evaluate(
        &self,
        values: &JsonFieldValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let expectation = &values.expectation;
        let (found, file) = match expectation.sides() {
            (side, None) => {
                let (value, file) = values.find(side, case).await?;
                (Found::One(value), file)
            }
            (before, Some(after)) => {
                let (before, _) = values.find(before, case).await?;
                let (after, file) = values.find(after, case).await?;
                (Found::Both(before, after), file)
            }
        };
        let mut verdict = expectation.verdict(found);
        if file.is_none() {
            verdict.message = format!("no file matches `{}`", values.file.trim());
        }
        let described = &mut verdict.values;
        described.insert("field_checked".to_owned(), values.path.as_str().into());
        described.insert("file_checked".to_owned(), file.into());
        Ok(verdict)
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
