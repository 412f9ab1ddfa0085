use std::time::Duration;

use formats::Object;
use formats::chat::{Block, ToolCall};
use serde_json::{Value, json};

use super::*;
use llm_wire::CallLabels;

fn sent(model: &str, messages: &[Message], tools: &[ToolDefinition]) -> Value {
    let extra_args = Object::new();
    let request = ChatRequest {
        messages,
        tools,
        extra_args: &extra_args,
        timeout: Duration::from_secs(1),
        labels: CallLabels::default(),
    };
    let body = Body::new(&request, &Settings::default(), Dialect::Proxy, model).unwrap();
    serde_json::to_value(&body).unwrap()
}

fn call(id: &str) -> Message {
    let mut message = Message::assistant("");
    message.tool_calls = vec![ToolCall::new(id, "f", "{}")];
    message
}

fn mark() -> Value {
    json!({"type": "ephemeral", "ttl": "5m"})
}

#[test]
fn a_proxy_for_anthropic_gets_marks_on_system_last_message_and_last_tool() {
    let tools = [
        ToolDefinition::new("a", "", json!({})),
        ToolDefinition::new("f", "", json!({})),
    ];
    let messages = [
        Message::system("Rules."),
        Message::system("More."),
        Message::user("go"),
        call("1"),
        Message::tool("1", "f", "done"),
    ];
    let body = sent("anthropic/claude-sonnet-4-5", &messages, &tools);
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"type": "text", "text": "Rules.", "cache_control": mark()}])
    );
    assert_eq!(body["messages"][4]["cache_control"], mark());
    assert_eq!(body["tools"][1]["cache_control"], mark());
    assert_eq!(body.to_string().matches("cache_control").count(), 3);

    let picture = vec![Block::text("see"), Block::image_url("https://h/a.png")];
    let mut last = Message::user("");
    last.content = Some(picture.into());
    let body = sent("bedrock/m", &[last], &[]);
    assert_eq!(body["messages"][0]["content"][1]["cache_control"], mark());
    assert_eq!(body["messages"][0]["content"][0].get("cache_control"), None);

    for other in ["openai/gpt-4.1", "openrouter/anthropic/claude"] {
        let body = sent(other, &messages, &tools);
        assert!(!body.to_string().contains("cache_control"), "{other}");
    }
}

#[test]
fn a_mark_that_is_there_stays_the_only_one_and_nothing_blank_gets_one() {
    let mut marked = Message::tool("1", "f", "done");
    marked.extra.insert("cache_control".to_owned(), mark());
    let body = sent("anthropic/m", &[call("1"), marked], &[]);
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
    let body = sent(
        "anthropic/m",
        &[call("1"), Message::tool("1", "f", "")],
        &[],
    );
    assert!(!body.to_string().contains("cache_control"));
}

#[test]
fn a_proxy_for_anthropic_gets_no_blank_text_and_pictures_where_they_belong() {
    let blank = vec![Block::text(" "), Block::text("said")];
    let mut said = Message::assistant("");
    said.content = Some(blank.into());
    let messages = [
        Message::user(""),
        said,
        Message::assistant(""),
        call("1"),
        Message::tool("1", "f", vec![Block::image_url("https://h/a.png")]),
        Message::assistant(" "),
    ];
    let body = sent("anthropic/m", &messages, &[]);
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4, "the empty turns are dropped");
    assert_eq!(messages[0]["content"], "(empty)");
    assert_eq!(
        messages[1]["content"],
        json!([{"type": "text", "text": "said"}])
    );
    assert_eq!(messages[2].get("content"), None);
    assert_eq!(messages[3]["content"][0]["type"], "image_url");
}
