//! What the stub answers, at once or as a stream.

use bytes::Bytes;
use serde_json::{Value, json};

use super::frames::event;
use crate::stub::{Turn, check_sum, halves};

/// The signature of reasoning with the text `text`: the same text has the same one, so that the stub
/// knows its own again.
pub(super) fn signature(text: &str) -> String {
    format!("aws{:016x}", check_sum(text))
}

/// An answer that says `turn`. `number` makes its ids, `request_bytes` its usage.
pub(super) fn answer(turn: &Turn, number: usize, request_bytes: usize) -> Value {
    let content = content(turn, number);
    let reason = match turn.finish_reason.as_deref() {
        None if turn.tool_calls.is_empty() => "end_turn",
        None | Some("tool_calls") => "tool_use",
        Some("stop") => "end_turn",
        Some("length") => "max_tokens",
        Some("content_filter") => "content_filtered",
        Some(native) => native,
    };
    let usage = match &turn.usage {
        Some(usage) => {
            let (read, written) = (usage.cached_tokens(), usage.cache_creation_tokens());
            json!({
                "inputTokens": usage.prompt_tokens.saturating_sub(read + written),
                "outputTokens": usage.completion_tokens,
                "totalTokens": usage.total_tokens,
                "cacheReadInputTokens": read,
                "cacheWriteInputTokens": written,
            })
        }
        None => {
            let written = Value::from(content.clone()).to_string().len();
            let (input, output) = ((request_bytes / 4).max(1), (written / 4).max(1));
            json!({"inputTokens": input, "outputTokens": output, "totalTokens": input + output})
        }
    };
    json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": reason,
        "usage": usage,
        "metrics": {"latencyMs": 1},
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
    let mut blocks: Vec<Value> = thinking.into_iter().flatten().map(reasoning).collect();
    let text = turn.content.as_ref().map(formats::chat::Content::text);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        blocks.push(json!({ "text": text }));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let id = call.id.clone();
        let id = id.unwrap_or_else(|| format!("tooluse_{number:04}_{index}"));
        blocks
            .push(json!({"toolUse": {"toolUseId": id, "name": call.name, "input": call.object()}}));
    }
    blocks
}

fn reasoning(block: &Value) -> Value {
    if let Some(data) = block.get("data") {
        return json!({"reasoningContent": {"redactedContent": data}});
    }
    let text = block
        .get("thinking")
        .and_then(Value::as_str)
        .unwrap_or_default();
    json!({"reasoningContent": {"reasoningText": {"text": text, "signature": signature(text)}}})
}

/// The frames of `answer`.
pub(super) fn frames(answer: &Value, turn: &Turn) -> Vec<Bytes> {
    let mut frames = vec![event(
        "messageStart",
        &json!({"role": "assistant", "p": "abc"}),
    )];
    // Arguments that are no JSON are streamed as they are.
    let mut raw = turn.tool_calls.iter().map(|call| call.arguments.as_str());
    let blocks = answer
        .pointer("/output/message/content")
        .and_then(Value::as_array);
    for (index, block) in blocks.into_iter().flatten().enumerate() {
        let delta = |delta: Value| {
            event(
                "contentBlockDelta",
                &json!({"contentBlockIndex": index, "delta": delta}),
            )
        };
        if let Some(text) = block.get("text").and_then(Value::as_str) {
            frames.extend(halves(text).map(|text| delta(json!({ "text": text }))));
        } else if let Some(call) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            frames.push(event(
                "contentBlockStart",
                &json!({"contentBlockIndex": index, "start": start}),
            ));
            let written = raw.next().flatten().map(str::to_owned);
            let written = written.unwrap_or_else(|| call["input"].to_string());
            let pieces = halves(&written).map(|text| delta(json!({"toolUse": {"input": text}})));
            frames.extend(pieces);
        } else if let Some(told) = block.pointer("/reasoningContent/reasoningText") {
            let text = told["text"].as_str().unwrap_or_default();
            let piece = |text: &str| json!({"reasoningContent": {"text": text}});
            frames.extend(halves(text).map(|text| delta(piece(text))));
            let signature = json!({"reasoningContent": {"signature": told["signature"]}});
            frames.push(delta(signature));
        } else if let Some(data) = block.pointer("/reasoningContent/redactedContent") {
            frames.push(delta(
                json!({"reasoningContent": {"redactedContent": data}}),
            ));
        }
        frames.push(event(
            "contentBlockStop",
            &json!({ "contentBlockIndex": index }),
        ));
    }
    frames.push(event(
        "messageStop",
        &json!({"stopReason": answer["stopReason"]}),
    ));
    frames.push(event(
        "metadata",
        &json!({"usage": answer["usage"], "metrics": answer["metrics"]}),
    ));
    frames
}
