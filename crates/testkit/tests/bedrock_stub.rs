//! The stub of AWS Bedrock: what it refuses, what it answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

use std::time::Duration;

use serde_json::{Value, json};
use testkit::bedrock::{BedrockStub, Script, Turn};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The status, the kind of error and the answer to `body`, asked with `key`.
async fn post(stub: &BedrockStub, key: &str, body: &Value) -> (u16, String, Value) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    let response = client
        .post(format!("{}/model/m/converse", stub.base_url()))
        .bearer_auth(key)
        .json(body)
        .send()
        .await
        .unwrap();
    let kind = response.headers().get("x-amzn-errortype");
    let kind = kind.map(|kind| kind.to_str().unwrap().to_owned());
    (
        response.status().as_u16(),
        kind.unwrap_or_default(),
        response.json().await.unwrap(),
    )
}

fn turn(role: &str, blocks: Value) -> Value {
    json!({"role": role, "content": blocks})
}

fn user() -> Value {
    turn("user", json!([{"text": "hi"}]))
}

fn call(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "f", "input": {}}})
}

fn result(id: &str) -> Value {
    json!({"toolResult": {"toolUseId": id, "content": [{"text": "x"}]}})
}

fn with_tools(messages: &Value) -> Value {
    let tool = json!({"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}});
    json!({"messages": messages, "toolConfig": {"tools": [tool]}})
}

#[tokio::test]
async fn what_converse_refuses_is_refused_with_its_reason() {
    let stub = BedrockStub::start(Script::new([])).await.unwrap();
    let one = |block: Value| json!({"messages": [turn("user", json!([block]))]});
    let picture = |format: &str, bytes: &str| {
        one(json!({"image": {"format": format, "source": {"bytes": bytes}}}))
    };
    let document = |name: &str| {
        one(json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "eHh4"}}}))
    };
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "stolen"}}});
    let more = |key: &str, value: Value| {
        let mut body = json!({"messages": [user()]});
        body[key] = value;
        body
    };
    for (body, expected) in [
        (json!({"messages": []}), "at least one message"),
        (
            json!({"messages": [turn("assistant", json!([{"text": "x"}]))]}),
            "must start with a user message",
        ),
        (json!({"messages": [user(), user()]}), "must alternate"),
        (json!({"messages": [turn("user", json!([]))]}), "is empty"),
        (one(json!({"text": " "})), "is blank"),
        (
            one(json!({"text": "x", "cachePoint": {"type": "default"}})),
            "exactly one member",
        ),
        (one(json!({"toolUse": {}})), "`toolUse` is not allowed"),
        (picture("bmp", "eHh4"), "`bmp` is not one of"),
        (picture("png", "eHh4"), "does not appear to be one"),
        (picture("png", "%%"), "expected base64"),
        (document("a.pdf"), "can only contain"),
        (document("a"), "a text block is required"),
        (
            json!({"messages": [user(), turn("assistant", json!([call("1")])), turn("user", json!([result("1")]))]}),
            "The toolConfig field must be defined",
        ),
        (
            with_tools(&json!([
                user(),
                turn("assistant", json!([call("1")])),
                user()
            ])),
            "for the following Ids: 1",
        ),
        (
            with_tools(&json!([user(), turn("assistant", json!([call("1")]))])),
            "for the following Ids: 1",
        ),
        (
            with_tools(&json!([turn("user", json!([result("1")]))])),
            "exceeds the number of toolUse",
        ),
        (
            with_tools(&json!([user(), turn("assistant", json!([call("a b")]))])),
            "'a b'",
        ),
        (
            with_tools(&json!([
                user(),
                turn("assistant", json!([call("1")])),
                turn("user", json!([{"text": "x"}, result("1")]))
            ])),
            "come before all others",
        ),
        (
            json!({"messages": [user(), turn("assistant", json!([thought, {"text": "x"}]))]}),
            "Invalid `signature`",
        ),
        (more("max_tokens", json!(5)), "max_tokens: extraneous key"),
        (
            more("inferenceConfig", json!({"topK": 5})),
            "topK: extraneous key",
        ),
        (
            more("inferenceConfig", json!({"temperature": 1.5})),
            "not between 0 and 1",
        ),
        (
            more("toolConfig", json!({"tools": []})),
            "at least one tool",
        ),
        (
            more(
                "toolConfig",
                json!({"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}),
            ),
            "must be one of the following: object",
        ),
        (more("requestMetadata", json!({"a": 1})), "map of texts"),
        (more("system", json!([{"text": ""}])), "is blank"),
    ] {
        let (status, kind, answer) = post(&stub, stub.key(), &body).await;
        assert_eq!(
            (status, kind.as_str()),
            (400, "ValidationException"),
            "{body}"
        );
        let message = answer["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}\n{body}");
    }
}

#[tokio::test]
async fn wrong_keys_are_refused_and_turns_are_said() {
    let stub = BedrockStub::start(Script::new([Turn::says("hello")]))
        .await
        .unwrap();
    let body = json!({"messages": [user()]});
    let (status, kind, _) = post(&stub, "wrong", &body).await;
    assert_eq!((status, kind.as_str()), (403, "AccessDeniedException"));
    let (status, _, answer) = post(&stub, stub.key(), &body).await;
    assert_eq!(status, 200);
    assert_eq!(
        answer["output"]["message"],
        json!({"role": "assistant", "content": [{"text": "hello"}]})
    );
    assert_eq!(answer["stopReason"], "end_turn");
}
