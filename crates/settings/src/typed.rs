//! Typed settings out of the open maps of task files.
//!
//! Task files were written for a lenient reader: numbers and booleans may be text, `null` means
//! the default, unknown keys are passed over. The types here keep that and still name the key
//! when something cannot be read.

use formats::{Object, lenient};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::problem::Findings;

/// Keys that describe a verifier, or that only scoring reads. Every eval accepts them.
pub const ANNOTATIONS: &[&str] = &[
    "autogen_source",
    "criteria",
    "criteria_explanation",
    "criterion_type",
    "dependent_criteria",
    "description",
    "difficulty",
    "hurdle_tag",
    "human_rating",
    "is_primary_objective",
    "justification",
    "numerical_weight",
    "severity_level",
    "sources",
    "tags",
    "type",
    "weight",
];

/// Settings without any key.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
pub struct NoSettings {}

/// Reads `object` as `T`; `null` counts as absent.
pub fn parse<T: DeserializeOwned>(object: &Object, findings: &mut Findings) -> Option<T> {
    let present: Object = object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    match serde_path_to_error::deserialize(Value::Object(present.clone())) {
        Ok(settings) => Some(settings),
        Err(error) => {
            let reason = error.inner().to_string();
            let path =
                Some(error.path().to_string()).filter(|path| path != "." && !path.is_empty());
            match path.or_else(|| culprit::<T>(&present, &reason)) {
                Some(path) => {
                    let value = object.get(path.split(['.', '[']).next().unwrap_or(&path));
                    findings.error(&path, reason, value.cloned().unwrap_or(Value::Null));
                }
                // A missing key is reported at the root; the reason names it.
                None => findings.missing("", reason),
            }
            None
        }
    }
}

/// The key without which `object` is no longer refused for this reason. The path to it is lost
/// where one type takes in the keys of another.
fn culprit<T: DeserializeOwned>(object: &Object, reason: &str) -> Option<String> {
    let is_culprit = |key: &&String| {
        let mut without = object.clone();
        without.shift_remove(key.as_str());
        let outcome = serde_json::from_value::<T>(Value::Object(without));
        // Without a key that is needed there is another reason, which says nothing about its value.
        outcome.err().is_none_or(|error| {
            let other = error.to_string();
            other != reason && !other.starts_with("missing field")
        })
    };
    object.keys().find(is_culprit).cloned()
}

/// Warns about keys of `object` that neither `schema` nor `also` knows.
pub fn warn_of_unknown_keys(
    object: &Object,
    schema: &Schema,
    also: &[&str],
    findings: &mut Findings,
) {
    let known = schema.get("properties").and_then(Value::as_object);
    for (key, value) in object {
        let is_known = known.is_some_and(|known| known.contains_key(key));
        if !is_known && !also.contains(&key.as_str()) {
            findings.warning(key, "unknown key", value.clone());
        }
    }
}

/// A boolean, or one of the usual words and numbers for it.
///
/// # Errors
/// A value that is neither.
pub fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let value = Value::deserialize(deserializer)?;
    lenient::flag(&value).ok_or_else(|| serde::de::Error::custom("must be true or false"))
}

/// The default of flags that are on.
#[must_use]
pub const fn yes() -> bool {
    true
}

/// A number, or text that holds one.
///
/// # Errors
/// A value that is neither.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    lenient::number(&value).ok_or_else(|| serde::de::Error::custom("must be a number"))
}

/// As [`number`]; empty text counts as absent, which is what forms send for an empty field.
///
/// # Errors
/// A value that is no number, no text that holds one, and not empty.
pub fn optional_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(None),
        Value::String(text) if text.trim().is_empty() => Ok(None),
        value => lenient::number(value)
            .map(Some)
            .ok_or_else(|| serde::de::Error::custom("must be a number")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Sample {
        pattern: String,
        #[serde(default, deserialize_with = "flag")]
        strict: bool,
        #[serde(default, deserialize_with = "optional_number")]
        limit: Option<f64>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Outer {
        #[expect(dead_code, reason = "only its absence matters")]
        name: String,
        #[serde(flatten)]
        #[expect(dead_code, reason = "only its errors matter")]
        sample: Sample,
    }

    #[test]
    fn keys_that_one_type_takes_in_from_another_are_named_and_known() {
        for (value, expected) in [
            (
                json!({"name": "n", "pattern": "p", "limit": "many"}),
                "`limit`: must be a number, got \"many\"",
            ),
            (
                json!({"name": "n", "strict": 2.5, "pattern": "p"}),
                "`strict`: must be true or false, got 2.5",
            ),
            (json!({"name": "n"}), "missing field `pattern`"),
            (json!({"pattern": "p"}), "missing field `name`"),
        ] {
            let mut findings = Findings::default();
            let outer = parse::<Outer>(value.as_object().unwrap(), &mut findings);
            assert!(outer.is_none());
            assert_eq!(findings.errors().unwrap(), expected);
        }
        let mut findings = Findings::default();
        let object = json!({"name": "n", "pattern": "p", "limit": 1, "strict": true});
        let schema = schemars::schema_for!(Outer);
        warn_of_unknown_keys(object.as_object().unwrap(), &schema, &[], &mut findings);
        assert!(findings.list.is_empty(), "{findings:?}");
    }

    fn read(value: &Value) -> (Option<Sample>, Findings) {
        let mut findings = Findings::default();
        let object = value.as_object().unwrap().clone();
        let sample = parse(&object, &mut findings);
        (sample, findings)
    }

    #[test]
    fn text_stands_for_numbers_and_booleans_and_null_for_absent() {
        let (sample, _) =
            read(&json!({"pattern": "x", "strict": "Yes", "limit": " 2.5 ", "more": 1}));
        let sample = sample.unwrap();
        assert!(sample.strict);
        assert_eq!(sample.limit, Some(2.5));
        let (sample, _) = read(&json!({"pattern": "x", "strict": null, "limit": ""}));
        let sample = sample.unwrap();
        assert!(!sample.strict);
        assert_eq!(sample.limit, None);
        assert_eq!(sample.pattern, "x");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let (sample, findings) = read(&json!({"pattern": "x", "strict": "perhaps"}));
        assert!(sample.is_none());
        assert_eq!(
            findings.errors().unwrap(),
            "`strict`: must be true or false, got \"perhaps\""
        );
        let (_, findings) = read(&json!({"pattern": null}));
        assert_eq!(findings.errors().unwrap(), "missing field `pattern`");
    }

    #[test]
    fn unknown_keys_are_warned_of_and_annotations_are_not() {
        let mut findings = Findings::default();
        let object = json!({"pattern": "x", "patern": "y", "weight": 1});
        warn_of_unknown_keys(
            object.as_object().unwrap(),
            &schemars::schema_for!(Sample),
            ANNOTATIONS,
            &mut findings,
        );
        assert_eq!(findings.list.len(), 1);
        assert_eq!(findings.list[0].key.as_deref(), Some("patern"));
        assert!(findings.errors().is_none());
    }
}
