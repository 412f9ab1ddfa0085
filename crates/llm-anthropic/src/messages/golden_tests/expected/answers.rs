//! Answers and errors.

use std::collections::BTreeMap;

use serde_json::json;

use super::text;
use llm_vectors::Edit::{self, At, Remove, Set};
use llm_wire::ChatErrorKind::{self, *};

pub(in super::super) fn answers() -> BTreeMap<&'static str, Vec<Edit>> {
    let thought = |words: &str, signature: &str| json!({"type": "thinking", "thinking": words, "signature": signature});
    let interleaved = || {
        vec![Set(
            "/message/provider_specific_fields",
            json!({"anthropic_content": [
                thought("First.", "c2lnbmF0dXJlLUE="),
                text("one"),
                thought("Second.", "c2lnbmF0dXJlLUI="),
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}}
            ]}),
        )]
    };
    let paused = || vec![At("/finish_reason", "pause_turn".into())];
    BTreeMap::from([
        // What the chat message cannot say is kept as it came.
        ("answer_interleaved_thinking", interleaved()),
        ("roundtrip_interleaved_turn1", interleaved()),
        (
            "answer_several_text_parts",
            vec![Set(
                "/message/provider_specific_fields",
                json!({"anthropic_content": [text("one"), text("two")]}),
            )],
        ),
        // A text of nothing says nothing.
        (
            "answer_thinking_omitted",
            vec![Remove("/message/reasoning_content")],
        ),
        // As for OpenAI: whole calls are to be run.
        (
            "answer_tool_call_finish_stop",
            vec![At("/finish_reason", "tool_calls".into())],
        ),
        // The native reason, where it says more than ours.
        ("finish_pause_turn", paused()),
        ("roundtrip_pause_turn_turn1", paused()),
        (
            "finish_stop_sequence",
            vec![Set(
                "/message/provider_specific_fields",
                json!({"stop_reason": "stop_sequence", "stop_sequence": "END"}),
            )],
        ),
        (
            "finish_unknown",
            vec![
                At("/finish_reason", "brand_new".into()),
                Set(
                    "/message/provider_specific_fields",
                    json!({"stop_reason": "brand_new"}),
                ),
            ],
        ),
        // Read here as any other; the call itself fails with `ContextWindow` (`tests/anthropic.rs`).
        (
            "finish_model_context_window_exceeded",
            vec![
                At("/finish_reason", "model_context_window_exceeded".into()),
                Set(
                    "/message/provider_specific_fields",
                    json!({"stop_reason": "model_context_window_exceeded"}),
                ),
            ],
        ),
    ])
}

pub(in super::super) fn errors() -> BTreeMap<&'static str, (ChatErrorKind, bool)> {
    BTreeMap::from([
        ("error_400_content_policy", (ContentFilter, false)),
        ("error_400_context_window", (ContextWindow, false)),
        ("error_400_context_window_2", (ContextWindow, false)),
        ("error_400_credit", (Credit, false)),
        ("error_400_invalid_request", (BadRequest, false)),
        ("error_400_mentions_rate_limit", (BadRequest, false)),
        ("error_401", (Auth, false)),
        ("error_402", (Credit, false)),
        ("error_403", (Auth, false)),
        ("error_404", (NotFound, false)),
        ("error_408", (Timeout, true)),
        ("error_409", (Server, true)),
        ("error_413", (TooLarge, false)),
        ("error_422", (BadRequest, false)),
        ("error_429_retry_after", (RateLimit, true)),
        ("error_500", (Server, true)),
        ("error_500_should_not_retry", (Server, false)),
        ("error_502_html", (Server, true)),
        ("error_503", (Overloaded, true)),
        ("error_503_html", (Overloaded, true)),
        ("error_504", (Timeout, true)),
        ("error_504_html", (Timeout, true)),
        ("error_529", (Overloaded, true)),
    ])
}
