//! What the stub answers, at once or as a stream.

use serde_json::{Value, json};

use super::check::Generation;
use crate::stub::Turn;

/// The signature of `part`: what it says decides, so that the stub knows its own again, and on which part
/// it was.
pub(super) fn signature(part: &Value) -> String {
    let call = part.get("functionCall");
    let said = match call {
        Some(call) => json!([call.get("name"), call.get("args")]),
        None => part.get("text").cloned().unwrap_or_default(),
    };
    // FNV-1a with 64 bits.
    let sum = said
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    // Twenty characters of base64.
    format!("stub{sum:016x}")
}

/// An answer that says `turn`. `number` makes its ids, `request_bytes` its usage.
pub(super) fn answer(turn: &Turn, number: usize, model: &str, request_bytes: usize) -> Value {
    let mut answer = json!({
        "modelVersion": model,
        "responseId": format!("stub-{number}"),
    });
    if let Some(reason) = turn.message.get("block_reason") {
        answer["promptFeedback"] = json!({"blockReason": reason});
        answer["usageMetadata"] = json!({"promptTokenCount": request_bytes / 4});
        return answer;
    }
    let mut candidate = json!({"index": 0});
    let written = match parts(turn, number, Generation::of(model)) {
        Ok(parts) => {
            let written = json!(parts).to_string().len();
            candidate["content"] = json!({"role": "model", "parts": parts});
            candidate["finishReason"] = finish_reason(turn).into();
            written
        }
        Err(raw) => {
            candidate["finishReason"] = "MALFORMED_FUNCTION_CALL".into();
            candidate["finishMessage"] = format!("Malformed function call: {raw}").into();
            raw.len()
        }
    };
    answer["candidates"] = json!([candidate]);
    answer["usageMetadata"] = usage(turn, request_bytes, written);
    answer
}

fn finish_reason(turn: &Turn) -> &str {
    match turn.finish_reason.as_deref() {
        None | Some("stop" | "tool_calls") => "STOP",
        Some("length") => "MAX_TOKENS",
        Some("content_filter") => "SAFETY",
        Some("malformed_call") => "MALFORMED_FUNCTION_CALL",
        Some(native) => native,
    }
}

fn usage(turn: &Turn, request_bytes: usize, written: usize) -> Value {
    let Some(usage) = &turn.usage else {
        let (prompt, candidates) = ((request_bytes / 4).max(1), (written / 4).max(1));
        return json!({
            "promptTokenCount": prompt,
            "candidatesTokenCount": candidates,
            "totalTokenCount": prompt + candidates,
        });
    };
    let thoughts = usage.reasoning_tokens();
    let mut counts = json!({
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": usage.completion_tokens.saturating_sub(thoughts),
        "totalTokenCount": usage.prompt_tokens + usage.completion_tokens,
    });
    if thoughts > 0 {
        counts["thoughtsTokenCount"] = thoughts.into();
    }
    if usage.cached_tokens() > 0 {
        counts["cachedContentTokenCount"] = usage.cached_tokens().into();
    }
    counts
}

/// The parts of the reply, signed; the error is what stands in the place of arguments.
fn parts(turn: &Turn, number: usize, generation: Generation) -> Result<Vec<Value>, String> {
    let mut parts = match turn.message.get("parts") {
        Some(Value::Array(parts)) => parts.clone(),
        _ => said(turn, number, generation)?,
    };
    let is_signed = |part: &Value| part.get("thoughtSignature").is_some();
    if generation.signs() && !parts.iter().any(is_signed) {
        // The first call has the signature, else the last part.
        let first = parts
            .iter()
            .position(|part| part.get("functionCall").is_some());
        let place = first.or_else(|| parts.len().checked_sub(1));
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            part["thoughtSignature"] = json!(true);
        }
    }
    for part in &mut parts {
        if part.get("thoughtSignature") == Some(&json!(true)) {
            part["thoughtSignature"] = signature(part).into();
        }
    }
    Ok(parts)
}

fn said(turn: &Turn, number: usize, generation: Generation) -> Result<Vec<Value>, String> {
    let mut parts = Vec::new();
    let thought = turn
        .message
        .get("reasoning_content")
        .and_then(Value::as_str);
    if let Some(thought) = thought.filter(|thought| !thought.is_empty()) {
        parts.push(json!({"text": thought, "thought": true}));
    }
    let text = turn.content.as_ref().map(formats::chat::Content::text);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        parts.push(json!({"text": text}));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let args = match &call.arguments {
            Value::Null => json!({}),
            Value::String(raw) => serde_json::from_str(raw).unwrap_or_default(),
            value => value.clone(),
        };
        if !args.is_object() {
            return Err(format!("{}({})", call.name, call.arguments));
        }
        let mut native = json!({"name": call.name, "args": args});
        if generation.signs() || call.id.is_some() {
            let own = || format!("stub{number:04}{index}");
            native["id"] = call.id.clone().unwrap_or_else(own).into();
        }
        parts.push(json!({"functionCall": native}));
    }
    Ok(parts)
}

/// One event as it is written.
pub(super) fn event(chunk: &Value) -> String {
    format!("data: {chunk}\r\n\r\n")
}

/// The pieces of `answer` as a stream brings them.
pub(super) fn chunks(answer: &Value) -> Vec<Value> {
    let parts = answer.pointer("/candidates/0/content/parts");
    let piece = |part: Value| {
        json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "modelVersion": answer["modelVersion"],
            "responseId": answer["responseId"],
        })
    };
    let mut chunks: Vec<Value> = parts
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .flat_map(pieces)
        .map(piece)
        .collect();
    let mut end = answer.clone();
    if let Some(candidate) = end
        .pointer_mut("/candidates/0")
        .and_then(Value::as_object_mut)
    {
        candidate.remove("content");
    }
    chunks.push(end);
    chunks
}

/// A part as it comes: plain texts in two halves.
fn pieces(part: &Value) -> Vec<Value> {
    let text = part.get("text").and_then(Value::as_str);
    let signed = part.get("thoughtSignature").is_some();
    let Some(text) = text.filter(|text| text.chars().count() > 1 && !signed) else {
        return vec![part.clone()];
    };
    let middle = text.char_indices().nth(text.chars().count() / 2);
    let (first, second) = text.split_at(middle.map_or(0, |(at, _)| at));
    [first, second]
        .into_iter()
        .map(|half| {
            let mut piece = part.clone();
            piece["text"] = half.into();
            piece
        })
        .collect()
}
