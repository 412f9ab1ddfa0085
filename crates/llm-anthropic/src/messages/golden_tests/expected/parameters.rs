//! Requests: thinking, forms of the answer, parameters.

use serde_json::json;

use super::text;
use llm_vectors::Edit::{self, At, Insert, Remove, Set};
use llm_vectors::Outcome::{self, Changed, Refused};

/// The limit of the reply is the model's own, whatever the budget; a budget fits into it; what
/// excludes thinking goes, or thinking does.
pub(super) fn thinking() -> Vec<(&'static str, Outcome)> {
    let limit = || At("/max_tokens", 64000.into());
    vec![
        ("reasoning_effort_minimal", Changed(vec![limit()])),
        ("reasoning_effort_low", Changed(vec![limit()])),
        ("reasoning_effort_low_tools", Changed(vec![limit()])),
        ("reasoning_effort_medium", Changed(vec![limit()])),
        ("reasoning_effort_high", Changed(vec![limit()])),
        ("reasoning_effort_xhigh", Changed(vec![limit()])),
        ("param_thinking_adaptive", Changed(vec![limit()])),
        (
            "reasoning_effort_high_max_tokens",
            Changed(vec![At("/thinking/budget_tokens", 1999.into())]),
        ),
        (
            "reasoning_effort_low_max_tokens",
            Changed(vec![Remove("/thinking")]),
        ),
        (
            "reasoning_effort_low_temperature",
            Changed(vec![limit(), Remove("/temperature")]),
        ),
        // A call that the caller demands is worth more than thoughts.
        (
            "reasoning_effort_low_tool_choice_required",
            Changed(vec![limit(), Remove("/thinking")]),
        ),
        (
            "reasoning_effort_low_temperature__claude-opus-5",
            Refused("`temperature` for model `claude-opus-5`: the model does not take it"),
        ),
        (
            "thinking_blocks_foreign",
            Changed(vec![Remove("/messages/1/content/0")]),
        ),
        (
            "thinking_on_history_without_blocks",
            Changed(vec![Remove("/thinking")]),
        ),
        // Thinking is off, so nothing of the turn can be sent; `request_tests.rs` has the turn with
        // thinking on.
        (
            "thinking_only_turn",
            Changed(vec![
                Remove("/messages/2"),
                Remove("/messages/1"),
                Insert("/messages/0/content", 1, text("go on")),
            ]),
        ),
        // The order of blocks is in no field of LiteLLM's message; ours keeps it, as the round trip in
        // `request_tests.rs` shows.
        ("roundtrip_interleaved_turn2", Changed(Vec::new())),
    ]
}

pub(super) fn forms() -> Vec<(&'static str, Outcome)> {
    let format = || {
        json!({"format": {"type": "json_schema", "schema": {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "description": "Limits: minLength 1."},
                "score": {"type": "integer", "description": "Limits: minimum 0, maximum 10."},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Limits: maxItems 3."},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}
            },
            "additionalProperties": false,
            "required": ["answer", "score", "tags", "note"]
        }}})
    };
    let native = || {
        Changed(vec![
            Remove("/output_format"),
            Set("/output_config", format()),
        ])
    };
    let tool = |more: Vec<Edit>| {
        let mut edits = vec![
            At("/tools/0/name", "give_answer".into()),
            Set("/tools/0/type", "custom".into()),
            Set("/tools/0/description", llm_wire::answer_tool::USE.into()),
        ];
        edits.extend(more);
        Changed(edits)
    };
    vec![
        (
            "response_format_json_object",
            Changed(vec![Set(
                "/system",
                json!([text("Answer with one JSON object and nothing else.")]),
            )]),
        ),
        ("response_format_json_schema", native()),
        ("response_format_json_schema_tools", native()),
        (
            "response_format_json_schema_open_object",
            tool(vec![At("/tool_choice/name", "give_answer".into())]),
        ),
        (
            "response_format_json_schema_open_object__claude-opus-5",
            tool(Vec::new()),
        ),
    ]
}

/// What the interface does not have is refused by name, before anything is sent.
pub(super) fn parameters() -> Vec<(&'static str, Outcome)> {
    let unknown = "Anthropic's interface does not have it";
    let not_taken = "the model does not take it";
    vec![
        ("param_logprobs", Refused(unknown)),
        ("param_n", Refused(unknown)),
        ("param_penalties", Refused(unknown)),
        ("param_seed", Refused(unknown)),
        ("param_unknown", Refused(unknown)),
        ("param_metadata", Refused("nothing but `user_id`")),
        ("param_stop_list", Refused("not blank, got \"\\n\\n\"")),
        ("param_temperature__claude-opus-5", Refused(not_taken)),
        ("param_temperature_zero__claude-opus-5", Refused(not_taken)),
        (
            "param_temperature_and_top_p__claude-opus-5",
            Refused(not_taken),
        ),
        ("param_top_k__claude-opus-5", Refused(not_taken)),
        ("param_top_p__claude-opus-5", Refused(not_taken)),
        (
            "param_temperature_and_top_p",
            Changed(vec![Remove("/top_p")]),
        ),
        (
            "param_extra_body",
            Changed(vec![
                Remove("/extra_body"),
                Set("/vendor_flag", true.into()),
                Set("/vendor_options", json!({"a": 1})),
            ]),
        ),
    ]
}
