//! What the stub answers, at once or as a stream.

use serde_json::{Value, json};

use crate::stub::{Turn, check_sum, halves};

/// The signature of a thinking block with the text `thinking`: the same text has the same one, so that
/// the stub knows its own again.
pub(super) fn signature(thinking: &str) -> String {
    format!("stub{:016x}", check_sum(thinking))
}

/// A message that says `turn`. `number` makes its ids, `request_bytes` its usage.
pub(super) fn message(turn: &Turn, number: usize, body: &Value, request_bytes: usize) -> Value {
    let content = signed(content(turn, number));
    let reason = match turn.finish_reason.as_deref() {
        None if turn.tool_calls.is_empty() => "end_turn",
        None | Some("tool_calls") => "tool_use",
        Some("stop") => "end_turn",
        Some("length") => "max_tokens",
        Some("content_filter") => "refusal",
        Some(native) => native,
    };
    let written = Value::from(content.clone()).to_string().len();
    let usage = match &turn.usage {
        Some(usage) => {
            let (read, created) = (usage.cached_tokens(), usage.cache_creation_tokens());
            json!({
                "input_tokens": usage.prompt_tokens.saturating_sub(read + created),
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": created,
                "output_tokens": usage.completion_tokens,
            })
        }
        None => json!({
            "input_tokens": (request_bytes / 4).max(1),
            "output_tokens": (written / 4).max(1),
        }),
    };
    json!({
        "id": format!("msg_stub_{number}"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model").cloned().unwrap_or_default(),
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn content(turn: &Turn, number: usize) -> Vec<Value> {
    if let Some(Value::Array(blocks)) = turn.message.get("content") {
        return blocks.clone();
    }
    let thinking = turn
        .message
        .get("thinking_blocks")
        .and_then(Value::as_array);
    let mut blocks: Vec<Value> = thinking.cloned().unwrap_or_default();
    let text = turn.content.as_ref().map(formats::chat::Content::text);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let id = call.id.clone();
        let id = id.unwrap_or_else(|| format!("toolu_{number:04}_{index}"));
        blocks
            .push(json!({"type": "tool_use", "id": id, "name": call.name, "input": call.object()}));
    }
    blocks
}

fn signed(mut blocks: Vec<Value>) -> Vec<Value> {
    for block in &mut blocks {
        if block.get("type") == Some(&json!("thinking")) {
            let thinking = block.get("thinking").and_then(Value::as_str);
            block["signature"] = signature(thinking.unwrap_or_default()).into();
        }
    }
    blocks
}

/// One event as it is written.
pub(super) fn event(data: &Value) -> String {
    let name = data.get("type").and_then(Value::as_str).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

/// The stream of `message`.
pub(super) fn events(message: &Value, turn: &Turn) -> Vec<String> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = 1.into();
    let mut events = vec![
        event(&json!({"type": "message_start", "message": start})),
        event(&json!({"type": "ping"})),
    ];
    // Arguments that are no JSON are streamed as they are.
    let mut raw = turn.tool_calls.iter().map(|call| call.arguments.as_str());
    let blocks = message.get("content").and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        let (empty, deltas) = pieces(block, &mut raw);
        events.push(event(
            &json!({"type": "content_block_start", "index": index, "content_block": empty}),
        ));
        events.extend(deltas.iter().map(|delta| {
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        events.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
    }
    events.push(event(&json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]},
        "usage": {"output_tokens": message["usage"]["output_tokens"]},
    })));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

/// A block as it begins, and what is added to it.
fn pieces<'t>(
    block: &Value,
    raw: &mut impl Iterator<Item = Option<&'t str>>,
) -> (Value, Vec<Value>) {
    let said = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut empty = block.clone();
    let deltas = match said("type") {
        "text" => {
            empty["text"] = "".into();
            let pieces = halves(said("text"));
            let delta = |text| json!({"type": "text_delta", "text": text});
            pieces.into_iter().map(delta).collect()
        }
        "thinking" => {
            empty["thinking"] = "".into();
            empty["signature"] = "".into();
            let delta = |text| json!({"type": "thinking_delta", "thinking": text});
            let signature = json!({"type": "signature_delta", "signature": said("signature")});
            let pieces = halves(said("thinking")).into_iter().map(delta);
            pieces.chain([signature]).collect()
        }
        "tool_use" => {
            empty["input"] = json!({});
            let written = raw.next().flatten().map(str::to_owned);
            let written = written.unwrap_or_else(|| block["input"].to_string());
            let delta = |text| json!({"type": "input_json_delta", "partial_json": text});
            halves(&written).into_iter().map(delta).collect()
        }
        _ => Vec::new(),
    };
    (empty, deltas)
}
