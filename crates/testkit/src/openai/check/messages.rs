//! The messages of a request.

use serde_json::{Map, Value};

use super::{Refusal, check_name};

/// Checks form and order of the messages.
pub(super) fn check(messages: Option<&Value>, lenient: bool) -> Result<(), Refusal> {
    let messages = messages
        .and_then(Value::as_array)
        .ok_or_else(|| Refusal::coded("messages", "it is missing", "missing_required_parameter"))?;
    if messages.is_empty() {
        return Err(Refusal::coded(
            "messages",
            "empty array; expected an array with minimum length 1",
            "empty_array",
        ));
    }
    let mut open = OpenCalls::default();
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let message = message
            .as_object()
            .ok_or_else(|| Refusal::coded(&place, "it is no object", "invalid_type"))?;
        check_message(message, &place, lenient)?;
        open.follow(message, &place)?;
    }
    open.end("messages")
}

/// Calls of the last assistant turn that wait for their results.
#[derive(Default)]
struct OpenCalls {
    waiting: Vec<String>,
}

impl OpenCalls {
    fn follow(&mut self, message: &Map<String, Value>, place: &str) -> Result<(), Refusal> {
        if message.get("role").and_then(Value::as_str) == Some("tool") {
            let id = message.get("tool_call_id").and_then(Value::as_str);
            let position = self
                .waiting
                .iter()
                .position(|open| Some(open.as_str()) == id);
            let Some(position) = position else {
                return Err(Refusal::invalid(
                    place,
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
                ));
            };
            self.waiting.remove(position);
            return Ok(());
        }
        self.end(place)?;
        for call in message
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let id = call
                .get("id")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            if self.waiting.contains(&id) {
                return Err(Refusal::invalid(
                    place,
                    &format!("duplicate tool call id '{id}'"),
                ));
            }
            self.waiting.push(id);
        }
        Ok(())
    }

    fn end(&self, place: &str) -> Result<(), Refusal> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        Err(Refusal::invalid(
            place,
            &format!(
                "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; no response to: {}",
                self.waiting.join(", ")
            ),
        ))
    }
}

fn check_message(message: &Map<String, Value>, place: &str, lenient: bool) -> Result<(), Refusal> {
    let role = message
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let content = message.get("content").filter(|content| !content.is_null());
    let (fields, parts): (&[&str], &[&str]) = match role {
        "system" | "developer" => (&["role", "content", "name"], &["text"]),
        "user" => (
            &["role", "content", "name"],
            &["text", "image_url", "input_audio", "file"],
        ),
        "assistant" => (
            &[
                "role",
                "content",
                "name",
                "tool_calls",
                "refusal",
                "audio",
                "function_call",
            ],
            &["text", "refusal"],
        ),
        "tool" => (&["role", "content", "tool_call_id"], &["text"]),
        _ => {
            return Err(Refusal::invalid(
                &format!("{place}.role"),
                &format!("'{role}' is not one of system, developer, user, assistant, tool"),
            ));
        }
    };
    if !lenient && let Some(name) = message.keys().find(|name| !fields.contains(&name.as_str())) {
        return Err(Refusal::coded(
            &format!("{place}.{name}"),
            "unknown field",
            "unknown_parameter",
        ));
    }
    match content {
        Some(content) => check_content(content, parts, &format!("{place}.content"), lenient)?,
        None if role == "assistant" => {
            let says = ["tool_calls", "refusal", "audio", "function_call"]
                .iter()
                .any(|name| message.get(*name).is_some_and(|value| !value.is_null()));
            if !says {
                return Err(Refusal::coded(
                    &format!("{place}.content"),
                    "expected a string, got null; it may be null only beside 'tool_calls'",
                    "invalid_type",
                ));
            }
        }
        None => {
            return Err(Refusal::coded(
                &format!("{place}.content"),
                "expected a string or an array, got null",
                "invalid_type",
            ));
        }
    }
    if role == "tool" && !message.get("tool_call_id").is_some_and(Value::is_string) {
        return Err(Refusal::coded(
            &format!("{place}.tool_call_id"),
            "it is missing",
            "missing_required_parameter",
        ));
    }
    if let Some(calls) = message.get("tool_calls") {
        check_calls(calls, &format!("{place}.tool_calls"), lenient)?;
    }
    Ok(())
}

fn check_calls(calls: &Value, place: &str, lenient: bool) -> Result<(), Refusal> {
    let calls = calls
        .as_array()
        .ok_or_else(|| Refusal::coded(place, "it is no array", "invalid_type"))?;
    if calls.is_empty() {
        return Err(Refusal::coded(
            place,
            "empty array; expected an array with minimum length 1",
            "empty_array",
        ));
    }
    for (index, call) in calls.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let has_id = call
            .get("id")
            .and_then(Value::as_str)
            .is_some_and(|id| !id.is_empty());
        if !has_id {
            return Err(Refusal::coded(
                &place,
                "it has no 'id'",
                "missing_required_parameter",
            ));
        }
        if call.get("type").and_then(Value::as_str) != Some("function") {
            return Err(Refusal::invalid(
                &format!("{place}.type"),
                "expected `function`",
            ));
        }
        let known = ["id", "type", "function"];
        let unknown = call
            .as_object()
            .and_then(|call| call.keys().find(|name| !known.contains(&name.as_str())));
        if !lenient && let Some(name) = unknown {
            return Err(Refusal::coded(
                &format!("{place}.{name}"),
                "unknown field",
                "unknown_parameter",
            ));
        }
        check_name(
            call.pointer("/function/name"),
            &format!("{place}.function.name"),
        )?;
        if !call
            .pointer("/function/arguments")
            .is_some_and(Value::is_string)
        {
            return Err(Refusal::coded(
                &format!("{place}.function.arguments"),
                "expected a string",
                "invalid_type",
            ));
        }
    }
    Ok(())
}

fn check_content(
    content: &Value,
    allowed: &[&str],
    place: &str,
    lenient: bool,
) -> Result<(), Refusal> {
    let parts = match content {
        Value::String(_) => return Ok(()),
        Value::Array(parts) => parts,
        _ => {
            return Err(Refusal::coded(
                place,
                "expected a string or an array",
                "invalid_type",
            ));
        }
    };
    if parts.is_empty() {
        return Err(Refusal::coded(
            place,
            "empty array; expected an array with minimum length 1",
            "empty_array",
        ));
    }
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        if !allowed.contains(&kind) {
            return Err(Refusal::invalid(
                &format!("{place}.type"),
                &format!("'{kind}' is not one of {}", allowed.join(", ")),
            ));
        }
        if !lenient
            && let Some(name) = part
                .as_object()
                .and_then(|part| part.keys().find(|name| *name != "type" && *name != kind))
        {
            return Err(Refusal::coded(
                &format!("{place}.{name}"),
                "unknown field",
                "unknown_parameter",
            ));
        }
        match kind {
            "text" | "refusal" if !part.get(kind).is_some_and(Value::is_string) => {
                return Err(Refusal::coded(
                    &format!("{place}.{kind}"),
                    "expected a string",
                    "invalid_type",
                ));
            }
            "image_url" => check_picture(part.get("image_url"), &place)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_picture(picture: Option<&Value>, place: &str) -> Result<(), Refusal> {
    let place = format!("{place}.image_url");
    let url = picture
        .and_then(|picture| picture.get("url")?.as_str())
        .ok_or_else(|| Refusal::coded(&place, "expected an object with a 'url'", "invalid_type"))?;
    let detail = picture.and_then(|picture| picture.get("detail"));
    let detail_fits = match detail {
        None => true,
        Some(detail) => ["auto", "low", "high"]
            .iter()
            .any(|word| detail.as_str() == Some(word)),
    };
    if !detail_fits {
        return Err(Refusal::invalid(
            &format!("{place}.detail"),
            "expected auto, low or high",
        ));
    }
    if is_picture_address(url) {
        return Ok(());
    }
    Err(Refusal::coded(
        &place,
        "expected an http(s) address or a base64 data URL of a png, jpeg, gif or webp picture",
        "invalid_image_url",
    ))
}

/// Whether `url` is a web address, or a data URL of a picture that OpenAI takes.
pub(in super::super) fn is_picture_address(url: &str) -> bool {
    if url.starts_with("https://") || url.starts_with("http://") {
        return true;
    }
    let kinds = ["png", "jpeg", "jpg", "gif", "webp"];
    let data = kinds
        .iter()
        .find_map(|kind| url.strip_prefix(&format!("data:image/{kind};base64,")));
    data.is_some_and(|data| {
        let body = data.trim_end_matches('=');
        !body.is_empty()
            && data.len() % 4 == 0
            && data.len() - body.len() <= 2
            && body
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
    })
}
