//! The items of the input: what OpenAI demands of them and of their order.

use serde_json::{Map, Value};

use super::super::check::{Refusal, check_name};
use super::answer::{requirement, seal};

/// Longest id of a call.
const LONGEST_CALL_ID: usize = 64;

/// The type of an item; a message may leave it out.
pub(super) fn kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

/// Checks form and order of the items.
pub(super) fn check(items: &[Value], stored: bool, lenient: bool) -> Result<(), Refusal> {
    if items.is_empty() {
        return Err(Refusal::coded(
            "input",
            "empty array; expected an array with minimum length 1",
            "empty_array",
        ));
    }
    let mut open: Vec<&str> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let place = format!("input[{index}]");
        let fields = item
            .as_object()
            .ok_or_else(|| Refusal::coded(&place, "expected an object", "invalid_type"))?;
        check_leaning(items, index)?;
        match kind(item) {
            "message" => check_message(fields, &place, lenient)?,
            "function_call" => {
                let id = check_call(fields, &place, lenient)?;
                if open.contains(&id) {
                    return Err(Refusal::invalid(
                        &place,
                        &format!("duplicate call_id '{id}'"),
                    ));
                }
                open.push(id);
            }
            "function_call_output" => {
                let id = fields.get("call_id").and_then(Value::as_str);
                let Some(place) = open.iter().position(|open| Some(*open) == id) else {
                    return Err(plain(format!(
                        "No tool call found for function call output with call_id {}.",
                        id.unwrap_or_default()
                    )));
                };
                open.remove(place);
                check_output(fields, &format!("input[{index}]"), lenient)?;
            }
            "reasoning" => check_reasoning(items, index, stored, lenient)?,
            "" => {
                return Err(Refusal::coded(
                    &format!("{place}.type"),
                    "it is missing",
                    "missing_required_parameter",
                ));
            }
            // What the provider's own tools did goes back as it came.
            _ => {}
        }
    }
    match open.first() {
        None => Ok(()),
        Some(id) => Err(plain(format!(
            "No tool output found for function call {id}."
        ))),
    }
}

/// A refusal in words of its own.
fn plain(message: String) -> Refusal {
    Refusal {
        message,
        param: Some("input".to_owned()),
        code: None,
    }
}

/// An item that came after reasoning goes back after it.
fn check_leaning(items: &[Value], index: usize) -> Result<(), Refusal> {
    let item = &items[index];
    let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
    let Some(reasoning) = requirement(id) else {
        return Ok(());
    };
    let stands_before = items[..index]
        .iter()
        .any(|earlier| earlier.get("id").and_then(Value::as_str) == Some(reasoning));
    if stands_before {
        return Ok(());
    }
    Err(plain(format!(
        "Item '{id}' of type '{}' was provided without its required 'reasoning' item: '{reasoning}'.",
        kind(item)
    )))
}

fn check_fields(
    fields: &Map<String, Value>,
    known: &[&str],
    place: &str,
    lenient: bool,
) -> Result<(), Refusal> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) if !lenient => Err(Refusal::coded(
            &format!("{place}.{name}"),
            "unknown parameter",
            "unknown_parameter",
        )),
        _ => Ok(()),
    }
}

fn check_id(fields: &Map<String, Value>, beginning: &str, place: &str) -> Result<(), Refusal> {
    match fields.get("id").filter(|id| !id.is_null()) {
        Some(id) if !id.as_str().is_some_and(|id| id.starts_with(beginning)) => {
            Err(Refusal::invalid(
                &format!("{place}.id"),
                &format!("{id}; expected an ID that begins with '{beginning}'"),
            ))
        }
        _ => Ok(()),
    }
}

fn check_message(fields: &Map<String, Value>, place: &str, lenient: bool) -> Result<(), Refusal> {
    let role = fields
        .get("role")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let known = ["type", "role", "content", "id", "status", "phase"];
    check_fields(fields, &known, place, lenient)?;
    let allowed: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
        _ => {
            return Err(Refusal::invalid(
                &format!("{place}.role"),
                &format!("'{role}' is not one of assistant, system, developer, user"),
            ));
        }
    };
    check_id(fields, "msg", place)?;
    check_content(
        fields.get("content"),
        allowed,
        &format!("{place}.content"),
        lenient,
    )
}

fn check_call<'i>(
    fields: &'i Map<String, Value>,
    place: &str,
    lenient: bool,
) -> Result<&'i str, Refusal> {
    let known = [
        "type",
        "id",
        "call_id",
        "name",
        "arguments",
        "status",
        "namespace",
    ];
    check_fields(fields, &known, place, lenient)?;
    check_id(fields, "fc", place)?;
    check_name(fields.get("name"), &format!("{place}.name"))?;
    if !fields.get("arguments").is_some_and(Value::is_string) {
        return Err(Refusal::coded(
            &format!("{place}.arguments"),
            "expected a string",
            "invalid_type",
        ));
    }
    let id = fields
        .get("call_id")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if id.is_empty() || id.len() > LONGEST_CALL_ID {
        return Err(Refusal::coded(
            &format!("{place}.call_id"),
            &format!("expected a string of 1 to {LONGEST_CALL_ID} characters"),
            "string_above_max_length",
        ));
    }
    Ok(id)
}

fn check_output(fields: &Map<String, Value>, place: &str, lenient: bool) -> Result<(), Refusal> {
    let known = ["type", "id", "call_id", "output", "status"];
    check_fields(fields, &known, place, lenient)?;
    check_content(
        fields.get("output"),
        &["input_text", "input_image", "input_file"],
        &format!("{place}.output"),
        lenient,
    )
}

fn check_reasoning(
    items: &[Value],
    index: usize,
    stored: bool,
    lenient: bool,
) -> Result<(), Refusal> {
    let place = format!("input[{index}]");
    let item = &items[index];
    let known = [
        "type",
        "id",
        "summary",
        "content",
        "encrypted_content",
        "status",
    ];
    if let Some(fields) = item.as_object() {
        check_fields(fields, &known, &place, lenient)?;
        check_id(fields, "rs", &place)?;
    }
    let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
    if !item.get("summary").is_some_and(Value::is_array) {
        return Err(Refusal::coded(
            &format!("{place}.summary"),
            "it is missing",
            "missing_required_parameter",
        ));
    }
    match item.get("encrypted_content").and_then(Value::as_str) {
        Some(sealed) if lenient || sealed == seal(item) => {}
        Some(_) => {
            return Err(Refusal {
                message: format!(
                    "The encrypted content for item {id} could not be verified. Reason: it is not what this server sealed."
                ),
                param: None,
                code: Some("invalid_encrypted_content".to_owned()),
            });
        }
        None if stored => {}
        None => {
            return Err(plain(format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
            )));
        }
    }
    let follows = items.get(index + 1).map(kind);
    if matches!(follows, Some("message" | "function_call" | "reasoning"))
        || follows.is_some_and(|kind| kind.ends_with("_call"))
    {
        return Ok(());
    }
    Err(plain(format!(
        "Item '{id}' of type 'reasoning' was provided without its required following item."
    )))
}

fn check_content(
    content: Option<&Value>,
    allowed: &[&str],
    place: &str,
    lenient: bool,
) -> Result<(), Refusal> {
    let parts = match content {
        Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(parts)) if !parts.is_empty() => parts,
        _ => {
            return Err(Refusal::coded(
                place,
                "expected a string or an array that is not empty",
                "invalid_type",
            ));
        }
    };
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        if !allowed.contains(&kind) {
            return Err(Refusal::invalid(
                &format!("{place}.type"),
                &format!("'{kind}'; supported values are: {}", allowed.join(", ")),
            ));
        }
        let known: &[&str] = match kind {
            "input_text" => &["type", "text"],
            "output_text" => &["type", "text", "annotations", "logprobs"],
            "refusal" => &["type", "refusal"],
            "input_image" => &["type", "image_url", "file_id", "detail"],
            _ => &["type", "filename", "file_data", "file_url", "file_id"],
        };
        if let Some(fields) = part.as_object() {
            check_fields(fields, known, &place, lenient)?;
        }
        let text = |key: &str| part.get(key).and_then(Value::as_str);
        let fits = match kind {
            "input_text" | "output_text" => text("text").is_some(),
            "refusal" => text("refusal").is_some(),
            "input_image" => {
                super::super::check::is_picture_address(text("image_url").unwrap_or_default())
                    || text("file_id").is_some()
            }
            _ => match text("file_data") {
                Some(data) => data.starts_with("data:") && text("filename").is_some(),
                None => text("file_url").is_some() || text("file_id").is_some(),
            },
        };
        if !fits {
            return Err(Refusal::invalid(
                &place,
                &format!("it is no '{kind}' that can be read"),
            ));
        }
    }
    Ok(())
}
