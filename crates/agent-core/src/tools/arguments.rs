//! From the raw argument text of a tool call to an object (`spec/agents.md` §10, pitfall A7).

use formats::Object;
use serde::Deserialize;
use serde_json::Value;

/// Arguments that a tool can be called with.
#[derive(Debug, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) object: Object,
    /// What had to be overlooked to read them.
    pub(crate) repair: Option<&'static str>,
}

/// Arguments that no tool is called with; says why, for the model.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadArguments(String);

impl Arguments {
    /// Reads `raw`. A complete object is never guessed from a broken one: a call that is cut off
    /// would do something else than the model meant.
    pub(crate) fn parse(raw: &str) -> Result<Self, BadArguments> {
        let text = raw.trim();
        if text.is_empty() {
            return Ok(Self::plain(Object::new()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Ok(Self::plain(object)),
            Ok(Value::Null) => Ok(Self {
                object: Object::new(),
                repair: Some("`null` was read as an empty object"),
            }),
            Ok(other) => Err(BadArguments(format!(
                "the arguments are not a JSON object but {}",
                kind_of(&other)
            ))),
            Err(error) => leading_object(text).ok_or_else(|| {
                BadArguments(format!(
                    "the arguments are not valid JSON (line {}, column {}: {})",
                    error.line(),
                    error.column(),
                    reason_of(&error)
                ))
            }),
        }
    }

    fn plain(object: Object) -> Self {
        Self {
            object,
            repair: None,
        }
    }
}

/// A whole object with nothing but stray closing marks behind it, such as `{}"`.
fn leading_object(text: &str) -> Option<Arguments> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<StrictObject>();
    let object = stream.next()?.ok()?.0;
    let rest = text.get(stream.byte_offset()..)?;
    let stray = |mark: char| mark.is_whitespace() || matches!(mark, '"' | '\'' | '`' | '}' | ']');
    rest.chars().all(stray).then_some(Arguments {
        object,
        repair: Some("stray characters behind the arguments were dropped"),
    })
}

#[derive(Deserialize)]
#[serde(transparent)]
struct StrictObject(Object);

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The parser's words without the position, which is given apart.
fn reason_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map_or(text.clone(), |(reason, _)| reason.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(raw: &str) -> (Value, bool) {
        let arguments = Arguments::parse(raw).unwrap();
        (Value::Object(arguments.object), arguments.repair.is_some())
    }

    #[test]
    fn objects_and_nothing_are_read() {
        assert_eq!(parsed(r#" {"a": 1} "#), (json!({"a": 1}), false));
        assert_eq!(parsed(""), (json!({}), false));
        assert_eq!(parsed("  \n"), (json!({}), false));
    }

    #[test]
    fn a_whole_object_with_stray_marks_is_repaired() {
        assert_eq!(parsed("{}\""), (json!({}), true));
        assert_eq!(parsed(r#"{"a":{"b":2}}}"#), (json!({"a": {"b": 2}}), true));
        assert_eq!(parsed("null"), (json!({}), true));
    }

    #[test]
    fn broken_or_other_json_is_refused_with_the_position() {
        for (raw, message) in [
            (
                r#"{"path":"/a","content":"abc"#,
                "the arguments are not valid JSON (line 1, column 27: EOF while parsing a string)",
            ),
            (
                "{\"path\": ",
                "the arguments are not valid JSON (line 1, column 8: EOF while parsing a value)",
            ),
            ("[1]", "the arguments are not a JSON object but an array"),
            ("\"x\"", "the arguments are not a JSON object but a string"),
        ] {
            assert_eq!(Arguments::parse(raw).unwrap_err().to_string(), message);
        }
        // Two objects: which one is meant cannot be known.
        assert!(Arguments::parse(r#"{"a":1}{"b":2}"#).is_err());
        assert!(Arguments::parse(r#"{"a":1} and then"#).is_err());
    }
}
