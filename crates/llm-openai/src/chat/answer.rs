//! From the answer's JSON to a reply.

use formats::chat::{Message, Role, Usage};
use serde_json::Value;

use llm_wire::repair::{ToolNames, own_ids};
use llm_wire::{FinishReason, Reply};

/// Reads a chat completion. The error is a sentence about what is missing.
pub(crate) fn read(raw: Value, asked_model: &str, names: &ToolNames) -> Result<Reply, String> {
    let choices = raw
        .get("choices")
        .and_then(Value::as_array)
        .ok_or("the answer has no `choices`")?;
    let choice = choices.first().ok_or("the answer's `choices` are empty")?;
    let message = choice
        .get("message")
        .filter(|message| message.is_object())
        .ok_or("the answer's first choice has no `message`")?;
    let message = read_message(message, names)?;
    let native = choice.get("finish_reason").and_then(Value::as_str);
    let finish_reason = finish_reason(native, &message);
    let usage = raw
        .get("usage")
        .filter(|usage| usage.as_object().is_some_and(|usage| !usage.is_empty()))
        .map(|usage| serde_json::from_value::<Usage>(usage.clone()))
        .transpose()
        .map_err(|error| format!("the answer's `usage` is unreadable: {error}"))?;
    let model = raw
        .get("model")
        .and_then(Value::as_str)
        .filter(|model| !model.is_empty())
        .unwrap_or(asked_model)
        .to_owned();
    // OpenRouter tells what the call cost.
    let cost_usd = raw
        .pointer("/usage/cost")
        .and_then(Value::as_f64)
        .filter(|cost| *cost >= 0.0);
    Ok(Reply {
        message,
        finish_reason,
        usage,
        model,
        raw,
        cost_usd,
        request_id: None,
    })
}

fn read_message(value: &Value, names: &ToolNames) -> Result<Message, String> {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        // What is null says nothing, but would be sent back with the message.
        fields.retain(|key, value| !value.is_null() || key == "content");
        fields.insert("role".to_owned(), Role::Assistant.as_str().into());
        let reasoning = fields
            .get("reasoning")
            .filter(|reasoning| reasoning.is_string())
            .cloned();
        if let Some(reasoning) = reasoning {
            fields.entry("reasoning_content").or_insert(reasoning);
        }
    }
    let mut message: Message = serde_json::from_value(value)
        .map_err(|error| format!("the answer's message is unreadable: {error}"))?;
    for call in &mut message.tool_calls {
        call.function.name = names.original(&call.function.name).to_owned();
    }
    own_ids(&mut message.tool_calls, "call");
    Ok(message)
}

fn finish_reason(native: Option<&str>, message: &Message) -> FinishReason {
    let has_calls = !message.tool_calls.is_empty();
    let refused =
        message.content.is_none() && message.extra.get("refusal").is_some_and(Value::is_string);
    match native {
        Some("length") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        _ if refused => FinishReason::ContentFilter,
        // Some servers say `stop`, or nothing, beside calls.
        None | Some("stop" | "tool_calls" | "function_call") if has_calls => {
            FinishReason::ToolCalls
        }
        Some("stop") => FinishReason::Stop,
        Some("tool_calls") => FinishReason::ToolCalls,
        other => FinishReason::Other(other.unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(message: &Value, finish_reason: &Value) -> Result<Reply, String> {
        let raw = json!({"choices": [{"message": message, "finish_reason": finish_reason}]});
        read(raw, "asked", &ToolNames::default())
    }

    #[test]
    fn calls_get_ids_of_their_own() {
        let call = json!({"id": "a", "function": {"name": "f", "arguments": "{}"}});
        let mut nameless = call.clone();
        nameless["id"] = Value::Null;
        let reply = answer(
            &json!({"tool_calls": [call, call, nameless]}),
            &json!("stop"),
        )
        .unwrap();
        let mut ids: Vec<&str> = reply
            .message
            .tool_calls
            .iter()
            .map(|call| call.id.as_str())
            .collect();
        assert_eq!(ids[0], "a");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3);
        assert_eq!(reply.finish_reason, FinishReason::ToolCalls);
    }

    #[test]
    fn calls_that_ran_into_the_limit_are_not_taken_for_whole() {
        let call = json!({"id": "a", "function": {"name": "f", "arguments": "{\"a"}});
        let reply = answer(&json!({"tool_calls": [call]}), &json!("length")).unwrap();
        assert_eq!(reply.finish_reason, FinishReason::Length);
        assert_eq!(reply.message.tool_calls[0].function.arguments, "{\"a");
    }

    #[test]
    fn a_refusal_counts_as_filtered() {
        let reply = answer(&json!({"content": null, "refusal": "no"}), &json!("stop")).unwrap();
        assert_eq!(reply.finish_reason, FinishReason::ContentFilter);
    }

    #[test]
    fn what_is_missing_is_named() {
        let read = |raw| read(raw, "m", &ToolNames::default()).unwrap_err();
        assert!(read(json!({})).contains("no `choices`"));
        assert!(read(json!({"choices": []})).contains("empty"));
        assert!(read(json!({"choices": [{}]})).contains("no `message`"));
    }

    #[test]
    fn missing_usage_is_not_zero() {
        let reply = answer(&json!({"content": "x"}), &json!("stop")).unwrap();
        assert_eq!(reply.usage, None);
        assert_eq!(reply.model, "asked");
    }
}
