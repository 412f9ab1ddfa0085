//! The scripted provider, from model name to reply.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolCall};
use formats::owner::{Failure, Owner};
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, FinishReason, Model, Models,
};
use serde_json::json;

fn models(folder: &tempfile::TempDir, script: &str) -> Models {
    std::fs::write(folder.path().join("play.json"), script).unwrap();
    Models::new(|_| None).with_script_folder(folder.path())
}

fn model(script: &str) -> Model {
    let folder = tempfile::tempdir().unwrap();
    models(&folder, script)
        .resolve("scripted/play.json", &Object::new())
        .unwrap()
}

async fn ask(model: &Model, messages: &[Message]) -> Result<ChatResponse, ChatError> {
    let request = ChatRequest {
        messages,
        tools: &[],
        extra_args: &Object::new(),
        timeout: Duration::from_secs(10),
        labels: CallLabels::default(),
    };
    model
        .chat(request, &|_| panic!("nothing is repeated"))
        .await
}

#[tokio::test]
async fn turns_follow_from_the_conversation_alone() {
    let model = model(
        r#"{"turns": [
            {"content": "I look.", "tool_calls": [{"name": "list", "arguments": {"path": "/"}}]},
            {"tool_calls": [{"name": "read", "arguments": "{\"broken", "id": "mine"}], "finish_reason": "length"},
            {"content": "Done."}
        ]}"#,
    );
    assert_eq!(model.name(), "scripted/play.json");
    assert_eq!(model.provider(), "scripted");
    let mut history = vec![Message::user("go")];
    let first = ask(&model, &history).await.unwrap();
    assert_eq!(first.message.text(), "I look.");
    assert_eq!(
        first.message.tool_calls,
        [ToolCall::new("call_0000_0", "list", "{\"path\":\"/\"}")]
    );
    assert_eq!(first.finish_reason, FinishReason::ToolCalls);
    assert_eq!((first.cost_usd, first.attempts), (Some(0.0), 1));
    let usage = first.usage.clone().unwrap();
    assert!(usage.prompt_tokens > 0 && usage.completion_tokens > 0);
    assert_eq!(usage.extra["estimated"], json!(true));
    assert_eq!(first.raw["choices"][0]["message"]["content"], "I look.");
    // The same question has the same answer.
    assert_eq!(ask(&model, &history).await.unwrap().message, first.message);

    history.push(first.message);
    history.push(Message::tool("call_0000_0", "list", "a b"));
    let second = ask(&model, &history).await.unwrap();
    assert_eq!(second.finish_reason, FinishReason::Length);
    assert_eq!(
        second.message.tool_calls,
        [ToolCall::new("mine", "read", "{\"broken")]
    );
    assert_eq!(second.message.content, None);
}

#[tokio::test]
async fn the_end_of_a_script_is_an_error_of_the_configuration() {
    let model = model(r#"[{"content": "one"}, {"content": "two"}]"#);
    let history = [
        Message::user("go"),
        Message::assistant("one"),
        Message::assistant("two"),
    ];
    let error = ask(&model, &history).await.unwrap_err();
    assert_eq!(error.kind, ChatErrorKind::Script);
    let text = error.to_string();
    assert!(
        text.contains("play.json") && text.contains("turn 3") && text.contains("2 turns"),
        "{text}"
    );
    let failure = Failure::from(&error);
    assert_eq!(
        (failure.owner, failure.kind.as_str(), failure.retryable),
        (Owner::Configuration, "script", false)
    );
}

#[tokio::test]
async fn rules_come_first_and_can_judge() {
    let model = model(
        r#"{"rules": [
            {"when": {"any_message_contains": "CRITERIA"}, "reply": {"json": {"result": true, "reason": "seen"}}},
            {"when": {"last_role": "tool", "last_message_contains": "denied"}, "reply": {"content": "I give up."}}
        ], "turns": [{"tool_calls": [{"name": "read"}]}, {"content": "read"}]}"#,
    );
    let verdict = ask(&model, &[Message::user("CRITERIA: it is red")])
        .await
        .unwrap();
    let verdict: serde_json::Value = serde_json::from_str(&verdict.message.text()).unwrap();
    assert_eq!(verdict, json!({"result": true, "reason": "seen"}));

    let mut history = vec![Message::user("go")];
    let call = ask(&model, &history).await.unwrap().message;
    assert_eq!(call.tool_calls[0].function.arguments, "{}");
    history.push(call);
    history.push(Message::tool("call_0000_0", "read", "permission denied"));
    let reply = ask(&model, &history).await.unwrap();
    assert_eq!(reply.message.text(), "I give up.");
}

#[tokio::test]
async fn given_usage_is_not_marked() {
    let model = model(
        r#"[{"content": "x", "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}]"#,
    );
    let usage = ask(&model, &[]).await.unwrap().usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.total_tokens), (7, 9));
    assert!(usage.extra.is_empty());
}

#[tokio::test]
async fn dropping_the_call_ends_a_slow_turn() {
    let model = model(r#"[{"content": "late", "delay_ms": 600000}]"#);
    let outcome = tokio::time::timeout(Duration::from_millis(50), ask(&model, &[])).await;
    assert!(outcome.is_err());
}

#[test]
fn a_bad_script_is_found_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(&folder, "{\n \"turns\": [{\"content\": 5}]}");
    let error = |name: &str| {
        models
            .resolve(name, &Object::new())
            .unwrap_err()
            .to_string()
    };
    let text = error("scripted/play.json");
    assert!(
        text.contains("play.json") && text.contains("line 2"),
        "{text}"
    );
    let text = error("scripted/missing.json");
    assert!(
        text.contains("scripted/missing.json") && text.contains("cannot read the script"),
        "{text}"
    );
    assert!(error("scripted/").contains("nothing follows `scripted/`"));
}

/// The example in `docs/models.md` branches as it says there.
#[tokio::test]
async fn the_documented_script_branches_by_what_a_tool_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("## Scripts that branch").unwrap();
    let (_, code) = section.split_once("```json\n").unwrap();
    let (script, _) = code.split_once("```").unwrap();
    let model = model(script);
    for (found, answer) in [
        ("a red square", "It is red."),
        ("a blue one", "It is blue."),
        ("nothing", "I cannot tell."),
    ] {
        let mut history = vec![Message::user("What colour is it?")];
        let call = ask(&model, &history).await.unwrap().message;
        assert_eq!(call.tool_calls[0].function.name, "read");
        history.push(call);
        history.push(Message::tool("call_0000_0", "read", found));
        let reply = ask(&model, &history).await.unwrap();
        assert_eq!(reply.message.text(), answer);
    }
    let judged = ask(&model, &[Message::user("CRITERION: it is red")])
        .await
        .unwrap();
    let verdict: serde_json::Value = serde_json::from_str(&judged.message.text()).unwrap();
    assert_eq!(verdict["is_criteria_true"], true);
}
