//! The stream of a response.

use serde_json::{Value, json};

use super::event;
use crate::stub::halves;

/// The events of `response`, each as it is written.
pub(super) fn events(response: &Value) -> Vec<String> {
    let mut begun = response.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.in_progress", "response": begun}),
    ];
    let items = response.get("output").and_then(Value::as_array);
    for (place, item) in items.into_iter().flatten().enumerate() {
        push_item(&mut events, place, item);
    }
    let status = response
        .get("status")
        .and_then(Value::as_str)
        .unwrap_or_default();
    events.push(json!({"type": format!("response.{status}"), "response": response}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events.iter().map(event).collect()
}

fn push_item(events: &mut Vec<Value>, place: usize, item: &Value) {
    let said = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
    let id = said("id");
    let mut empty = item.clone();
    let mut pieces = Vec::new();
    match said("type") {
        "message" => {
            empty["content"] = json!([]);
            let parts = item.get("content").and_then(Value::as_array);
            for (index, part) in parts.into_iter().flatten().enumerate() {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                let key = if kind == "refusal" { "refusal" } else { "text" };
                let text = part.get(key).and_then(Value::as_str).unwrap_or_default();
                let mut blank = part.clone();
                blank[key] = "".into();
                pieces.push(json!({"type": "response.content_part.added", "content_index": index, "part": blank}));
                pieces.extend(halves(text).map(|half| {
                    json!({"type": format!("response.{kind}.delta"), "content_index": index, "delta": half})
                }));
                pieces.push(json!({"type": format!("response.{kind}.done"), "content_index": index, key: text}));
                pieces.push(json!({"type": "response.content_part.done", "content_index": index, "part": part}));
            }
        }
        "reasoning" => {
            empty["summary"] = json!([]);
            // As at OpenAI, the seal of an item that has only begun is not the whole one.
            if item.get("encrypted_content").is_some() {
                empty["encrypted_content"] = "unfinished".into();
            }
            let parts = item.get("summary").and_then(Value::as_array);
            for (index, part) in parts.into_iter().flatten().enumerate() {
                let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
                pieces.extend(halves(text).map(|half| {
                    json!({"type": "response.reasoning_summary_text.delta", "summary_index": index, "delta": half})
                }));
            }
        }
        "function_call" => {
            empty["arguments"] = "".into();
            let arguments = said("arguments");
            pieces.extend(halves(arguments).map(
                |half| json!({"type": "response.function_call_arguments.delta", "delta": half}),
            ));
            pieces.push(
                json!({"type": "response.function_call_arguments.done", "arguments": arguments}),
            );
        }
        _ => {}
    }
    events
        .push(json!({"type": "response.output_item.added", "output_index": place, "item": empty}));
    for mut piece in pieces {
        piece["output_index"] = place.into();
        piece["item_id"] = id.into();
        events.push(piece);
    }
    events.push(json!({"type": "response.output_item.done", "output_index": place, "item": item}));
}
