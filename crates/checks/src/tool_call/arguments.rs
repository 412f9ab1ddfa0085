//! Whether the arguments of a call have what is expected of them.

use fancy_regex::Regex;
use formats::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use settings::problem::Findings;

/// How expected texts are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TextMode {
    /// The same text.
    #[default]
    Exact,
    /// The expected text is a part of the actual one.
    Contains,
    /// The expected text is a regular expression that is found, case counting.
    Regex,
}

impl TextMode {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Contains => "contains",
            Self::Regex => "regex",
        }
    }
}

/// Warns of expected texts that are no regular expressions: they match nothing.
pub(super) fn check_patterns(expected: &Object, findings: &mut Findings) {
    for (key, value) in expected {
        match value {
            Value::String(pattern) => {
                if let Err(error) = Regex::new(pattern) {
                    let key = format!("expected_args.{key}");
                    let rule = format!("is no regular expression and will match nothing ({error})");
                    findings.warning(&key, rule, pattern.as_str());
                }
            }
            Value::Object(nested) => check_patterns(nested, findings),
            _ => {}
        }
    }
}

/// What in the raw arguments text `actual` does not fit `expected`; `None` where all fits.
/// Arguments that are no JSON object count as empty.
pub(super) fn mismatch(expected: &Object, actual: &str, mode: TextMode) -> Option<String> {
    let actual: Object = serde_json::from_str(actual).unwrap_or_default();
    object_mismatch(expected, &actual, mode, "")
}

fn object_mismatch(
    expected: &Object,
    actual: &Object,
    mode: TextMode,
    prefix: &str,
) -> Option<String> {
    expected.iter().find_map(|(key, wanted)| {
        let path = format!("{prefix}{key}");
        match actual.get(key) {
            None => Some(format!("argument `{path}` is missing")),
            Some(given) => value_mismatch(wanted, given, mode, &path),
        }
    })
}

fn value_mismatch(wanted: &Value, given: &Value, mode: TextMode, path: &str) -> Option<String> {
    let fits = match (wanted, given) {
        (Value::Object(wanted), Value::Object(given)) => {
            return object_mismatch(wanted, given, mode, &format!("{path}."));
        }
        (Value::String(wanted), given) => text_fits(wanted, given, mode),
        (wanted, given) => equal(wanted, given),
    };
    (!fits).then(|| {
        format!(
            "argument `{path}`: expected {wanted} ({}), got {given}",
            mode.as_str()
        )
    })
}

fn text_fits(wanted: &str, given: &Value, mode: TextMode) -> bool {
    match mode {
        TextMode::Exact => given.as_str() == Some(wanted),
        TextMode::Contains => match given {
            Value::Array(items) => items.iter().any(|item| text_of(item).contains(wanted)),
            other => text_of(other).contains(wanted),
        },
        TextMode::Regex => {
            let Ok(pattern) = Regex::new(wanted) else {
                return false;
            };
            let found = |text: &str| pattern.is_match(text).unwrap_or(false);
            match given {
                Value::Array(items) => {
                    let texts: Vec<String> = items.iter().map(text_of).collect();
                    found(&texts.join(",")) || texts.iter().any(|text| found(text))
                }
                other => found(&text_of(other)),
            }
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Equality in which 1 is 1.0.
fn equal(wanted: &Value, given: &Value) -> bool {
    match (wanted, given) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fits(expected: &Value, actual: &Value, mode: TextMode) -> bool {
        mismatch(expected.as_object().unwrap(), &actual.to_string(), mode).is_none()
    }

    #[test]
    fn expected_keys_must_be_there_and_others_may() {
        assert!(fits(
            &json!({"a": 1}),
            &json!({"a": 1.0, "b": 2}),
            TextMode::Exact
        ));
        assert!(!fits(
            &json!({"a": null}),
            &json!({"b": 2}),
            TextMode::Exact
        ));
        assert!(fits(
            &json!({"a": {"b": "x"}}),
            &json!({"a": {"b": "x", "c": 1}}),
            TextMode::Exact
        ));
        assert!(!fits(
            &json!({"a": [1, 2]}),
            &json!({"a": [1, 2, 3]}),
            TextMode::Exact
        ));
        assert!(fits(
            &json!({"a": [1, {"b": 2}]}),
            &json!({"a": [1.0, {"b": 2}]}),
            TextMode::Exact
        ));
        assert!(!fits(&json!({"a": "1"}), &json!({"a": 1}), TextMode::Exact));
    }

    #[test]
    fn texts_are_compared_by_mode() {
        use TextMode::{Contains, Regex};
        assert!(fits(&json!({"a": "ell"}), &json!({"a": "hello"}), Contains));
        assert!(fits(
            &json!({"a": "ell"}),
            &json!({"a": ["x", "hello"]}),
            Contains
        ));
        assert!(fits(&json!({"a": "2"}), &json!({"a": 123}), Contains));
        assert!(!fits(
            &json!({"a": "Ell"}),
            &json!({"a": "hello"}),
            Contains
        ));
        assert!(fits(&json!({"a": "^h.*o$"}), &json!({"a": "hello"}), Regex));
        assert!(fits(
            &json!({"a": "x,h"}),
            &json!({"a": ["x", "hello"]}),
            Regex
        ));
        assert!(fits(
            &json!({"a": "(?<=h)ello"}),
            &json!({"a": "hello"}),
            Regex
        ));
        assert!(!fits(&json!({"a": "("}), &json!({"a": "("}), Regex));
    }

    #[test]
    fn arguments_that_are_no_object_count_as_empty() {
        let expected = json!({"a": 1});
        for actual in ["", "not json", "[1]"] {
            let text = mismatch(expected.as_object().unwrap(), actual, TextMode::Exact).unwrap();
            assert_eq!(text, "argument `a` is missing");
        }
    }
}
