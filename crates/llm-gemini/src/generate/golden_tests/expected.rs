//! Where we differ from LiteLLM, and why.

mod answers;
mod schemas;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) use answers::{answers, errors, rescued, unreadable};
use llm_vectors::Edit::{At, Insert, Remove};
use llm_vectors::Outcome::{self, Changed, Refused, Whole};

const NO_RESULT: &str = "(no result of this call was recorded)";
const NOTHING: &str = "(the tool returned nothing)";
const NOTE: &str = "(The next text is an instruction of the operator, not of the user.)";
const ATTACHED: &str = "(no text: see what is attached)";

type Case = (&'static str, Outcome);

fn text(text: &str) -> Value {
    json!({"text": text})
}

fn user(said: &str) -> Value {
    json!({"role": "user", "parts": [text(said)]})
}

fn response(content: &str) -> Value {
    json!({"functionResponse": {"name": "get_weather", "response": {"content": content}}})
}

fn args(value: Value) -> Outcome {
    Changed(vec![At("/contents/1/parts/0/functionCall/args", value)])
}

fn at(place: &'static str, value: Value) -> Outcome {
    Changed(vec![At(place, value)])
}

fn weather() -> Value {
    json!([{"functionDeclarations": [{
        "name": "get_weather", "description": "Current weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "City name"}},
            "required": ["city"]
        }
    }]}])
}

/// The properties of the only function.
fn properties(value: Value) -> Outcome {
    at(
        "/tools/0/functionDeclarations/0/parameters/properties",
        value,
    )
}

/// A body for what LiteLLM does not send at all, with the properties of its only function.
fn function(properties: &Value) -> Outcome {
    Whole(json!({
        "contents": [user("hi")],
        "tools": [{"functionDeclarations": [{
            "name": "f", "description": "A tool.",
            "parameters": {"type": "object", "properties": properties}
        }]}]
    }))
}

pub(super) fn requests() -> BTreeMap<&'static str, Outcome> {
    let mut all = BTreeMap::new();
    all.extend(turns());
    all.extend(calls_and_results());
    all.extend(notes_of_the_operator());
    all.extend(thoughts());
    all.extend(tools());
    all.extend(schemas::schemas());
    all.extend(parameters());
    all
}

/// The user begins, equal roles are one turn, empty and blank texts go.
fn turns() -> Vec<Case> {
    let empty = || at("/contents/0/parts/0/text", "(empty)".into());
    vec![
        (
            "assistant_first",
            Changed(vec![Insert("/contents", 0, user("Begin."))]),
        ),
        (
            "assistant_null_content",
            Changed(vec![
                Remove("/contents/1"),
                Insert("/contents/0/parts", 1, text("still there?")),
            ]),
        ),
        (
            "assistant_empty_string",
            Changed(vec![
                Remove("/contents/2"),
                Remove("/contents/1"),
                Insert("/contents/0/parts", 1, text("still there?")),
            ]),
        ),
        (
            "assistant_tool_call_empty_content",
            Changed(vec![Remove("/contents/1/parts/0")]),
        ),
        (
            "trailing_assistant_empty",
            Changed(vec![Remove("/contents/1")]),
        ),
        ("system_empty", Changed(vec![Remove("/systemInstruction")])),
        (
            "system_only",
            at("/contents/0/parts/0/text", "Begin.".into()),
        ),
        ("user_empty_list", empty()),
        ("user_empty_string", empty()),
        ("user_whitespace", empty()),
        // A picture needs no text beside it.
        (
            "user_image_only",
            Changed(vec![Remove("/contents/0/parts/1")]),
        ),
        // Bytes count more than labels.
        (
            "user_image_mislabelled",
            at(
                "/contents/0/parts/1/inlineData/mimeType",
                "image/png".into(),
            ),
        ),
        // Fetching addresses that come out of a conversation is not this crate's business.
        (
            "user_image_http_url",
            at(
                "/contents/0/parts/1",
                text(
                    "(a picture that cannot be shown here: `http://media.example/cat.png` is no https address)",
                ),
            ),
        ),
        // LiteLLM sends nothing here, since nobody listens.
        (
            "connection_refuse",
            Whole(json!({"contents": [user("hi")]})),
        ),
    ]
}

/// Exactly one response per call, in call order; arguments that are objects; results that say something.
fn calls_and_results() -> Vec<Case> {
    let bad_call = |raw: &str, said: &str| {
        Whole(json!({
            "contents": [
                user("weather?"),
                {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": {"_raw": raw}}}]},
                {"role": "user", "parts": [response(said)]}
            ],
            "tools": weather()
        }))
    };
    let missing = || Changed(vec![Insert("/contents/2/parts", 1, response(NO_RESULT))]);
    let said = |content: &str| {
        at(
            "/contents/2/parts/0/functionResponse/response/content",
            content.into(),
        )
    };
    vec![
        ("call_array_arguments", args(json!({"_raw": "[\"Rome\"]"}))),
        ("call_empty_arguments", args(json!({}))),
        ("call_empty_arguments__gemini-3.5-flash", args(json!({}))),
        (
            "call_garbage_arguments",
            bad_call("city=Rome", "bad arguments"),
        ),
        (
            "call_truncated_arguments",
            bad_call("{\"city\": \"Rom", "bad arguments"),
        ),
        // Guessing what was cut off could change what was meant; the tool said what was wrong.
        (
            "call_truncated_repairable_arguments",
            bad_call("{\"city\": \"Rome\"", "18 C"),
        ),
        (
            "parallel_same_call_twice",
            Changed(vec![Insert(
                "/contents/1/parts",
                1,
                json!({"functionCall": {"name": "roll", "args": {}}}),
            )]),
        ),
        ("result_missing", missing()),
        ("result_missing_modify_params", missing()),
        (
            "result_orphan",
            Whole(json!({
                "contents": [{"role": "user", "parts": [text("hi"), text("go on")]}],
                "tools": weather()
            })),
        ),
        // The last of two results counts.
        (
            "result_duplicate_id",
            Changed(vec![Remove("/contents/2/parts/0")]),
        ),
        (
            "user_between_results",
            Changed(vec![
                Remove("/contents/4"),
                Insert("/contents/2/parts", 1, response("3 C")),
            ]),
        ),
        ("results_out_of_order", in_call_order(None)),
        (
            "results_out_of_order__gemini-3.5-flash",
            in_call_order(Some("call_3")),
        ),
        // It is taken as it is, but a model that sees nothing calls again.
        ("result_empty", said(NOTHING)),
        ("result_empty_blocks", said(NOTHING)),
        ("result_image_only", said(ATTACHED)),
        ("result_image_only__gemini-3.5-flash", said(ATTACHED)),
        ("result_text_blocks", said("18 C\nsunny")),
        (
            "result_is_error",
            at(
                "/contents/2/parts/0/functionResponse/response",
                json!({"error": "no such city"}),
            ),
        ),
        // Text stays text.
        (
            "result_json_object",
            at(
                "/contents/2/parts/0/functionResponse/response",
                json!({"content": "{\"temp\": 18, \"unit\": \"C\"}"}),
            ),
        ),
    ]
}

/// The first of the three responses goes behind the other two.
fn in_call_order(id: Option<&str>) -> Outcome {
    let mut time = json!({"name": "get_time", "response": {"content": "12:00"}});
    if let Some(id) = id {
        time["id"] = id.into();
    }
    Changed(vec![
        Remove("/contents/2/parts/0"),
        Insert("/contents/2/parts", 2, json!({"functionResponse": time})),
    ])
}

/// System messages in the middle keep their place.
fn notes_of_the_operator() -> Vec<Case> {
    let note = |place: usize, said: &str| {
        vec![
            Remove("/systemInstruction/parts/1"),
            Insert("/contents/0/parts", place, text(NOTE)),
            Insert("/contents/0/parts", place + 1, text(said)),
        ]
    };
    vec![
        (
            "system_after_user_end",
            Changed(note(1, "One step remains.")),
        ),
        (
            "system_mid_conversation",
            Changed(vec![
                Remove("/systemInstruction/parts/1"),
                Insert("/contents/2/parts", 0, text(NOTE)),
                Insert("/contents/2/parts", 1, text("Two steps remain.")),
            ]),
        ),
        (
            "system_between_call_and_result",
            Changed(vec![
                Remove("/systemInstruction"),
                Insert(
                    "/contents",
                    3,
                    json!({"role": "user", "parts": [text(NOTE), text("Be quick.")]}),
                ),
            ]),
        ),
        // One part per block.
        (
            "system_blocks",
            at(
                "/systemInstruction/parts",
                json!([text("Be brief."), text("Answer in French.")]),
            ),
        ),
    ]
}

/// Thoughts are summaries: only signatures have to go back.
fn thoughts() -> Vec<Case> {
    [
        "reasoning_content_echo",
        "reasoning_content_echo_tool_call",
        "roundtrip_text__gemini-3.5-flash_turn2",
        "roundtrip_text_turn2",
        "roundtrip_tools__gemini-3.5-flash_turn2",
        "roundtrip_tools_turn2",
        "thinking_blocks_foreign",
        "thinking_blocks_foreign__gemini-3.5-flash",
        "thought_signature_thinking_blocks",
    ]
    .into_iter()
    .map(|name| (name, Changed(vec![Remove("/contents/1/parts/0")])))
    .collect()
}

/// Names that every provider takes, used once.
fn tools() -> Vec<Case> {
    let name = "/tools/0/functionDeclarations/0/name";
    let odd = [
        "fs_read-file_c2e9a745",
        "fs_read_file_6cd73c13",
        "fs_read_file",
        "server_with_a_very_long_name__tool_with_an_even_longer__21f33a22",
        "_2fast_c210f33f",
        "gr__e_cd38f49a",
    ];
    vec![
        (
            "tools_duplicate_names",
            Refused("two tools have the name `f`"),
        ),
        (
            "tool_choice_named_odd_name",
            Changed(vec![
                At(name, "fs_read_d154e2a4".into()),
                At(
                    "/toolConfig/functionCallingConfig/allowedFunctionNames",
                    json!(["fs_read_d154e2a4"]),
                ),
            ]),
        ),
        (
            "tools_names_odd",
            Changed(vec![
                At(name, odd[0].into()),
                At("/tools/0/functionDeclarations/1/name", odd[1].into()),
                At("/tools/0/functionDeclarations/3/name", odd[3].into()),
                At("/tools/0/functionDeclarations/4/name", odd[4].into()),
                At("/tools/0/functionDeclarations/5/name", odd[5].into()),
                At("/contents/1/parts/0/functionCall/name", odd[0].into()),
                At("/contents/1/parts/1/functionCall/name", odd[1].into()),
                At("/contents/2/parts/0/functionResponse/name", odd[0].into()),
                At("/contents/2/parts/1/functionResponse/name", odd[1].into()),
            ]),
        ),
        // There is nothing to choose from.
        (
            "tool_choice_without_tools",
            Changed(vec![Remove("/toolConfig")]),
        ),
        // Nothing is said, and nothing is sent.
        (
            "tools_empty_description",
            Changed(vec![Remove("/tools/0/functionDeclarations/0/description")]),
        ),
    ]
}

/// What cannot be honoured is refused by name; thoughts leave room for the reply.
fn parameters() -> Vec<Case> {
    let config = |value: Value| Whole(json!({"contents": [user("hi")], "generationConfig": value}));
    let thinking = |value: Value| at("/generationConfig/thinkingConfig", value);
    vec![
        (
            "param_logprobs",
            config(json!({"responseLogprobs": true, "logprobs": 2})),
        ),
        ("param_metadata", Refused("`metadata` for model")),
        ("param_unknown", Refused("`vendor_flag` for model")),
        ("param_user", Refused("`user` for model")),
        ("param_user_email", Refused("`user` for model")),
        (
            "param_penalties__gemini-3.5-flash",
            Refused("`presence_penalty` for model"),
        ),
        // OpenAI's `auto` is no tier of Google's.
        ("param_service_tier", Changed(vec![Remove("/serviceTier")])),
        (
            "param_thinking__gemini-3.5-flash",
            thinking(json!({"thinkingLevel": "medium", "includeThoughts": true})),
        ),
        (
            "param_thinking_adaptive",
            thinking(json!({"thinkingBudget": -1, "includeThoughts": true})),
        ),
        (
            "param_thinking_adaptive__gemini-3.5-flash",
            thinking(json!({"includeThoughts": true})),
        ),
        (
            "reasoning_effort_high_max_tokens",
            thinking(json!({"thinkingBudget": 1000, "includeThoughts": true})),
        ),
        (
            "reasoning_effort_low_max_tokens",
            thinking(json!({"thinkingBudget": 500, "includeThoughts": true})),
        ),
        (
            "reasoning_effort_minimal",
            thinking(json!({"thinkingBudget": 128, "includeThoughts": true})),
        ),
        // A budget can say it.
        (
            "reasoning_effort_xhigh",
            config(json!({"thinkingConfig": {"thinkingBudget": 8192, "includeThoughts": true}})),
        ),
        // Gemini 2.5 refuses JSON beside functions: the answer comes as a call.
        (
            "response_format_json_schema_tools",
            Changed(vec![
                Remove("/generationConfig"),
                Insert(
                    "/tools/0/functionDeclarations",
                    1,
                    json!({
                        "name": "give_answer",
                        "description": llm_wire::answer_tool::USE,
                        "parameters": {
                            "type": "object",
                            "properties": {
                                "answer": {"type": "string", "minLength": 1},
                                "score": {"type": "integer", "minimum": 0, "maximum": 10},
                                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                                "note": {"type": "string", "nullable": true}
                            },
                            "required": ["answer", "score", "tags", "note"]
                        }
                    }),
                ),
            ]),
        ),
    ]
}
