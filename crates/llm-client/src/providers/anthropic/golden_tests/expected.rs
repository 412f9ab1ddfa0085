//! Where we differ from LiteLLM, and why.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::ChatErrorKind::{self, *};
use crate::providers::golden::Edit::{self, At, Insert, Remove, Set};
use crate::providers::golden::Outcome::{self, Changed, Refused, Whole};

const NO_RESULT: &str = "(no result of this call was recorded)";
const NOTHING: &str = "(the tool returned nothing)";
const NOTE: &str = "(The next text is an instruction of the operator, not of the user.)";

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(said: &str) -> Value {
    json!({"role": "user", "content": [text(said)]})
}

fn input(value: Value) -> Outcome {
    Changed(vec![At("/messages/1/content/0/input", value)])
}

fn schema(value: Value) -> Outcome {
    Changed(vec![At("/tools/0/input_schema", value)])
}

/// What LiteLLM refuses to send at all.
fn whole(messages: &Value, more: &[(&str, Value)]) -> Outcome {
    let mut body = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 64000, "messages": messages
    });
    for (key, value) in more {
        body[*key] = value.clone();
    }
    Whole(body)
}

pub(super) fn requests() -> BTreeMap<&'static str, Outcome> {
    let mut all = BTreeMap::new();
    all.extend(turns());
    all.extend(empty_texts());
    all.extend(calls_and_results());
    all.extend(notes_of_the_operator());
    all.extend(tools());
    all.extend(thinking());
    all.extend(forms());
    all.extend(parameters());
    all
}

/// The user begins, roles alternate, and newer models take no beginning of a reply.
fn turns() -> Vec<(&'static str, Outcome)> {
    vec![
        (
            "assistant_first",
            Changed(vec![Insert("/messages", 0, user("Begin."))]),
        ),
        // The two user messages that are neighbours now are one turn.
        (
            "assistant_null_content",
            Changed(vec![
                Remove("/messages/1"),
                Insert("/messages/0/content", 1, text("still there?")),
            ]),
        ),
        (
            "system_only",
            whole(
                &json!([user("Begin.")]),
                &[("system", json!([text("Say hello.")]))],
            ),
        ),
        (
            "trailing_assistant__claude-opus-5",
            Changed(vec![
                At("/messages/1/content/0/text", "The colour is ".into()),
                Insert("/messages", 2, user("Go on.")),
            ]),
        ),
        (
            "trailing_assistant_empty",
            Changed(vec![Remove("/messages/1")]),
        ),
        // Bytes count more than labels.
        (
            "user_image_mislabelled",
            Changed(vec![At(
                "/messages/0/content/1/source/media_type",
                "image/png".into(),
            )]),
        ),
        // Fetching addresses that come out of a conversation is not this crate's business.
        (
            "user_image_http_url",
            Changed(vec![At(
                "/messages/0/content/1",
                text(
                    "(a picture that cannot be shown here: `http://media.example/cat.png` is no https address)",
                ),
            )]),
        ),
        // LiteLLM sends nothing here, since nobody listens.
        ("connection_refuse", whole(&json!([user("hi")]), &[])),
        // The first mark goes: the later ones cover what it covers.
        (
            "cache_control_five_marks",
            Changed(vec![Remove("/system/0/cache_control")]),
        ),
    ]
}

/// Blank texts go; what must be there says `(empty)`.
fn empty_texts() -> Vec<(&'static str, Outcome)> {
    let empty = || Changed(vec![At("/messages/0/content/0/text", "(empty)".into())]);
    vec![
        (
            "assistant_empty_string",
            Changed(vec![
                Remove("/messages/2"),
                Remove("/messages/1"),
                Insert("/messages/0/content", 1, text("still there?")),
            ]),
        ),
        (
            "cache_control_empty_text",
            Changed(vec![Remove("/messages/0/content/1")]),
        ),
        ("user_empty_list", empty()),
        ("user_empty_string", empty()),
        ("user_whitespace", empty()),
        (
            "user_empty_text_block",
            Changed(vec![Remove("/messages/0/content/0")]),
        ),
        // It is taken as it is, but a model that sees nothing calls again.
        (
            "result_empty",
            Changed(vec![At("/messages/2/content/0/content", NOTHING.into())]),
        ),
        (
            "result_empty_blocks",
            Changed(vec![At("/messages/2/content/0/content", NOTHING.into())]),
        ),
    ]
}

/// Exactly one result per call, in call order; ids that are used once; arguments that are objects.
fn calls_and_results() -> Vec<(&'static str, Outcome)> {
    let weather = || {
        json!([{
            "name": "get_weather", "type": "custom", "description": "Current weather of a city.",
            "input_schema": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "City name"}},
                "required": ["city"]
            }
        }])
    };
    let bad_call = |raw: &str| {
        let call = json!({"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"_raw": raw}});
        let result =
            json!({"type": "tool_result", "tool_use_id": "call_1", "content": "bad arguments"});
        whole(
            &json!([user("weather?"), {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]),
            &[("tools", weather())],
        )
    };
    let missing = json!({"type": "tool_result", "tool_use_id": "call_2", "content": NO_RESULT});
    vec![
        ("call_array_arguments", input(json!({"_raw": "[\"Rome\"]"}))),
        ("call_garbage_arguments", bad_call("city=Rome")),
        ("call_truncated_arguments", bad_call("{\"city\": \"Rom")),
        // Guessing what was cut off could change what was meant; the tool said what was wrong.
        (
            "call_truncated_repairable_arguments",
            input(json!({"_raw": "{\"city\": \"Rome\""})),
        ),
        (
            "call_odd_id",
            Changed(vec![
                Insert(
                    "/messages/1/content",
                    1,
                    json!({"type": "tool_use", "id": "call_1_a_b_2", "name": "get_weather", "input": {"city": "Oslo"}}),
                ),
                At("/messages/2/content/1/tool_use_id", "call_1_a_b_2".into()),
            ]),
        ),
        (
            "two_rounds_same_id",
            Changed(vec![
                At("/messages/3/content/0/id", "call_1_2".into()),
                At("/messages/4/content/0/tool_use_id", "call_1_2".into()),
            ]),
        ),
        // The suffix is LiteLLM's own way to keep signatures; we keep them beside the call.
        (
            "thought_signature_in_id",
            Changed(vec![
                At(
                    "/messages/1/content/0/id",
                    "call_1__thought__c2lnbmF0dXJlLUI_".into(),
                ),
                At(
                    "/messages/2/content/0/tool_use_id",
                    "call_1__thought__c2lnbmF0dXJlLUI_".into(),
                ),
            ]),
        ),
        (
            "result_duplicate_id",
            Changed(vec![Remove("/messages/2/content/0")]),
        ),
        (
            "result_is_error",
            Changed(vec![Set("/messages/2/content/0/is_error", true.into())]),
        ),
        (
            "result_missing",
            Changed(vec![Insert("/messages/2/content", 1, missing)]),
        ),
        (
            "result_missing_modify_params",
            Changed(vec![At("/messages/2/content/1/content", NO_RESULT.into())]),
        ),
        (
            "result_orphan",
            Changed(vec![Remove("/messages/0/content/1")]),
        ),
        // Any order is legal; call order is what all providers take.
        (
            "results_out_of_order",
            Changed(vec![
                Remove("/messages/2/content/0"),
                Insert(
                    "/messages/2/content",
                    2,
                    json!({"type": "tool_result", "tool_use_id": "call_3", "content": "12:00"}),
                ),
            ]),
        ),
        (
            "user_between_results",
            Changed(vec![
                Remove("/messages/2/content/1"),
                Insert("/messages/2/content", 2, text("hurry")),
            ]),
        ),
        // The tools that the history names, and no invitation to call them.
        (
            "history_calls_without_tools",
            Changed(vec![
                At(
                    "/tools",
                    json!([{"name": "get_weather", "type": "custom", "input_schema": {"type": "object", "properties": {}}}]),
                ),
                Set("/tool_choice", json!({"type": "none"})),
            ]),
        ),
    ]
}

/// The same place, our own words.
fn notes_of_the_operator() -> Vec<(&'static str, Outcome)> {
    let note = |place| Changed(vec![At(place, NOTE.into())]);
    vec![
        ("system_after_user_end", note("/messages/0/content/1/text")),
        (
            "system_between_call_and_result",
            note("/messages/2/content/1/text"),
        ),
        (
            "system_mid_conversation",
            note("/messages/2/content/0/text"),
        ),
    ]
}

fn tools() -> Vec<(&'static str, Outcome)> {
    vec![
        // One map of names for all providers, which fits the narrowest of them.
        (
            "tool_choice_named_odd_name",
            Changed(vec![
                At("/tools/0/name", "fs_read_d154e2a4".into()),
                At("/tool_choice/name", "fs_read_d154e2a4".into()),
            ]),
        ),
        (
            "tools_names_odd",
            Changed(vec![
                At("/tools/0/name", "fs_read-file_c2e9a745".into()),
                At("/tools/1/name", "fs_read_file_6cd73c13".into()),
                At(
                    "/tools/3/name",
                    "server_with_a_very_long_name__tool_with_an_even_longer__21f33a22".into(),
                ),
                At("/tools/5/name", "gr__e_cd38f49a".into()),
                At("/messages/1/content/0/name", "fs_read-file_c2e9a745".into()),
                At("/messages/1/content/1/name", "fs_read_file_6cd73c13".into()),
            ]),
        ),
        // Anthropic takes all of JSON Schema but a union at the root: nothing else is cut off, and so
        // references stay valid.
        (
            "tools_default_title_examples",
            Changed(vec![
                Set("/tools/0/input_schema/title", "FArguments".into()),
                Set("/tools/0/input_schema/description", "Arguments".into()),
                Set(
                    "/tools/0/input_schema/$schema",
                    "http://json-schema.org/draft-07/schema#".into(),
                ),
                Set("/tools/0/input_schema/$id", "f".into()),
            ]),
        ),
        (
            "tools_ref_definitions",
            schema(json!({
                "definitions": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
                "type": "object",
                "properties": {"from": {"$ref": "#/definitions/Point"}}
            })),
        ),
        (
            "tools_top_level_union",
            schema(json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "description": "At least one of these holds: `a` given; `b` given."
            })),
        ),
        (
            "tools_duplicate_names",
            Refused("two tools have the name `f`"),
        ),
        // Nothing is said either way.
        (
            "tools_empty_description",
            Changed(vec![Remove("/tools/0/description")]),
        ),
        ("tools_empty_list", Changed(vec![Remove("/tools")])),
        (
            "tools_strict",
            Changed(vec![Set("/tools/0/strict", true.into())]),
        ),
        (
            "tool_choice_without_tools",
            Changed(vec![Remove("/tool_choice")]),
        ),
        (
            "parallel_tool_calls_false_no_tools",
            Changed(vec![Remove("/tool_choice")]),
        ),
    ]
}

/// The limit of the reply is the model's own, whatever the budget; a budget fits into it; what
/// excludes thinking goes, or thinking does.
fn thinking() -> Vec<(&'static str, Outcome)> {
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

fn forms() -> Vec<(&'static str, Outcome)> {
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
            Set(
                "/tools/0/description",
                super::super::request::ANSWER_TOOL_USE.into(),
            ),
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
fn parameters() -> Vec<(&'static str, Outcome)> {
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

pub(super) fn answers() -> BTreeMap<&'static str, Vec<Edit>> {
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

pub(super) fn errors() -> BTreeMap<&'static str, (ChatErrorKind, bool)> {
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
