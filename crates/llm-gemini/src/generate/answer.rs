//! From Gemini's answer to a reply (<https://ai.google.dev/api/generate-content#generatecontentresponse>).

use formats::Object;
use formats::chat::{Content, Message, ToolCall, Usage};
use serde_json::{Value, json};

use super::request::AnswerFunction;
use super::tools::{Functions, under_own_names};
use super::wire::{call, is_thought, signature, text};
use llm_wire::repair::own_ids;
use llm_wire::{ChatErrorKind, FinishReason, Reply};

/// The field of `provider_specific_fields` with the parts of a turn as they came. It is there only
/// where the chat message alone would not give the same parts in the same order.
pub(super) const NATIVE_PARTS: &str = "gemini_parts";

/// Finish reasons that the chat words say as well.
const PLAIN_REASONS: &[&str] = &["STOP", "MAX_TOKENS", "FINISH_REASON_UNSPECIFIED"];

/// Finish reasons of replies that were withheld or cut off for what they say.
const FILTERED: &[&str] = &[
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "MODEL_ARMOR",
];

/// What is needed to read an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The model that was asked.
    pub(super) model: &'a str,
    /// The functions of the request.
    pub(super) functions: &'a Functions,
    /// The function by which the model gives its structured answer, if the request had one.
    pub(super) answer: Option<&'a AnswerFunction>,
    /// Only the first call counts.
    pub(super) one_call: bool,
}

/// Reads an answer. The error is a sentence about what is missing, with its kind.
pub(super) fn read(raw: Value, reading: Reading<'_>) -> Result<Reply, (ChatErrorKind, String)> {
    let malformed = |reason: &str| (ChatErrorKind::MalformedReply, reason.to_owned());
    let candidate = raw.pointer("/candidates/0");
    let blocked = raw.pointer("/promptFeedback/blockReason");
    let native = match (candidate, blocked) {
        (Some(candidate), _) => candidate.get("finishReason").and_then(Value::as_str),
        (None, Some(_)) => None,
        (None, None) => return Err(malformed("the answer has no candidates")),
    };
    let told = candidate
        .and_then(|candidate| candidate.get("finishMessage"))
        .and_then(Value::as_str);
    match native {
        Some("MISSING_THOUGHT_SIGNATURE") => {
            let reason = told.unwrap_or("the request lacks a thought signature");
            return Err((
                ChatErrorKind::BadRequest,
                format!("{reason} (MISSING_THOUGHT_SIGNATURE)"),
            ));
        }
        Some("MALFORMED_RESPONSE") => {
            let reason = told.unwrap_or("the model's answer could not be read");
            return Err(malformed(&format!("{reason} (MALFORMED_RESPONSE)")));
        }
        _ => {}
    }
    let parts = candidate
        .and_then(|candidate| candidate.pointer("/content/parts")?.as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    let parts = counted(parts, reading.one_call);
    let mut message = message(&parts, reading).map_err(|reason| malformed(&reason))?;
    let is_answer = |call: &ToolCall| {
        let answer = reading.answer;
        answer.is_some_and(|answer| answer.name == call.function.name)
    };
    let answered = message.tool_calls.iter().position(is_answer);
    if let Some(index) = answered {
        // The call is the answer: nobody else knows the function.
        let call = message.tool_calls.swap_remove(index);
        message.content = Some(Content::Text(call.function.arguments));
        message.tool_calls.clear();
        message.extra.shift_remove("provider_specific_fields");
    } else {
        keep_native(&mut message, &parts, native, told, blocked);
    }
    let finish_reason = if blocked.is_some() && candidate.is_none() {
        FinishReason::ContentFilter
    } else {
        finish_reason(native, !message.tool_calls.is_empty())
    };
    let model = raw.get("modelVersion").and_then(Value::as_str);
    let model = model.filter(|model| !model.is_empty());
    let request_id = raw.get("responseId").and_then(Value::as_str);
    Ok(Reply {
        message,
        finish_reason,
        usage: raw.get("usageMetadata").and_then(usage),
        model: model.unwrap_or(reading.model).to_owned(),
        cost_usd: None,
        request_id: request_id.map(str::to_owned),
        raw,
    })
}

/// The parts that count: all, or only the first of the calls.
fn counted(parts: &[Value], one_call: bool) -> Vec<&Value> {
    let mut calls = 0;
    let counts = |part: &&Value| {
        calls += usize::from(call(part).is_some());
        !one_call || call(part).is_none() || calls == 1
    };
    parts.iter().filter(counts).collect()
}

fn message(parts: &[&Value], reading: Reading<'_>) -> Result<Message, String> {
    let mut said: Option<String> = None;
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut reasoning = String::new();
    let mut thoughts: Vec<Value> = Vec::new();
    let mut signatures: Vec<Value> = Vec::new();
    for part in parts {
        let signed = signature(part);
        if let Some(signed) = signed {
            signatures.push(signed.into());
        }
        if let Some(native) = call(part) {
            calls.push(tool_call(native, signed, reading)?);
        } else if let Some(words) = text(part) {
            if is_thought(part) {
                reasoning.push_str(words);
                thoughts.push(json!({"type": "thinking", "thinking": words}));
            } else {
                said.get_or_insert_default().push_str(words);
            }
        }
    }
    own_ids(&mut calls, "call");
    let mut message = Message::assistant("");
    message.content = said.filter(|said| !said.is_empty()).map(Content::Text);
    message.tool_calls = calls;
    if !reasoning.is_empty() {
        let extra = &mut message.extra;
        extra.insert("reasoning_content".to_owned(), reasoning.into());
        extra.insert("thinking_blocks".to_owned(), thoughts.into());
    }
    if !signatures.is_empty() {
        let fields = json!({"thought_signatures": signatures});
        message
            .extra
            .insert("provider_specific_fields".to_owned(), fields);
    }
    Ok(message)
}

fn tool_call(
    native: &Value,
    signed: Option<&str>,
    reading: Reading<'_>,
) -> Result<ToolCall, String> {
    let said = |key: &str| native.get(key).and_then(Value::as_str).unwrap_or_default();
    let wire = said("name");
    if wire.is_empty() {
        return Err("a function call of the answer has no name".to_owned());
    }
    let name = reading.functions.names.original(wire);
    let arguments = match native.get("args").filter(|args| !args.is_null()) {
        None => "{}".to_owned(),
        Some(args) => match reading.answer.filter(|answer| answer.name == wire) {
            Some(answer) => under_own_names(args, &answer.renamed),
            None => reading.functions.own_arguments(name, args),
        },
    };
    let mut call = ToolCall::new(said("id"), name, arguments);
    if let Some(signed) = signed {
        let fields = json!({"thought_signature": signed});
        call.extra
            .insert("provider_specific_fields".to_owned(), fields);
    }
    Ok(call)
}

/// Keeps what the chat message has no place for.
fn keep_native(
    message: &mut Message,
    parts: &[&Value],
    reason: Option<&str>,
    told: Option<&str>,
    blocked: Option<&Value>,
) {
    let mut fields = match message.extra.shift_remove("provider_specific_fields") {
        Some(Value::Object(fields)) => fields,
        _ => Object::new(),
    };
    if !is_rebuilt(parts) {
        let parts: Vec<Value> = parts.iter().map(|part| (*part).clone()).collect();
        fields.insert(NATIVE_PARTS.to_owned(), parts.into());
    }
    if let Some(reason) = reason.filter(|reason| !PLAIN_REASONS.contains(reason)) {
        fields.insert("native_finish_reason".to_owned(), reason.into());
    }
    if let Some(told) = told {
        fields.insert("finish_message".to_owned(), told.into());
    }
    if let Some(blocked) = blocked {
        fields.insert("block_reason".to_owned(), blocked.clone());
    }
    if !fields.is_empty() {
        message
            .extra
            .insert("provider_specific_fields".to_owned(), fields.into());
    }
}

/// Whether the chat message gives the same parts in the same order: thoughts without signatures, then
/// at most one text, then calls.
fn is_rebuilt(parts: &[&Value]) -> bool {
    let mut place = 0;
    parts.iter().all(|part| {
        let has_only = |keys: &[&str]| {
            let fields = part.as_object();
            fields.is_some_and(|fields| fields.keys().all(|key| keys.contains(&key.as_str())))
        };
        let (here, plain) = if let Some(call) = call(part) {
            let keys = ["name", "args", "id"];
            let known = call
                .as_object()
                .is_some_and(|call| call.keys().all(|key| keys.contains(&key.as_str())));
            (3, known && has_only(&["functionCall", "thoughtSignature"]))
        } else if is_thought(part) {
            (
                1,
                signature(part).is_none() && has_only(&["text", "thought"]),
            )
        } else {
            let words = text(part).is_some_and(|words| !words.trim().is_empty());
            (2, words && has_only(&["text", "thoughtSignature"]))
        };
        let in_order = place < here || (place == here && here != 2);
        place = here;
        in_order && plain
    })
}

fn finish_reason(native: Option<&str>, has_calls: bool) -> FinishReason {
    match native {
        Some("MAX_TOKENS") => FinishReason::Length,
        Some("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") => FinishReason::MalformedCall,
        Some(reason) if FILTERED.contains(&reason) => FinishReason::ContentFilter,
        None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") if has_calls => FinishReason::ToolCalls,
        None | Some("STOP" | "FINISH_REASON_UNSPECIFIED") => FinishReason::Stop,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// Usage in chat words. Google counts thoughts beside the reply, or in it: the total tells which.
fn usage(native: &Value) -> Option<Usage> {
    let native = native.as_object().filter(|usage| !usage.is_empty())?;
    let count = |key: &str| native.get(key).and_then(Value::as_u64);
    let of_tools = count("toolUsePromptTokenCount");
    let prompt = count("promptTokenCount").unwrap_or(0) + of_tools.unwrap_or(0);
    let candidates = count("candidatesTokenCount").unwrap_or(0);
    let thoughts = count("thoughtsTokenCount").unwrap_or(0);
    let total = count("totalTokenCount");
    let inclusive = total == Some(prompt + candidates);
    let completion = if inclusive {
        candidates
    } else {
        candidates + thoughts
    };
    let mut of_prompt = modalities(native.get("promptTokensDetails"));
    if let Some(cached) = count("cachedContentTokenCount") {
        of_prompt.insert("cached_tokens".to_owned(), cached.into());
    }
    if let Some(of_tools) = of_tools.filter(|count| *count > 0) {
        of_prompt.insert("tool_use_tokens".to_owned(), of_tools.into());
    }
    let mut of_completion = modalities(native.get("candidatesTokensDetails"));
    if thoughts > 0 {
        of_completion.insert("reasoning_tokens".to_owned(), thoughts.into());
    }
    let mut extra = Object::new();
    for (key, details) in [
        ("prompt_tokens_details", of_prompt),
        ("completion_tokens_details", of_completion),
    ] {
        if !details.is_empty() {
            extra.insert(key.to_owned(), details.into());
        }
    }
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total.unwrap_or(prompt + completion),
        extra,
    })
}

/// Counts by kind of content, as `text_tokens`, `image_tokens` and so on.
fn modalities(details: Option<&Value>) -> Object {
    let details = details.and_then(Value::as_array);
    details
        .into_iter()
        .flatten()
        .filter_map(|detail| {
            let kind = detail.get("modality")?.as_str()?.to_lowercase();
            let count = detail.get("tokenCount")?.as_u64()?;
            Some((format!("{kind}_tokens"), count.into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(raw: Value) -> Reply {
        let functions = Functions::default();
        let reading = Reading {
            model: "asked",
            functions: &functions,
            answer: None,
            one_call: false,
        };
        read(raw, reading).unwrap()
    }

    fn is_kept(parts: &Value) -> bool {
        let reply =
            reply(json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}));
        let fields = reply.message.extra.get("provider_specific_fields");
        fields.is_some_and(|fields| fields.get(NATIVE_PARTS) == Some(parts))
    }

    #[test]
    fn parts_are_kept_where_the_message_loses_something() {
        let text = json!({"text": "a"});
        let signed = json!({"text": "a", "thoughtSignature": "s"});
        let thought = json!({"text": "t", "thought": true});
        let call = json!({"functionCall": {"name": "f", "args": {}}});
        let signed_call =
            json!({"functionCall": {"name": "f", "id": "x"}, "thoughtSignature": "s"});
        assert!(!is_kept(&json!([
            thought,
            thought,
            text,
            signed_call,
            call
        ])));
        assert!(!is_kept(&json!([signed])));
        assert!(!is_kept(&json!([])));
        assert!(is_kept(&json!([text, text])));
        assert!(is_kept(&json!([call, text])));
        assert!(is_kept(&json!([text, thought])));
        assert!(is_kept(
            &json!([text, {"text": "", "thoughtSignature": "s"}])
        ));
        assert!(is_kept(
            &json!([{"text": "t", "thought": true, "thoughtSignature": "s"}])
        ));
        assert!(is_kept(&json!([{"executableCode": {"code": "1"}}, text])));
        assert!(is_kept(
            &json!([{"functionCall": {"name": "f", "willContinue": true}}])
        ));
    }

    #[test]
    fn calls_get_ids_and_those_that_ran_into_the_limit_are_not_taken_for_whole() {
        let call = json!({"functionCall": {"name": "f"}});
        let cut = reply(json!({
            "candidates": [{"content": {"parts": [call, call]}, "finishReason": "MAX_TOKENS"}]
        }));
        assert_eq!(cut.finish_reason, FinishReason::Length);
        let [first, second] = cut.message.tool_calls.as_slice() else {
            panic!("{:?}", cut.message)
        };
        assert!(first.id.starts_with("call_") && first.id != second.id);
        assert_eq!(first.function.arguments, "{}");
        assert_eq!(cut.usage, None);
    }

    #[test]
    fn usage_counts_by_kind_of_content() {
        let reply = reply(json!({
            "candidates": [{"content": {"parts": [{"text": "a"}]}}],
            "usageMetadata": {
                "promptTokenCount": 100, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "totalTokenCount": 110,
                "cachedContentTokenCount": 40,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 60}, {"modality": "IMAGE", "tokenCount": 30}, {"modality": "AUDIO", "tokenCount": 10}],
                "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 7}]
            }
        }));
        let usage = reply.usage.unwrap();
        assert_eq!(
            (
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.total_tokens
            ),
            (100, 10, 110)
        );
        assert_eq!(
            (
                usage.cached_tokens(),
                usage.image_tokens(),
                usage.reasoning_tokens()
            ),
            (40, 30, 3)
        );
        assert_eq!(usage.extra["prompt_tokens_details"]["audio_tokens"], 10);
        assert_eq!(usage.extra["completion_tokens_details"]["text_tokens"], 7);
    }
}
