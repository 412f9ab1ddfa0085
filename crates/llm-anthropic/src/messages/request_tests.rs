use std::time::Duration;

use formats::Object;
use formats::chat::{Block, Message, ToolCall, ToolDefinition};
use serde_json::{Value, json};

use super::DIRECT;
use super::request::{Body, Style};
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{CallLabels, ChatRequest};

fn sent_as(
    style: Style,
    model: &str,
    messages: &[Message],
    tools: &[ToolDefinition],
    extra_args: Value,
) -> Value {
    let extra_args: Object = serde_json::from_value(extra_args).unwrap();
    let request = ChatRequest {
        messages,
        tools,
        extra_args: &extra_args,
        timeout: Duration::from_secs(1),
        labels: CallLabels::default(),
    };
    let settings = Settings::read(&extra_args).unwrap();
    let names = ToolNames::new(tools, messages);
    let body = Body::new(&request, &settings, &names, model, style).unwrap();
    serde_json::to_value(&body).unwrap()
}

fn sent(messages: &[Message], extra_args: Value) -> Value {
    let style = Style {
        marks: false,
        ..DIRECT
    };
    sent_as(style, "claude-sonnet-4-5", messages, &[], extra_args)
}

fn assistant(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

fn thought(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": "s"})
}

#[test]
fn thinking_stands_alone_where_thinking_is_on() {
    let turn =
        assistant(json!({"role": "assistant", "content": "", "thinking_blocks": [thought("t")]}));
    let messages = [Message::user("hi"), turn, Message::user("go on")];
    let body = sent(&messages, json!({"reasoning_effort": "low"}));
    assert_eq!(
        body["messages"][1],
        json!({"role": "assistant", "content": [thought("t")]})
    );
    assert_eq!(
        sent(&messages, json!({}))["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn kept_blocks_go_back_as_they_came_unless_the_turn_was_changed() {
    let native = json!([
        thought("a"), {"type": "text", "text": "one"}, thought("b"),
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"z": 1, "a": [1.50, 2]}}
    ]);
    let turn = json!({
        "role": "assistant", "content": "one",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{\"z\":1,\"a\":[1.5,2]}"}}],
        "thinking_blocks": [thought("a"), thought("b")],
        "provider_specific_fields": {"anthropic_content": native}
    });
    let ask = |turn: Value| {
        let messages = [
            Message::user("hi"),
            assistant(turn),
            Message::tool("t1", "f", "x"),
        ];
        sent(&messages, json!({"reasoning_effort": "low"}))["messages"][1]["content"].to_string()
    };
    assert_eq!(ask(turn.clone()), native.to_string());
    let mut shortened = turn.clone();
    shortened["content"] = json!("on");
    let rebuilt: Value = serde_json::from_str(&ask(shortened)).unwrap();
    assert_eq!(rebuilt[0], thought("a"));
    assert_eq!(rebuilt[2], json!({"type": "text", "text": "on"}));
}

#[test]
fn a_turn_that_paused_goes_back_as_it_is() {
    let paused = json!({
        "role": "assistant", "content": "Searching.",
        "provider_specific_fields": {"stop_reason": "pause_turn"}
    });
    let messages = [Message::user("hi"), assistant(paused)];
    let body = sent_as(DIRECT, "claude-opus-5", &messages, &[], json!({}));
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
}

/// A8: no blank text is ever sent.
#[test]
fn no_blank_text_is_sent() {
    let call = |id: &str| vec![ToolCall::new(id, "f", "{}")];
    let mut calling = Message::assistant(" ");
    calling.tool_calls = [call("1"), call("2"), call("3")].concat();
    let messages = [
        Message::system("\n"),
        Message::user(""),
        calling,
        Message::tool("1", "f", Vec::new()),
        Message::tool("2", "f", ""),
        Message::tool("3", "f", vec![Block::text(" "), Block::text("x")]),
        Message::user(vec_of_blanks()),
        Message::assistant(""),
    ];
    let body = sent(&messages, json!({}));
    assert_eq!(body.get("system"), None);
    let turns = body["messages"].as_array().unwrap();
    assert_eq!(turns.len(), 3);
    assert_eq!(
        turns[0]["content"],
        json!([{"type": "text", "text": "(empty)"}])
    );
    assert_eq!(turns[1]["content"].as_array().unwrap().len(), 3);
    let results = turns[2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert_eq!(results[0]["content"], "(the tool returned nothing)");
    assert_eq!(results[1]["content"], "(the tool returned nothing)");
    assert_eq!(
        results[2]["content"],
        json!([{"type": "text", "text": "x"}])
    );
}

fn vec_of_blanks() -> String {
    " \n ".to_owned()
}

/// A6: one result per call, ids distinct and matched, also where the model gave the same id twice.
#[test]
fn calls_with_one_id_get_one_result_each() {
    let mut turn = Message::assistant("");
    turn.tool_calls = vec![
        ToolCall::new("a", "final", "{}"),
        ToolCall::new("b", "read", "{\"n\": 1}"),
        ToolCall::new("b", "read", "{\"n\": 2}"),
        ToolCall::new("", "read", "{\"n\": 3}"),
    ];
    let messages = [
        Message::user("go"),
        turn,
        Message::tool("a", "final", "no"),
        Message::tool("b", "read", "one"),
        Message::tool("b", "read", "two"),
    ];
    let body = sent(&messages, json!({}));
    let ids = |turn: usize, key: &str| -> Vec<String> {
        let blocks = body["messages"][turn]["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block[key].as_str().unwrap().to_owned())
            .collect()
    };
    let calls = ids(1, "id");
    assert_eq!(calls, ids(2, "tool_use_id"));
    let unique: std::collections::HashSet<&String> = calls.iter().collect();
    assert_eq!(unique.len(), 4);
    let results = &body["messages"][2]["content"];
    assert_eq!(results[1]["content"], "one");
    assert_eq!(results[2]["content"], "two");
}

/// A4: the schema passes unharmed.
#[test]
fn a_schema_passes_unharmed() {
    let schema = json!({
        "type": "object",
        "$defs": {
            "K": {"type": "string", "enum": ["aws", "k8s"]},
            "T": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}
        },
        "properties": {
            "kind": {"$ref": "#/$defs/K", "default": "aws"}, "n": {"type": ["integer", "null"]},
            "mode": {"const": "fast"}, "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "rows": {"type": "array", "items": {"$ref": "#/properties/headers"}}, "tree": {"$ref": "#/$defs/T"}
        },
        "additionalProperties": false
    });
    let tools = [ToolDefinition::new("f", "", schema.clone())];
    let body = sent_as(
        DIRECT,
        "claude-sonnet-4-5",
        &[Message::user("x")],
        &tools,
        json!({}),
    );
    assert_eq!(
        body["tools"][0]["input_schema"].to_string(),
        schema.to_string()
    );
}

/// A9: what Anthropic can show is shown, and the rest is named.
#[test]
fn what_cannot_be_shown_is_named() {
    let blocks: Vec<Block> = serde_json::from_value(json!([
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}},
        {"type": "file", "file": {"filename": "a.xls", "file_data": "data:application/vnd.ms-excel;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,Qk0="}},
        {"type": "document", "source": {"type": "url", "url": "https://h/a.pdf"}}
    ]))
    .unwrap();
    let mut turn = Message::assistant("");
    turn.tool_calls = vec![ToolCall::new("1", "f", "{}")];
    let messages = [Message::user("x"), turn, Message::tool("1", "f", blocks)];
    let body = sent(&messages, json!({}));
    let parts = body["messages"][2]["content"][0]["content"]
        .as_array()
        .unwrap();
    let kinds: Vec<&str> = parts
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "text", "image", "document", "document", "text", "text", "text", "document"
        ]
    );
    assert_eq!(
        parts[3]["source"],
        json!({"type": "text", "media_type": "text/plain", "data": "hi"})
    );
    assert!(parts[4]["text"].as_str().unwrap().contains("a.xls"));
    assert!(parts[5]["text"].as_str().unwrap().contains("`input_audio`"));
    assert!(parts[6]["text"].as_str().unwrap().contains("image/bmp"));
}

#[test]
fn marks_of_the_caller_are_the_only_ones() {
    let mut marked = Message::user("long");
    marked.extra.insert(
        "cache_control".to_owned(),
        json!({"type": "ephemeral", "ttl": "1h"}),
    );
    let messages = [
        Message::system("s"),
        marked,
        Message::assistant("a"),
        Message::user("b"),
    ];
    let body = sent_as(DIRECT, "claude-sonnet-4-5", &messages, &[], json!({}));
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
    assert_eq!(
        body["messages"][0]["content"][0]["cache_control"]["ttl"],
        "1h"
    );
    let body = sent_as(DIRECT, "claude-sonnet-4-5", &messages[2..], &[], json!({}));
    assert_eq!(
        body["messages"][2]["content"][0]["cache_control"]["ttl"],
        "5m"
    );
}

#[test]
fn numbers_of_arguments_keep_their_digits() {
    let mut turn = Message::assistant("");
    turn.tool_calls = vec![ToolCall::new(
        "1",
        "f",
        "{\"n\": 123456789012345678901234567890, \"x\": 1.10}",
    )];
    let messages = [Message::user("x"), turn, Message::tool("1", "f", "y")];
    let extra_args = Object::new();
    let request = ChatRequest {
        messages: &messages,
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(1),
        labels: CallLabels::default(),
    };
    let names = ToolNames::new(&[], &messages);
    let settings = Settings::default();
    let body = Body::new(&request, &settings, &names, "claude-sonnet-4-5", DIRECT).unwrap();
    let text = serde_json::to_string(&body).unwrap();
    assert!(
        text.contains("{\"n\": 123456789012345678901234567890, \"x\": 1.10}"),
        "{text}"
    );
}
