//! From Anthropic's message to a reply (`spec/llm.md` §13, §18.4).

use std::collections::BTreeMap;

use formats::Object;
use formats::chat::{Content, Message, ToolCall, Usage};
use serde_json::{Value, json};

use super::wire::is_thinking;
use llm_wire::repair::{ToolNames, own_ids};
use llm_wire::{FinishReason, Reply};

/// The field of `provider_specific_fields` with the blocks of a turn as they came. It is there only
/// where the chat message alone would not give the same blocks in the same order.
pub(crate) const NATIVE_CONTENT: &str = "anthropic_content";
/// The field of `provider_specific_fields` with Anthropic's own word for why the model stopped.
pub(crate) const STOP_REASON: &str = "stop_reason";

/// Stop reasons that the chat words say as well.
const PLAIN_REASONS: &[&str] = &["end_turn", "tool_use", "max_tokens"];

/// The stop reason of a reply that filled the context window.
pub(crate) const WINDOW_FULL: &str = "model_context_window_exceeded";

/// What is needed to read an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The model that was asked.
    pub(crate) model: &'a str,
    /// The tool names of the request.
    pub(crate) names: &'a ToolNames,
    /// The tool by which the model gives its structured answer, if the request had one.
    pub(crate) answer_tool: Option<&'a str>,
    /// The arguments of calls as the model wrote them, by the place of their block.
    pub(crate) arguments: &'a BTreeMap<usize, String>,
}

/// Reads a message. The error is a sentence about what is missing.
pub(crate) fn read(raw: Value, reading: Reading<'_>) -> Result<Reply, String> {
    let blocks = raw
        .get("content")
        .and_then(Value::as_array)
        .ok_or("the answer has no `content`")?;
    let mut message = message(blocks, reading)?;
    let native = raw.get("stop_reason").and_then(Value::as_str);
    let answered = message
        .tool_calls
        .iter()
        .position(|call| Some(call.function.name.as_str()) == reading.answer_tool);
    if let Some(index) = answered {
        // The call is the answer: nobody else knows the tool.
        let call = message.tool_calls.swap_remove(index);
        message.content = Some(Content::Text(call.function.arguments));
        message.tool_calls.clear();
        message.extra.remove("provider_specific_fields");
    } else {
        keep_native(&mut message, blocks, &raw, native);
    }
    let finish_reason = match native {
        Some("tool_use") if answered.is_some() => FinishReason::Stop,
        _ => finish_reason(native, !message.tool_calls.is_empty()),
    };
    let model = raw
        .get("model")
        .and_then(Value::as_str)
        .filter(|model| !model.is_empty())
        .unwrap_or(reading.model)
        .to_owned();
    Ok(Reply {
        finish_reason,
        usage: raw.get("usage").and_then(usage),
        message,
        model,
        raw,
        cost_usd: None,
        request_id: None,
    })
}

fn message(blocks: &[Value], reading: Reading<'_>) -> Result<Message, String> {
    let mut text: Option<String> = None;
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut reasoning = String::new();
    let mut thinking = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let said = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match said("type") {
            "text" => text.get_or_insert_default().push_str(said("text")),
            "tool_use" => {
                let arguments = match reading.arguments.get(&index) {
                    Some(written) if !written.trim().is_empty() => written.clone(),
                    _ => block
                        .get("input")
                        .filter(|input| !input.is_null())
                        .map_or_else(|| "{}".to_owned(), Value::to_string),
                };
                let name = said("name");
                if name.is_empty() {
                    return Err("a `tool_use` of the answer has no name".to_owned());
                }
                calls.push(ToolCall::new(
                    said("id"),
                    reading.names.original(name),
                    arguments,
                ));
            }
            _ if is_thinking(block) => {
                reasoning.push_str(said("thinking"));
                thinking.push(block.clone());
            }
            _ => {}
        }
    }
    own_ids(&mut calls, "toolu");
    let mut message = Message::assistant("");
    message.content = text.map(Content::Text);
    message.tool_calls = calls;
    if !reasoning.is_empty() {
        message
            .extra
            .insert("reasoning_content".to_owned(), reasoning.into());
    }
    if !thinking.is_empty() {
        message
            .extra
            .insert("thinking_blocks".to_owned(), thinking.into());
    }
    Ok(message)
}

/// Keeps what the chat message has no place for.
fn keep_native(message: &mut Message, blocks: &[Value], raw: &Value, reason: Option<&str>) {
    let mut fields = Object::new();
    if !is_rebuilt(blocks) {
        fields.insert(NATIVE_CONTENT.to_owned(), blocks.into());
    }
    if let Some(reason) = reason.filter(|reason| !PLAIN_REASONS.contains(reason)) {
        fields.insert(STOP_REASON.to_owned(), reason.into());
    }
    if let Some(sequence) = raw.get("stop_sequence").filter(|value| !value.is_null()) {
        fields.insert("stop_sequence".to_owned(), sequence.clone());
    }
    if !fields.is_empty() {
        message
            .extra
            .insert("provider_specific_fields".to_owned(), fields.into());
    }
}

/// Whether the chat message gives the same blocks in the same order: thinking, then at most one
/// plain text, then calls.
fn is_rebuilt(blocks: &[Value]) -> bool {
    let mut place = 0;
    blocks.iter().all(|block| {
        let keys: &[&str] = match block.get("type").and_then(Value::as_str) {
            Some("text") => &["type", "text", "citations"],
            Some("tool_use") => &["type", "id", "name", "input"],
            _ if is_thinking(block) => return place == 0,
            _ => return false,
        };
        let is_text = keys.contains(&"text");
        let here = if is_text { 1 } else { 2 };
        let in_order = if is_text { place < here } else { place <= here };
        place = here;
        let plain = block.as_object().is_some_and(|fields| {
            fields.iter().all(|(key, value)| {
                keys.contains(&key.as_str()) && (key != "citations" || value.is_null())
            })
        });
        in_order && plain
    })
}

fn finish_reason(native: Option<&str>, has_calls: bool) -> FinishReason {
    match native {
        Some("max_tokens") => FinishReason::Length,
        Some("refusal") => FinishReason::ContentFilter,
        // The reason says whether the calls are whole; where it says nothing against it, they are.
        None | Some("end_turn" | "stop_sequence" | "tool_use") if has_calls => {
            FinishReason::ToolCalls
        }
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("tool_use") => FinishReason::ToolCalls,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// Usage in chat words: Anthropic counts cached tokens beside the input, chat completions in it.
fn usage(native: &Value) -> Option<Usage> {
    let native = native.as_object().filter(|usage| !usage.is_empty())?;
    let count = |key: &str| native.get(key).and_then(Value::as_u64);
    let read = count("cache_read_input_tokens").unwrap_or(0);
    let written = count("cache_creation_input_tokens").unwrap_or(0);
    let prompt = count("input_tokens").unwrap_or(0) + read + written;
    let completion = count("output_tokens").unwrap_or(0);
    let mut extra = Object::new();
    extra.insert(
        "prompt_tokens_details".to_owned(),
        json!({"cached_tokens": read, "cache_creation_tokens": written}),
    );
    let thinking = native
        .get("output_tokens_details")
        .and_then(|details| details.get("thinking_tokens"))
        .and_then(Value::as_u64);
    if let Some(thinking) = thinking {
        extra.insert(
            "completion_tokens_details".to_owned(),
            json!({"reasoning_tokens": thinking}),
        );
    }
    // The rest in Anthropic's words; the two counts that are in the sums already say so by name.
    let told = ["input_tokens", "output_tokens", "output_tokens_details"];
    for (key, value) in native {
        if !value.is_null() && !told.contains(&key.as_str()) {
            extra.insert(key.clone(), value.clone());
        }
    }
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        extra,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(raw: Value) -> Reply {
        let reading = Reading {
            model: "asked",
            names: &ToolNames::default(),
            answer_tool: None,
            arguments: &BTreeMap::new(),
        };
        read(raw, reading).unwrap()
    }

    fn is_kept(content: &Value) -> bool {
        let reply = reply(json!({"content": content, "stop_reason": "end_turn"}));
        let kept = reply.message.extra.get("provider_specific_fields").cloned();
        kept.is_some_and(|fields| fields[NATIVE_CONTENT] == *content)
    }

    #[test]
    fn blocks_are_kept_where_the_message_loses_something() {
        let text = json!({"type": "text", "text": "a"});
        let thought = json!({"type": "thinking", "thinking": "t", "signature": "s"});
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
        assert!(!is_kept(&json!([thought, thought, text, call, call])));
        assert!(!is_kept(&json!([call])));
        assert!(is_kept(&json!([text, text])));
        assert!(is_kept(&json!([call, text])));
        assert!(is_kept(&json!([text, thought])));
        assert!(is_kept(
            &json!([{"type": "server_tool_use", "id": "x"}, text])
        ));
        assert!(is_kept(
            &json!([{"type": "text", "text": "a", "citations": [{"cited_text": "b"}]}])
        ));
        assert!(!is_kept(
            &json!([{"type": "text", "text": "a", "citations": null}])
        ));
    }

    #[test]
    fn calls_that_ran_into_the_limit_are_not_taken_for_whole() {
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
        let cut = reply(json!({"content": [call], "stop_reason": "max_tokens"}));
        assert_eq!(cut.finish_reason, FinishReason::Length);
        let unknown = reply(json!({"content": [call], "stop_reason": "brand_new"}));
        assert_eq!(
            unknown.finish_reason,
            FinishReason::Other("brand_new".to_owned())
        );
    }

    #[test]
    fn missing_usage_is_not_zero_and_ids_are_unique() {
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": null});
        let reply = reply(json!({"content": [call, call, {"type": "tool_use", "name": "f"}]}));
        assert_eq!(reply.usage, None);
        let mut ids: Vec<&str> = reply
            .message
            .tool_calls
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        assert_eq!(reply.message.tool_calls[0].function.arguments, "{}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }
}
