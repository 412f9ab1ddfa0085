//! Answers and errors that we read otherwise, and why.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::text;
use llm_vectors::Edit::{self, At, Set};
use llm_wire::ChatErrorKind::{self, *};

/// What we read otherwise in answers.
pub(in super::super) fn answers() -> BTreeMap<&'static str, Vec<Edit>> {
    let parts = |parts: Value| {
        Set(
            "/message/provider_specific_fields",
            json!({"gemini_parts": parts}),
        )
    };
    let reason = |native: &str| {
        Set(
            "/message/provider_specific_fields",
            json!({"native_finish_reason": native}),
        )
    };
    let filtered = |native: &str| vec![At("/message/content", "partial".into()), reason(native)];
    let signed = json!("c2lnbmF0dXJlLUM=");
    let empty_signed = json!([text("hello"), {"text": "", "thoughtSignature": signed}]);
    let both = json!({"thought_signatures": [signed], "gemini_parts": empty_signed});
    let both = || vec![At("/message/provider_specific_fields", both.clone())];
    BTreeMap::from([
        // Parts go back as they came.
        (
            "answer_several_text_parts",
            vec![parts(json!([text("one"), text("two")]))],
        ),
        ("answer_signature_on_empty_text", both()),
        (
            "roundtrip_empty_signed_part__gemini-3.5-flash_turn1",
            both(),
        ),
        // A call that ran into the limit is not run.
        (
            "answer_tool_call_cut_off",
            vec![At("/finish_reason", "length".into())],
        ),
        ("finish_SAFETY", filtered("SAFETY")),
        ("finish_RECITATION", filtered("RECITATION")),
        ("finish_BLOCKLIST", filtered("BLOCKLIST")),
        ("finish_PROHIBITED_CONTENT", filtered("PROHIBITED_CONTENT")),
        ("finish_SPII", filtered("SPII")),
        ("finish_SAFETY_no_content", vec![reason("SAFETY")]),
        ("finish_LANGUAGE", vec![reason("LANGUAGE")]),
        ("finish_OTHER", vec![reason("OTHER")]),
        (
            "finish_unknown",
            vec![
                reason("BRAND_NEW"),
                At("/finish_reason", "BRAND_NEW".into()),
            ],
        ),
        (
            "finish_TOO_MANY_TOOL_CALLS",
            vec![
                reason("TOO_MANY_TOOL_CALLS"),
                At("/finish_reason", "TOO_MANY_TOOL_CALLS".into()),
            ],
        ),
        (
            "finish_UNEXPECTED_TOOL_CALL",
            vec![
                reason("UNEXPECTED_TOOL_CALL"),
                At("/finish_reason", "malformed_call".into()),
            ],
        ),
        (
            "finish_MALFORMED_FUNCTION_CALL",
            vec![
                Set(
                    "/message/provider_specific_fields",
                    json!({
                        "native_finish_reason": "MALFORMED_FUNCTION_CALL",
                        "finish_message": "Malformed function call: print(get_weather(city='Rome'))"
                    }),
                ),
                At("/finish_reason", "malformed_call".into()),
            ],
        ),
        (
            "prompt_blocked",
            vec![Set(
                "/message/provider_specific_fields",
                json!({"block_reason": "PROHIBITED_CONTENT"}),
            )],
        ),
    ])
}

/// Answers that LiteLLM cannot read, as we read them: message and finish reason.
pub(in super::super) fn rescued() -> BTreeMap<&'static str, (Value, &'static str)> {
    let message = |content: Value| json!({"role": "assistant", "content": content});
    let mut blocked = message(Value::Null);
    blocked["provider_specific_fields"] = json!({"block_reason": "SAFETY"});
    let mut call = message(Value::Null);
    call["tool_calls"] = json!([
        {"id": "call_generated_1", "type": "function", "function": {"name": "roll", "arguments": {}}}
    ]);
    BTreeMap::from([
        ("usage_missing", (message("ok".into()), "stop")),
        ("prompt_blocked_no_usage", (blocked, "content_filter")),
        ("answer_tool_call_no_arguments", (call, "tool_calls")),
    ])
}

/// Answers that are errors, although their status is good.
pub(in super::super) fn unreadable() -> BTreeMap<&'static str, ChatErrorKind> {
    BTreeMap::from([
        ("candidates_absent", MalformedReply),
        ("candidates_empty", MalformedReply),
        ("finish_MALFORMED_RESPONSE", MalformedReply),
        ("finish_MISSING_THOUGHT_SIGNATURE", BadRequest),
    ])
}

/// The kind of each error, and whether the same request could succeed later.
pub(in super::super) fn errors() -> BTreeMap<&'static str, (ChatErrorKind, bool)> {
    BTreeMap::from([
        ("error_400_api_key", (Auth, false)),
        ("error_400_context_window", (ContextWindow, false)),
        ("error_400_context_window_2", (ContextWindow, false)),
        ("error_400_failed_precondition", (BadRequest, false)),
        ("error_400_invalid_request", (BadRequest, false)),
        ("error_400_mentions_rate_limit", (BadRequest, false)),
        ("error_400_payload_size", (TooLarge, false)),
        ("error_400_thought_signature", (BadRequest, false)),
        ("error_401", (Auth, false)),
        ("error_403", (Auth, false)),
        ("error_404", (NotFound, false)),
        ("error_408", (Timeout, true)),
        ("error_409", (Server, true)),
        ("error_413", (TooLarge, false)),
        ("error_422", (BadRequest, false)),
        ("error_429_retry_after", (RateLimit, true)),
        ("error_500", (Server, true)),
        ("error_502_html", (Server, true)),
        ("error_503", (Overloaded, true)),
        ("error_503_html", (Overloaded, true)),
        ("error_504", (Timeout, true)),
        ("error_504_html", (Timeout, true)),
        ("error_529", (Overloaded, true)),
    ])
}
