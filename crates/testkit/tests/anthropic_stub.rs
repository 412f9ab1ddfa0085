//! The stub of Anthropic refuses what Anthropic refuses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

use serde_json::{Value, json};
use testkit::anthropic::{AnthropicStub, Script, Turn};

async fn ask(stub: &AnthropicStub, body: &Value) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let response = client
        .post(format!("{}/v1/messages", stub.base_url()))
        .header("x-api-key", stub.key())
        .header("anthropic-version", "2023-06-01")
        .json(body)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "f", "input": {}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "x"})
}

fn body(messages: Value) -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 2000, "messages": messages,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}]
    })
}

fn with(messages: Value, more: Value) -> Value {
    let mut body = body(messages);
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

#[tokio::test]
async fn what_anthropic_refuses_is_refused() {
    let stub = AnthropicStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    let hi = || json!([said("hi")]);
    let assistant = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let user = |blocks: Value| json!({"role": "user", "content": blocks});
    let mark = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    let thought = json!({"type": "thinking", "thinking": "t", "signature": "forged"});
    let cases = [
        (with(hi(), json!({"max_tokens": null})), "max_tokens"),
        (with(hi(), json!({"seed": 1})), "seed: Extra inputs"),
        (body(json!([])), "at least one message"),
        (
            body(json!([assistant(json!("a")), said("b")])),
            "roles must alternate",
        ),
        (body(json!([said("a"), said("b")])), "roles must alternate"),
        (body(json!([said(" ")])), "non-whitespace"),
        (
            body(json!([user(json!([{"type": "text", "text": ""}]))])),
            "non-empty",
        ),
        (
            body(json!([said("a"), assistant(json!([call("1")])), said("b")])),
            "without tool_result",
        ),
        (
            body(json!([said("a"), assistant(json!([call("1")]))])),
            "without tool_result",
        ),
        (
            body(json!([said("a"), user(json!([result("1")]))])),
            "roles must alternate",
        ),
        (
            body(json!([user(json!([result("1")]))])),
            "unexpected tool_use_id",
        ),
        (
            body(json!([
                said("a"),
                assistant(json!([call("1")])),
                user(json!([{"type": "text", "text": "x"}, result("1")]))
            ])),
            "must come before",
        ),
        (
            body(json!([said("a"), assistant(json!([call("1"), call("1")]))])),
            "must be unique",
        ),
        (
            body(json!([said("a"), assistant(json!([call("a.b")]))])),
            "should match pattern",
        ),
        (
            body(json!([said("a"), assistant(json!("b "))])),
            "trailing whitespace",
        ),
        (
            with(
                json!([said("a"), assistant(json!("b"))]),
                json!({"model": "claude-opus-5"}),
            ),
            "does not support assistant message prefill",
        ),
        (
            body(json!([said("a"), assistant(json!([thought])), said("b")])),
            "Invalid `signature`",
        ),
        (
            body(json!([user(
                json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "/9j/AA=="}}])
            )])),
            "does not appear to be",
        ),
        (
            body(json!([user(
                json!([{"type": "image", "source": {"type": "url", "url": "http://h/a.png"}}])
            )])),
            "Only HTTPS",
        ),
        (
            body(json!([user(json!([mark, mark, mark, mark, mark]))])),
            "maximum of 4 blocks",
        ),
        (
            with(hi(), json!({"tools": [], "tool_choice": {"type": "auto"}})),
            "while providing tools",
        ),
        (
            with(hi(), json!({"tool_choice": {"type": "tool", "name": "g"}})),
            "'g' not found",
        ),
        (
            with(
                hi(),
                json!({"tools": [{"name": "f", "input_schema": {"type": "object", "anyOf": []}}]}),
            ),
            "anyOf at the top level",
        ),
        (
            with(
                hi(),
                json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}),
            ),
            "must be greater than `thinking.budget_tokens`",
        ),
        (
            with(
                hi(),
                json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5}),
            ),
            "may only be set to 1",
        ),
        (
            with(
                json!([
                    said("a"),
                    assistant(json!([call("1")])),
                    user(json!([result("1")]))
                ]),
                json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
            ),
            "must start with a thinking block",
        ),
        (
            with(hi(), json!({"temperature": 1, "top_p": 1})),
            "cannot both",
        ),
        (
            with(hi(), json!({"temperature": 1, "model": "claude-opus-4-7"})),
            "not supported",
        ),
        (
            with(hi(), json!({"stop_sequences": ["\n"]})),
            "stop_sequences",
        ),
        (
            with(
                hi(),
                json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
            ),
            "additionalProperties",
        ),
    ];
    let count = cases.len();
    for (body, reason) in cases {
        let (status, answer) = ask(&stub, &body).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            (status, message.contains(reason)),
            (400, true),
            "{reason}: {answer}\n{body}"
        );
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    assert_eq!(stub.refusals().len(), count);
    let fine = body(json!([
        said("a"),
        assistant(json!([call("1")])),
        user(json!([result("1"), {"type": "text", "text": "b"}]))
    ]));
    let (status, answer) = ask(&stub, &fine).await;
    assert_eq!(
        (status, &answer["content"][0]["text"]),
        (200, &json!("fine"))
    );
}

#[tokio::test]
async fn keys_versions_and_addresses_are_checked() {
    let stub = AnthropicStub::start(Script::new([Turn::says("x")]))
        .await
        .unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = |path: &str| {
        client
            .post(format!("{}{path}", stub.base_url()))
            .json(&body(json!([said("a")])))
    };
    let status =
        async |request: reqwest::RequestBuilder| request.send().await.unwrap().status().as_u16();
    assert_eq!(status(post("/v1/messages")).await, 401);
    assert_eq!(
        status(post("/v1/messages").header("x-api-key", "wrong")).await,
        401
    );
    assert_eq!(
        status(post("/v1/messages").header("x-api-key", stub.key())).await,
        400
    );
    assert_eq!(
        status(post("/v1/complete").header("x-api-key", stub.key())).await,
        404
    );
    assert!(stub.refusals()[2].contains("anthropic-version"));
}
