//! JSON-RPC 2.0 messages whose contents stay text.
//!
//! The gateway reads only what it routes by; parameters, results and errors pass through as they
//! were written, so numbers, key order and unknown fields survive.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// One JSON value as text.
pub(crate) type Raw = Box<RawValue>;

/// What a request ends with: the text of its `result`, or its `error`.
pub(crate) type Outcome = Result<Raw, RpcError>;

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// Of MCP: the resource does not exist.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;

/// The `error` member of a response, as text.
#[derive(Debug, Clone)]
pub(crate) struct RpcError(pub(crate) Raw);

impl RpcError {
    pub(crate) fn new(code: i64, message: impl fmt::Display) -> Self {
        Self(raw(
            &serde_json::json!({"code": code, "message": message.to_string()}),
        ))
    }

    /// An error with `data`.
    pub(crate) fn with_data(
        code: i64,
        message: impl fmt::Display,
        data: &serde_json::Value,
    ) -> Self {
        Self(raw(
            &serde_json::json!({"code": code, "message": message.to_string(), "data": data}),
        ))
    }

    pub(crate) fn code(&self) -> Option<i64> {
        #[derive(Deserialize)]
        struct Code {
            code: i64,
        }
        serde_json::from_str::<Code>(self.0.get())
            .ok()
            .map(|error| error.code)
    }

    /// The message alone, for logs and for the texts of our own errors.
    pub(crate) fn message(&self) -> String {
        #[derive(Deserialize)]
        struct Message {
            message: String,
        }
        serde_json::from_str::<Message>(self.0.get())
            .map_or_else(|_| self.0.get().to_owned(), |error| error.message)
    }
}

/// A message by its kind.
#[derive(Debug)]
pub(crate) enum Message {
    Request {
        id: Raw,
        method: String,
        params: Option<Raw>,
    },
    Notification {
        method: String,
        params: Option<Raw>,
    },
    Response {
        id: Raw,
        outcome: Outcome,
    },
}

/// Why a text is no message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("invalid JSON: {0}")]
    Json(serde_json::Error),
    #[error("no JSON-RPC 2.0 message: {0}")]
    Shape(String),
}

impl Message {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, MessageError> {
        // serde reads a struct from an array too; a batch is no message.
        if text.trim_ascii_start().first() == Some(&b'[') {
            return match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
                Ok(_) => Err(MessageError::Shape("batches are not accepted".to_owned())),
                Err(error) => Err(MessageError::Json(error)),
            };
        }
        let envelope: Envelope = serde_json::from_slice(text).map_err(|error| {
            if error.is_data() {
                MessageError::Shape(error.to_string())
            } else {
                MessageError::Json(error)
            }
        })?;
        envelope.classify().map_err(MessageError::Shape)
    }
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: String,
    #[serde(default, deserialize_with = "present")]
    id: Option<Raw>,
    method: Option<String>,
    #[serde(default)]
    params: Option<Raw>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Raw>,
    #[serde(default)]
    error: Option<Raw>,
}

/// Keeps `null` apart from absence.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

impl Envelope {
    fn classify(self) -> Result<Message, String> {
        if self.jsonrpc != "2.0" {
            return Err(format!("`jsonrpc` is `{}`, not `2.0`", self.jsonrpc));
        }
        match (self.method, self.id) {
            (Some(method), Some(id)) => {
                if !is_request_id(&id) {
                    return Err(format!("`id` is {id}, not a string or an integer"));
                }
                Ok(Message::Request {
                    id,
                    method,
                    params: self.params,
                })
            }
            (Some(method), None) => Ok(Message::Notification {
                method,
                params: self.params,
            }),
            (None, Some(id)) => match (self.result, self.error) {
                (Some(result), None) => Ok(Message::Response {
                    id,
                    outcome: Ok(result),
                }),
                (None, Some(error)) => Ok(Message::Response {
                    id,
                    outcome: Err(RpcError(error)),
                }),
                _ => Err("a response has either `result` or `error`".to_owned()),
            },
            (None, None) => Err("neither `method` nor `id`".to_owned()),
        }
    }
}

fn is_request_id(id: &RawValue) -> bool {
    let text = id.get();
    text.starts_with('"') || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
}

/// A form of an id (or token) in which equal values are equal texts.
pub(crate) fn id_key(id: &RawValue) -> String {
    serde_json::from_str::<serde_json::Value>(id.get())
        .map_or_else(|_| id.get().to_owned(), |value| value.to_string())
}

/// The text of a request.
pub(crate) fn request(id: impl fmt::Display, method: &str, params: Option<&RawValue>) -> String {
    let method = quoted(method);
    match params {
        Some(params) => {
            let params = single_line(params);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
        }
        None => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method}}}"#),
    }
}

/// The text of a notification.
pub(crate) fn notification(method: &str, params: Option<&RawValue>) -> String {
    let method = quoted(method);
    match params {
        Some(params) => {
            let params = single_line(params);
            format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#)
        }
        None => format!(r#"{{"jsonrpc":"2.0","method":{method}}}"#),
    }
}

/// The text of a response.
pub(crate) fn response(id: &RawValue, outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => {
            let result = single_line(result);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        }
        Err(error) => {
            let error = single_line(&error.0);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
        }
    }
}

/// The text without line breaks, which stdio and event streams use as ends. Inside a JSON string a
/// raw line break is not allowed, so the ones found here are white space.
fn single_line(value: &RawValue) -> Cow<'_, str> {
    let text = value.get();
    if text.contains(['\n', '\r']) {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of a value that we made ourselves.
pub(crate) fn raw<T: Serialize + ?Sized>(value: &T) -> Raw {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// A JSON object whose values stay text, in the order of the document. Of a repeated key the last
/// value counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawObject(Vec<(String, Raw)>);

impl RawObject {
    pub(crate) fn parse(text: Option<&RawValue>) -> Result<Self, RpcError> {
        let Some(text) = text else {
            return Ok(Self::default());
        };
        serde_json::from_str::<Option<Self>>(text.get())
            .map(Option::unwrap_or_default)
            .map_err(|error| RpcError::new(INVALID_PARAMS, format!("invalid parameters: {error}")))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .rev()
            .find_map(|(known, value)| (known == key).then_some(&**value))
    }

    /// The value of `key` where it is a string.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key)
            .and_then(|value| serde_json::from_str(value.get()).ok())
    }

    /// The value of `key` as a type that we know.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key)
            .and_then(|value| serde_json::from_str(value.get()).ok())
    }

    pub(crate) fn set(&mut self, key: &str, value: Raw) {
        let Some(place) = self.0.iter().position(|(known, _)| known == key) else {
            self.0.push((key.to_owned(), value));
            return;
        };
        self.0[place].1 = value;
        let mut at = 0;
        self.0.retain(|(known, _)| {
            at += 1;
            at <= place + 1 || known != key
        });
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn to_raw(&self) -> Raw {
        raw(self)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = RawObject;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut object = RawObject::default();
                while let Some((key, value)) = map.next_entry::<String, Raw>()? {
                    object.0.push((key, value));
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let parse = |text: &str| Message::parse(text.as_bytes());
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#),
            Ok(Message::Request { .. })
        ));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","method":"x"}"#),
            Ok(Message::Notification { .. })
        ));
        assert!(matches!(
            parse(r#"{"jsonrpc":"2.0","id":"a","result":null}"#),
            Ok(Message::Response { outcome: Ok(_), .. })
        ));
        for wrong in [
            r#"["2.0",1,"ping"]"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            "[]",
            "7",
        ] {
            assert!(
                matches!(parse(wrong), Err(MessageError::Shape(_))),
                "{wrong}"
            );
        }
        assert!(matches!(parse("{"), Err(MessageError::Json(_))));
    }

    #[test]
    fn contents_stay_as_they_were_written() {
        let text = r#"{"jsonrpc":"2.0","id":7,"result":{"z":1.0,"a":12345678901234567890123,"m":{"b":1,"a":2}}}"#;
        let Ok(Message::Response { id, outcome }) = Message::parse(text.as_bytes()) else {
            panic!("a response");
        };
        assert_eq!(response(&id, &outcome), text);
    }

    #[test]
    fn line_breaks_between_tokens_go_and_those_in_strings_stay() {
        let params: Raw = serde_json::from_str("{\n\"a\":\r\n\"x\\ny\"}").unwrap();
        let line = request(1, "m", Some(&params));
        assert!(!line.contains('\n') && !line.contains('\r'));
        assert!(line.contains(r#""x\ny""#), "{line}");
    }

    #[test]
    fn ids_are_compared_by_value() {
        let of = |text: &str| id_key(&serde_json::from_str::<Raw>(text).unwrap());
        assert_eq!(of(r#""\u0061""#), of(r#""a""#));
        assert_ne!(of(r#""0""#), of("0"));
    }
}
