//! Bodies of answers.

use formats::chat::Content;
use serde_json::{Value, json};

use super::super::answer::CREATED;
use crate::stub::{Turn, check_sum};

/// What stands in the id of an item that came after reasoning, in front of the id of that.
const AFTER: &str = "_after_";

/// The id of the reasoning that the item `id` cannot be without.
pub(super) fn requirement(id: &str) -> Option<&str> {
    id.split_once(AFTER).map(|(_, reasoning)| reasoning)
}

/// What stands for the encrypted content of a reasoning item: the same item has the same one, so that
/// the stub knows its own again.
pub(super) fn seal(item: &Value) -> String {
    let said = json!([item.get("id"), item.get("summary"), item.get("content")]);
    format!("sealed{:016x}", check_sum(&said.to_string()))
}

/// A response that says `turn`. `number` makes its ids, `request_bytes` its usage.
pub(super) fn response(turn: &Turn, number: usize, body: &Value, request_bytes: usize) -> Value {
    let output = output(turn, number, body);
    let (status, details, error) = match turn.finish_reason.as_deref() {
        Some("length") => (
            "incomplete",
            json!({"reason": "max_output_tokens"}),
            Value::Null,
        ),
        Some("content_filter") => (
            "incomplete",
            json!({"reason": "content_filter"}),
            Value::Null,
        ),
        Some("failed") => (
            "failed",
            Value::Null,
            json!({"code": "server_error", "message": "The stub's script says that this fails."}),
        ),
        _ => ("completed", Value::Null, Value::Null),
    };
    let usage = match &turn.usage {
        Some(usage) => json!({
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens()},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens()},
            "total_tokens": usage.total_tokens,
        }),
        None => {
            let written = Value::from(output.clone()).to_string().len();
            let (input, output) = ((request_bytes / 4).max(1), (written / 4).max(1));
            json!({
                "input_tokens": input,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output,
            })
        }
    };
    let asked = |key: &str, usual: Value| body.get(key).cloned().unwrap_or(usual);
    json!({
        "id": format!("resp_stub_{number}"),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": error,
        "incomplete_details": details,
        "instructions": asked("instructions", Value::Null),
        "max_output_tokens": asked("max_output_tokens", Value::Null),
        "metadata": {},
        "model": body.get("model"),
        "output": output,
        "parallel_tool_calls": asked("parallel_tool_calls", true.into()),
        "previous_response_id": null,
        "reasoning": asked("reasoning", json!({"effort": null, "summary": null})),
        "service_tier": "default",
        "store": asked("store", true.into()),
        "temperature": 1.0,
        "text": asked("text", json!({"format": {"type": "text"}})),
        "tool_choice": asked("tool_choice", "auto".into()),
        "tools": asked("tools", json!([])),
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
    })
}

fn output(turn: &Turn, number: usize, body: &Value) -> Vec<Value> {
    let is_sealed = body
        .get("include")
        .and_then(Value::as_array)
        .is_some_and(|include| include.contains(&json!("reasoning.encrypted_content")));
    let mut items = match turn.message.get("output") {
        Some(Value::Array(items)) => items.clone(),
        _ => said(turn, number),
    };
    for item in &mut items {
        let is_reasoning = item.get("type") == Some(&json!("reasoning"));
        if is_reasoning && is_sealed && item.get("encrypted_content").is_none() {
            item["encrypted_content"] = seal(item).into();
        }
    }
    items
}

fn said(turn: &Turn, number: usize) -> Vec<Value> {
    let mut items = Vec::new();
    let mut after = String::new();
    if let Some(thought) = turn
        .message
        .get("reasoning_content")
        .and_then(Value::as_str)
    {
        let id = format!("rs_{number}");
        after = format!("{AFTER}{id}");
        let summary = json!([{"type": "summary_text", "text": thought}]);
        items.push(json!({"type": "reasoning", "id": id, "summary": summary}));
    }
    let text = turn.content.as_ref().map(Content::text);
    let text = text.filter(|text| !text.is_empty());
    let refusal = turn.message.get("refusal").and_then(Value::as_str);
    let part = match (text, refusal) {
        (Some(text), _) => {
            Some(json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}))
        }
        (None, Some(refusal)) => Some(json!({"type": "refusal", "refusal": refusal})),
        (None, None) => None,
    };
    if let Some(part) = part {
        items.push(json!({
            "type": "message",
            "id": format!("msg_{number}{after}"),
            "status": "completed",
            "role": "assistant",
            "content": [part],
        }));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let id = call.id.clone();
        items.push(json!({
            "type": "function_call",
            "id": format!("fc_{number}_{index}{after}"),
            "call_id": id.unwrap_or_else(|| format!("call_{number:04}_{index}")),
            "name": call.name,
            "arguments": call.text(),
            "status": "completed",
        }));
    }
    items
}
