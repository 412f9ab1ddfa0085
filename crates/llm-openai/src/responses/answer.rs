//! From a response to a reply.

use formats::Object;
use formats::chat::{Content, Message, ToolCall, Usage};
use serde_json::{Value, json};

use super::conversation::is_call;
use llm_wire::repair::{ToolNames, own_ids};
use llm_wire::{FinishReason, Reply};

/// The field of `provider_specific_fields` with the items of a turn as they came. It is there only
/// where the chat message alone would not give the same.
pub(super) const NATIVE_OUTPUT: &str = "openai_output";

/// Fields of messages and calls that say nothing which has to be sent back.
const PLAIN_FIELDS: &[&str] = &[
    "type",
    "id",
    "status",
    "role",
    "content",
    "call_id",
    "name",
    "arguments",
];

/// Reads a response that did not fail. The error is a sentence about what is missing.
pub(crate) fn read(raw: Value, asked_model: &str, names: &ToolNames) -> Result<Reply, String> {
    let output = raw
        .get("output")
        .and_then(Value::as_array)
        .ok_or("the answer has no `output`")?;
    let message = message(output, names)?;
    let finish_reason = finish_reason(&raw, &message)?;
    if output.is_empty() && finish_reason == FinishReason::Stop {
        return Err("the answer's `output` is empty".to_owned());
    }
    let model = raw
        .get("model")
        .and_then(Value::as_str)
        .filter(|model| !model.is_empty())
        .unwrap_or(asked_model)
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

fn kind(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What is said in `output`: the parts of one message follow on each other, messages are apart.
pub(super) fn spoken(output: &[Value]) -> Option<String> {
    let said: Vec<String> = output
        .iter()
        .filter(|item| kind(item) == "message")
        .filter_map(|item| {
            let mut texts = list(item, "content")
                .filter(|part| kind(part) == "output_text")
                .map(|part| text_of(part, "text"))
                .peekable();
            texts.peek()?;
            Some(texts.collect())
        })
        .collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// What was thought in `output`, in the words in which it is told.
fn thought(output: &[Value]) -> String {
    let told = output
        .iter()
        .filter(|item| kind(item) == "reasoning")
        .flat_map(|item| list(item, "summary").chain(list(item, "content")))
        .map(|part| text_of(part, "text"))
        .filter(|text| !text.is_empty());
    told.collect::<Vec<_>>().join("\n\n")
}

fn message(output: &[Value], names: &ToolNames) -> Result<Message, String> {
    let mut message = Message::assistant("");
    message.content = spoken(output).map(Content::Text);
    for item in output.iter().filter(|item| is_call(item)) {
        let name = text_of(item, "name");
        if name.is_empty() {
            return Err("a `function_call` of the answer has no name".to_owned());
        }
        let id = text_of(item, "call_id");
        let arguments = text_of(item, "arguments");
        message
            .tool_calls
            .push(ToolCall::new(id, names.original(name), arguments));
    }
    own_ids(&mut message.tool_calls, "call");
    let thought = thought(output);
    if !thought.is_empty() {
        message
            .extra
            .insert("reasoning_content".to_owned(), thought.into());
    }
    let parts = || output.iter().flat_map(|item| list(item, "content"));
    let refusals: Vec<&str> = parts()
        .filter(|part| kind(part) == "refusal")
        .map(|part| text_of(part, "refusal"))
        .collect();
    if !refusals.is_empty() {
        message
            .extra
            .insert("refusal".to_owned(), refusals.concat().into());
    }
    let annotations: Vec<Value> = parts()
        .flat_map(|part| list(part, "annotations"))
        .cloned()
        .collect();
    if !annotations.is_empty() {
        message
            .extra
            .insert("annotations".to_owned(), annotations.into());
    }
    if !is_rebuilt(output) {
        message.extra.insert(
            "provider_specific_fields".to_owned(),
            json!({ NATIVE_OUTPUT: output }),
        );
    }
    Ok(message)
}

/// Whether the chat message gives the same items: at most one plain message, then calls.
fn is_rebuilt(output: &[Value]) -> bool {
    let is_plain = |item: &Value| {
        item.as_object().is_some_and(|fields| {
            fields
                .iter()
                .all(|(key, value)| PLAIN_FIELDS.contains(&key.as_str()) || value.is_null())
        })
    };
    output.iter().enumerate().all(|(place, item)| {
        let fits = match kind(item) {
            "message" => {
                place == 0 && list(item, "content").all(|part| kind(part) == "output_text")
            }
            _ => is_call(item),
        };
        fits && is_plain(item)
    })
}

fn finish_reason(raw: &Value, message: &Message) -> Result<FinishReason, String> {
    let has_calls = !message.tool_calls.is_empty();
    let refused = message.content.is_none() && message.extra.contains_key("refusal");
    match text_of(raw, "status") {
        "incomplete" => match raw
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str)
        {
            // What was cut off is not to be taken for whole, calls least of all.
            Some("max_output_tokens") | None => Ok(FinishReason::Length),
            Some("content_filter") => Ok(FinishReason::ContentFilter),
            Some(other) => Ok(FinishReason::Other(other.to_owned())),
        },
        "completed" | "" if refused => Ok(FinishReason::ContentFilter),
        "completed" | "" if has_calls => Ok(FinishReason::ToolCalls),
        "completed" | "" => Ok(FinishReason::Stop),
        other => Err(format!("the answer has the status `{other}`")),
    }
}

fn usage(native: &Value) -> Option<Usage> {
    let count = |key: &str| native.get(key).and_then(Value::as_u64);
    let prompt_tokens = count("input_tokens")?;
    let completion_tokens = count("output_tokens").unwrap_or(0);
    let mut extra = Object::new();
    for (ours, theirs) in [
        ("prompt_tokens_details", "input_tokens_details"),
        ("completion_tokens_details", "output_tokens_details"),
    ] {
        let details = native.get(theirs).and_then(Value::as_object);
        if let Some(details) = details.filter(|details| !details.is_empty()) {
            let mut details = details.clone();
            if let Some(written) = details.get("cache_write_tokens").cloned() {
                details.insert("cache_creation_tokens".to_owned(), written);
            }
            extra.insert(ours.to_owned(), details.into());
        }
    }
    Some(Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: count("total_tokens").unwrap_or(prompt_tokens + completion_tokens),
        extra,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(raw: Value) -> Result<Reply, String> {
        read(raw, "asked", &ToolNames::default())
    }

    fn said(text: &str) -> Value {
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": text, "annotations": []}]})
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "f",
               "arguments": "{}", "status": "completed"})
    }

    fn is_kept(output: &Value) -> bool {
        let reply = reply(json!({"status": "completed", "output": output})).unwrap();
        let kept = reply.message.extra.get("provider_specific_fields").cloned();
        kept.is_some_and(|fields| fields[NATIVE_OUTPUT] == *output)
    }

    #[test]
    fn items_are_kept_where_the_message_loses_something() {
        let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let mut phased = said("a");
        phased["phase"] = "commentary".into();
        assert!(!is_kept(&json!([said("a"), call("1"), call("2")])));
        assert!(!is_kept(&json!([call("1")])));
        assert!(is_kept(&json!([reasoning, said("a")])));
        assert!(is_kept(&json!([phased])));
        assert!(is_kept(&json!([said("a"), said("b")])));
        assert!(is_kept(&json!([call("1"), said("a")])));
        assert!(is_kept(
            &json!([{"type": "web_search_call", "id": "ws_1"}, said("a")])
        ));
    }

    #[test]
    fn words_thoughts_and_refusals_have_their_places() {
        let reasoning = json!({"type": "reasoning", "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
            "content": [{"type": "reasoning_text", "text": "hm"}]});
        let answer = json!({"status": "completed", "output": [reasoning, said("a"), said("b")]});
        let message = reply(answer).unwrap().message;
        assert_eq!(message.reasoning_content(), Some("First.\n\nThen.\n\nhm"));
        assert_eq!(message.text(), "a\n\nb");

        let refusal = json!({"type": "message", "content": [{"type": "refusal", "refusal": "no"}]});
        let refused = reply(json!({"status": "completed", "output": [refusal]})).unwrap();
        assert_eq!(refused.finish_reason, FinishReason::ContentFilter);
        assert_eq!(refused.message.extra["refusal"], "no");
    }

    #[test]
    fn the_status_decides_how_the_answer_ended() {
        let ended = |status: &str, reason: Value| {
            let details = json!({"reason": reason});
            reply(json!({"status": status, "incomplete_details": details, "output": [call("1")]}))
                .map(|reply| reply.finish_reason)
        };
        assert_eq!(ended("completed", Value::Null), Ok(FinishReason::ToolCalls));
        assert_eq!(
            ended("incomplete", "max_output_tokens".into()),
            Ok(FinishReason::Length)
        );
        assert_eq!(
            ended("incomplete", "content_filter".into()),
            Ok(FinishReason::ContentFilter)
        );
        assert!(
            ended("in_progress", Value::Null)
                .unwrap_err()
                .contains("`in_progress`")
        );
        assert!(reply(json!({"status": "completed", "output": []})).is_err());
        assert!(reply(json!({"status": "completed"})).is_err());
    }

    #[test]
    fn ids_are_unique_and_missing_usage_is_not_zero() {
        let answer = json!({"output": [call("1"), call("1"), call("")]});
        let reply = reply(answer).unwrap();
        assert_eq!(reply.usage, None);
        let mut ids: Vec<_> = reply
            .message
            .tool_calls
            .iter()
            .map(|call| &call.id)
            .collect();
        assert_eq!(ids[0], "1");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }
}
