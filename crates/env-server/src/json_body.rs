//! JSON bodies, and what is wrong with them (`spec/environment.md` §2).

use axum::body::{Body, Bytes};
use axum::extract::Request;
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use serde_path_to_error::Segment;

use crate::error::{ApiError, InvalidItem};

/// The body as `T`; a missing one is refused.
pub(crate) async fn required<T: DeserializeOwned>(
    request: Request,
    max_bytes: usize,
) -> Result<T, ApiError> {
    match optional(request, max_bytes).await? {
        Some(body) => Ok(body),
        None => Err(ApiError::invalid(&InvalidItem::missing(
            vec![json!("body")],
            Value::Null,
        ))),
    }
}

/// The body as `T`; `None` where there is none, or it is `null`.
pub(crate) async fn optional<T: DeserializeOwned>(
    request: Request,
    max_bytes: usize,
) -> Result<Option<T>, ApiError> {
    let (parts, body) = request.into_parts();
    let bytes = collect(body, max_bytes).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !is_json(&parts.headers) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Err(ApiError::invalid(&no_object(
            vec![json!("body")],
            json!(text),
        )));
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| not_json(&error, &bytes))?;
    match value {
        Value::Null => Ok(None),
        Value::Object(_) => parse(&value)
            .map(Some)
            .map_err(|item| ApiError::invalid(&item)),
        other => Err(ApiError::invalid(&no_object(vec![json!("body")], other))),
    }
}

async fn collect(body: Body, max_bytes: usize) -> Result<Bytes, ApiError> {
    use http_body_util::{BodyExt as _, LengthLimitError, Limited};
    match Limited::new(body, max_bytes).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(format!(
            "the body is larger than {max_bytes} bytes (max_json_bytes)"
        ))),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body cannot be read: {error}"
        ))),
    }
}

/// Whether the content type says JSON; without one it is taken as JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let text = content_type.to_str().unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// What is wrong with a value that is no object.
pub(crate) fn no_object(loc: Vec<Value>, input: Value) -> InvalidItem {
    InvalidItem {
        kind: "model_attributes_type",
        loc,
        msg: "Input should be an object".to_owned(),
        input,
        ctx: None,
    }
}

fn not_json(error: &serde_json::Error, bytes: &[u8]) -> ApiError {
    // The offset of the line, and of the column in it; both count from 1.
    let line_start: usize = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let offset = line_start + error.column().saturating_sub(1);
    ApiError::invalid(&InvalidItem {
        kind: "json_invalid",
        loc: vec![json!("body"), json!(offset)],
        msg: "JSON decode error".to_owned(),
        input: json!({}),
        ctx: Some(json!({"error": error.to_string()})),
    })
}

/// `value` as `T`, or the first thing that is wrong with it and where.
pub(crate) fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, Box<InvalidItem>> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let mut loc = vec![json!("body")];
        let mut input = Some(value);
        for segment in error.path() {
            match segment {
                Segment::Map { key } => {
                    loc.push(json!(key));
                    input = input.and_then(|value| value.get(key));
                }
                Segment::Seq { index } => {
                    loc.push(json!(index));
                    input = input.and_then(|value| value.get(index));
                }
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        let input = input.cloned().unwrap_or_default();
        Box::new(item(&error.inner().to_string(), loc, input))
    })
}

/// What a message of serde means in the words of the interface.
fn item(message: &str, mut loc: Vec<Value>, input: Value) -> InvalidItem {
    if let Some(rest) = message.strip_prefix("missing field `")
        && let Some((field, _)) = rest.split_once('`')
    {
        loc.push(json!(field));
        return InvalidItem::missing(loc, input);
    }
    let expected = message
        .strip_prefix("invalid type: ")
        .and_then(|rest| rest.split_once(", expected "))
        .map(|(_, expected)| expected);
    let (kind, msg) = match expected {
        Some("a string") => ("string_type", "Input should be a valid string"),
        Some("a boolean") => ("bool_type", "Input should be a valid boolean"),
        Some("a sequence") => ("list_type", "Input should be a valid list"),
        Some("a map" | "an object of servers by name") => {
            ("dict_type", "Input should be a valid dictionary")
        }
        Some(other) if other.starts_with("struct ") => {
            ("model_attributes_type", "Input should be an object")
        }
        _ => return InvalidItem::value(loc, message, input),
    };
    InvalidItem {
        kind,
        loc,
        msg: msg.to_owned(),
        input,
        ctx: None,
    }
}
