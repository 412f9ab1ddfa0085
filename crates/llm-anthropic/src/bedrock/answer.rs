//! From a Converse answer to a reply, by way of Anthropic's form of a message.

use formats::Object;
use serde_json::{Value, json};

use super::blocks::FOREIGN;
use crate::messages::answer::{self, Reading};
use llm_wire::{FinishReason, Reply};

/// Reads an answer that came at once. The error is a sentence about what is missing.
pub(super) fn read(raw: Value, reading: Reading<'_>) -> Result<Reply, String> {
    let blocks = raw
        .pointer("/output/message/content")
        .and_then(Value::as_array)
        .ok_or("the answer has no `output.message.content`")?;
    let content: Vec<Value> = blocks.iter().map(block).collect();
    let message = json!({
        "content": content,
        "stop_reason": raw.get("stopReason"),
        "usage": raw.get("usage").map(usage),
    });
    let mut reply = finished(message, reading)?;
    reply.raw = raw;
    Ok(reply)
}

/// Reads a message in Anthropic's form whose stop reason is Converse's.
pub(super) fn finished(message: Value, reading: Reading<'_>) -> Result<Reply, String> {
    let stop = message.get("stop_reason").and_then(Value::as_str);
    let finish = match stop {
        Some("content_filtered" | "guardrail_intervened") => Some(FinishReason::ContentFilter),
        Some("malformed_tool_use" | "malformed_model_output") => Some(FinishReason::MalformedCall),
        _ => None,
    };
    let mut reply = answer::read(message, reading)?;
    if let Some(finish) = finish {
        reply.finish_reason = finish;
    }
    Ok(reply)
}

/// A block in Anthropic's form.
fn block(block: &Value) -> Value {
    let Some((kind, inner)) = block.as_object().and_then(|block| block.iter().next()) else {
        return json!({"type": FOREIGN, "block": block});
    };
    match kind.as_str() {
        "text" => json!({"type": "text", "text": inner}),
        "toolUse" if inner.get("type").is_none() => json!({
            "type": "tool_use",
            "id": inner.get("toolUseId"),
            "name": inner.get("name"),
            "input": inner.get("input"),
        }),
        "reasoningContent" => reasoning(inner),
        _ => json!({"type": FOREIGN, "block": block}),
    }
}

fn reasoning(content: &Value) -> Value {
    if let Some(data) = content.get("redactedContent") {
        return json!({"type": "redacted_thinking", "data": data});
    }
    let told = content.get("reasoningText");
    let text = |key: &str| told.and_then(|told| told.get(key)).cloned();
    let mut block = json!({"type": "thinking", "thinking": text("text").unwrap_or("".into())});
    if let Some(signature) = text("signature") {
        block["signature"] = signature;
    }
    block
}

/// The counts by Anthropic's names.
pub(super) fn usage(native: &Value) -> Value {
    let names = [
        ("inputTokens", "input_tokens"),
        ("outputTokens", "output_tokens"),
        ("cacheReadInputTokens", "cache_read_input_tokens"),
        ("cacheWriteInputTokens", "cache_creation_input_tokens"),
    ];
    let counts: Object = names
        .into_iter()
        .filter_map(|(theirs, name)| Some((name.to_owned(), native.get(theirs)?.clone())))
        .collect();
    counts.into()
}
