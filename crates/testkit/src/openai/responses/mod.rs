//! The Responses interface: the same scripts, checked and answered in its form.
//!
//! What the model thinks (`reasoning_content` among a turn's `message` fields) is sealed by the stub,
//! and only its own seals are taken back; `output` there stands for the whole list of items.

mod answer;
mod check;
mod events;
mod items;

use serde_json::Value;

use super::check::Refusal;
use crate::stub::{Reply, Turn, smallest};

/// Checks the body of a request. `lenient` lets fields pass that only OpenAI itself refuses.
pub(super) fn check(body: &Value, lenient: bool) -> Result<(), Refusal> {
    check::check(body, lenient)
}

/// How often the model has spoken: its items that follow on each other are one turn.
pub(super) fn turns_of_model(body: &Value) -> usize {
    let items = body.get("input").and_then(Value::as_array);
    let mut count = 0;
    let mut speaking = false;
    for item in items.into_iter().flatten() {
        let is_own = match items::kind(item) {
            "message" => item.get("role").and_then(Value::as_str) == Some("assistant"),
            "function_call_output" => false,
            _ => true,
        };
        if is_own && !speaking {
            count += 1;
        }
        speaking = is_own;
    }
    count
}

/// The smallest answer to a request for a JSON schema, if this is one.
pub(super) fn asked_for(body: &Value) -> Option<Value> {
    Some(smallest(body.pointer("/text/format/schema")?))
}

/// The answer that says `turn`.
pub(super) fn reply(turn: &Turn, number: usize, body: &Value, length: usize) -> Reply {
    let response = answer::response(turn, number, body, length);
    if body.get("stream") == Some(&Value::Bool(true)) {
        Reply::Events(events::events(&response))
    } else {
        Reply::Json(response)
    }
}

/// One event as it is written.
pub(super) fn event(data: &Value) -> String {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
