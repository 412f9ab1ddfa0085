//! Bodies of answers.

use serde_json::{Map, Value, json};

use crate::stub::{Turn, halves};

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

/// The stream of `completion`, each chunk as it is written.
pub(super) fn chunks(completion: &Value, body: &Value) -> Vec<String> {
    let message = completion.pointer("/choices/0/message");
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    for (key, value) in message.and_then(Value::as_object).into_iter().flatten() {
        match (key.as_str(), value) {
            ("role", _) | (_, Value::Null) => {}
            ("tool_calls", Value::Array(calls)) => {
                for (index, call) in calls.iter().enumerate() {
                    let arguments = call.pointer("/function/arguments").and_then(Value::as_str);
                    let mut begun = call.clone();
                    begun["index"] = index.into();
                    begun["function"]["arguments"] = "".into();
                    deltas.push(json!({"tool_calls": [begun]}));
                    deltas.extend(halves(arguments.unwrap_or_default()).map(|text| {
                        json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
                    }));
                }
            }
            (key, Value::String(text)) => {
                deltas.extend(halves(text).map(|text| json!({ key: text })));
            }
            (key, value) => deltas.push(json!({ key: value })),
        }
    }
    let chunk = |choices: Value, usage: Value| {
        let mut chunk = completion.clone();
        chunk["object"] = "chat.completion.chunk".into();
        chunk["choices"] = choices;
        chunk["usage"] = usage;
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
    let mut events: Vec<String> = deltas
        .into_iter()
        .map(|delta| chunk(choice(delta, Value::Null), Value::Null))
        .collect();
    let reason = completion.pointer("/choices/0/finish_reason").cloned();
    events.push(chunk(
        choice(json!({}), reason.unwrap_or_default()),
        Value::Null,
    ));
    if body.pointer("/stream_options/include_usage") == Some(&json!(true)) {
        events.push(chunk(json!([]), completion["usage"].clone()));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
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
            json!({
                "id": id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.text()},
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
