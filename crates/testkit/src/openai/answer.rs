//! Bodies of answers.

use serde_json::{Map, Value, json};

use crate::stub::Turn;

/// When every answer of a stub was made.
pub(super) const CREATED: u64 = 1_700_000_000;

/// A chat completion that says `turn`. `number` makes its ids, `request_bytes` its usage.
pub(super) fn completion(turn: &Turn, number: usize, model: &str, request_bytes: usize) -> Value {
    let message = message(turn, number);
    let finish_reason = turn.finish_reason.clone().unwrap_or_else(|| {
        let reason = if turn.tool_calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        reason.to_owned()
    });
    let usage = match &turn.usage {
        Some(usage) => json!(usage),
        None => {
            let prompt = (request_bytes / 4).max(1);
            let completion = (message.to_string().len() / 4).max(1);
            json!({
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            })
        }
    };
    json!({
        "id": format!("chatcmpl-stub-{number}"),
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason,
        }],
        "usage": usage,
        "service_tier": "default",
        "system_fingerprint": "fp_stub",
    })
}

fn message(turn: &Turn, number: usize) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), json!(turn.content));
    message.insert("refusal".to_owned(), Value::Null);
    message.insert("annotations".to_owned(), json!([]));
    if !turn.tool_calls.is_empty() {
        let calls = turn.tool_calls.iter().enumerate().map(|(index, call)| {
            let id = call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{number:04}_{index}"));
            let arguments = match &call.arguments {
                Value::String(raw) => raw.clone(),
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            };
            json!({
                "id": id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments},
            })
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    message.extend(turn.message.clone());
    Value::Object(message)
}

/// An error in OpenAI's form.
pub(super) fn error(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
