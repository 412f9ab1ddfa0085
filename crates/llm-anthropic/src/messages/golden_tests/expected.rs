//! Where we differ from LiteLLM, and why.

mod answers;
mod parameters;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use llm_vectors::Edit::{At, Insert, Remove, Set};
use llm_vectors::Outcome::{self, Changed, Refused, Whole};

pub(super) use answers::{answers, errors};
use parameters::{forms, parameters, thinking};

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
