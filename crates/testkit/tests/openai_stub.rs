//! The stub of OpenAI: what it refuses, what it answers, how it fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::time::Duration;

use serde_json::{Value, json};
use testkit::openai::{Fault, OpenAiStub, Options, Script, Turn, serve};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn post(stub: &OpenAiStub, body: &Value) -> Result<(u16, Value), reqwest::Error> {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()?;
    let response = client
        .post(format!("{}/chat/completions", stub.base_url()))
        .bearer_auth(stub.key())
        .json(body)
        .send()
        .await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    ))
}

fn body(messages: &Value) -> Value {
    json!({"model": "gpt-4.1", "messages": messages})
}

fn user() -> Value {
    json!([{"role": "user", "content": "hi"}])
}

fn with(extra: &Value) -> Value {
    let mut body = body(&user());
    body.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    body
}

fn tool(name: &str, parameters: &Value) -> Value {
    with(
        &json!({"tools": [{"type": "function", "function": {"name": name, "parameters": parameters}}]}),
    )
}

#[tokio::test]
async fn turns_come_in_order_and_requests_are_kept() {
    let stub = OpenAiStub::start(Script::new([
        Turn::calls("list", json!({"path": "/"})).and_calls("read", json!("{\"cut")),
        Turn::says("done")
            .usage(7, 3)
            .field("reasoning_content", json!("hm")),
    ]))
    .await
    .unwrap();
    let (status, first) = post(&stub, &body(&user())).await.unwrap();
    assert_eq!(status, 200);
    let choice = &first["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = &choice["message"]["tool_calls"];
    assert_eq!(
        calls[0]["function"],
        json!({"name": "list", "arguments": "{\"path\":\"/\"}"})
    );
    assert_eq!(calls[1]["function"]["arguments"], "{\"cut");
    assert_ne!(calls[0]["id"], calls[1]["id"]);

    let (_, second) = post(&stub, &body(&user())).await.unwrap();
    assert_eq!(second["choices"][0]["message"]["content"], "done");
    assert_eq!(second["choices"][0]["message"]["reasoning_content"], "hm");
    assert_eq!(second["usage"]["total_tokens"], 10);

    let (status, third) = post(&stub, &body(&user())).await.unwrap();
    assert_eq!(
        (status, &third["error"]["code"]),
        (400, &json!("stub_script_ended"))
    );
    let requests = stub.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].body, body(&user()));
    assert_eq!(requests[0].path, "/v1/chat/completions");
    assert!(!requests[0].headers.contains_key("authorization"));
    assert_eq!(stub.refusals().len(), 1);
    assert_eq!(stub.turns_left(), 0);
}

#[tokio::test]
async fn other_ways_to_choose_a_turn() {
    let stub = OpenAiStub::start(Script::new([
        Turn::says("to the judge").when("grade \"this\""),
        Turn::says("to anyone"),
    ]))
    .await
    .unwrap();
    let text = |answer: (u16, Value)| answer.1["choices"][0]["message"]["content"].clone();
    assert_eq!(
        text(post(&stub, &body(&user())).await.unwrap()),
        "to anyone"
    );
    let judge = json!([{"role": "user", "content": "please grade \"this\" now"}]);
    assert_eq!(
        text(post(&stub, &body(&judge)).await.unwrap()),
        "to the judge"
    );

    let script = Script::parse(r#"{"turns": [{"content": "0"}, {"content": "1"}], "by_conversation": true, "answer_schemas": true, "repeat_last": true}"#).unwrap();
    let stub = OpenAiStub::start(script).await.unwrap();
    let after = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "0"}, {"role": "user", "content": "and"}]);
    for _ in 0..2 {
        assert_eq!(text(post(&stub, &body(&after)).await.unwrap()), "1");
        assert_eq!(text(post(&stub, &body(&user())).await.unwrap()), "0");
    }
    let schema = with(
        &json!({"response_format": {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {"type": "object", "properties": {"passed": {"type": "boolean"}}}}}}),
    );
    assert_eq!(
        text(post(&stub, &schema).await.unwrap()),
        "{\"passed\":true}"
    );
    assert!(
        Script::parse("[{\"contents\": 1}]")
            .unwrap_err()
            .to_string()
            .contains("line 1")
    );
}

#[tokio::test]
async fn what_comes_first_takes_no_turn() {
    let script = r#"{"first": [{"fault": {"status": {"status": 529}}}, {"content": "zero"}],
        "turns": [{"content": "one"}], "by_conversation": true}"#;
    let stub = OpenAiStub::start(Script::parse(script).unwrap())
        .await
        .unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (status, answer) = post(&stub, &body(&json!([{"role": "user", "content": "hi"}])))
            .await
            .unwrap();
        let said = &answer["choices"][0]["message"]["content"];
        seen.push((status, said.as_str().map(str::to_owned)));
    }
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(seen, [(529, None), (200, said("zero")), (200, said("one"))]);
}

#[tokio::test]
async fn what_openai_refuses_is_refused() {
    let stub = OpenAiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    let call = json!({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "x"});
    let picture =
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}});
    let array = json!({"type": "object", "properties": {"a": {"type": "array"}}});
    let cases = [
        (
            with(&json!({"vendor_flag": true})),
            "Unrecognized request argument supplied: vendor_flag",
        ),
        (with(&json!({"model": ""})), "model parameter"),
        (with(&json!({"tools": []})), "empty array"),
        (
            with(&json!({"tool_choice": "auto"})),
            "only allowed when 'tools'",
        ),
        (
            with(&json!({"parallel_tool_calls": false})),
            "only allowed when 'tools'",
        ),
        (with(&json!({"temperature": 3})), "not between"),
        (
            with(&json!({"response_format": {"type": "json_object"}})),
            "the word 'json'",
        ),
        (
            with(&json!({"model": "gpt-5", "temperature": 0.2})),
            "only the default",
        ),
        (tool("fs.read", &json!({})), "does not match pattern"),
        (tool("f", &json!({"properties": {}})), "type `object`"),
        (tool("f", &json!({"type": "object"})), "missing properties"),
        (tool("f", &array), "missing items"),
        (
            tool(
                "f",
                &json!({"anyOf": [], "type": "object", "properties": {}}),
            ),
            "top level",
        ),
        (body(&json!([])), "empty array"),
        (
            body(&json!([{"role": "robot", "content": "x"}])),
            "not one of",
        ),
        (body(&json!([{"role": "user"}])), "got null"),
        (
            body(&json!([{"role": "user", "content": []}])),
            "empty array",
        ),
        (
            body(&json!([{"role": "assistant", "content": null}])),
            "null",
        ),
        (
            body(&json!([{"role": "assistant", "content": "x", "reasoning_content": "y"}])),
            "unknown field",
        ),
        (body(&json!([calls])), "no response to: a"),
        (
            body(&json!([calls, {"role": "user", "content": "x"}, result])),
            "no response to: a",
        ),
        (body(&json!([result])), "preceding message"),
        (body(&json!([calls, result, result])), "preceding message"),
        (
            body(&json!([calls, {"role": "tool", "tool_call_id": "a", "content": [picture]}])),
            "not one of text",
        ),
        (
            body(
                &json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,###"}}]}]),
            ),
            "data URL",
        ),
        (
            body(
                &json!([{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}]),
            ),
            "unknown field",
        ),
    ];
    for (request, expected) in cases {
        let (status, answer) = post(&stub, &request).await.unwrap();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(status, 400, "{request}");
        assert!(message.contains(expected), "{message}\nfor {request}");
    }
    let proper = [
        with(&json!({"max_tokens": 5, "temperature": 0})),
        tool("f", &json!({"type": "object", "properties": {}})),
        body(&json!([calls, result, {"role": "user", "content": [picture]}])),
    ];
    for request in proper {
        let (status, answer) = post(&stub, &request).await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test]
async fn keys_are_checked() {
    let stub = OpenAiStub::start(Script::new([])).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}/chat/completions", stub.base_url());
    let none = client.post(&url).json(&body(&user())).send().await.unwrap();
    assert_eq!(none.status(), 401);
    let wrong = client
        .post(&url)
        .bearer_auth("wrong")
        .json(&body(&user()))
        .send()
        .await
        .unwrap();
    assert_eq!(wrong.status(), 401);
    let answer: Value = wrong.json().await.unwrap();
    assert_eq!(answer["error"]["code"], "invalid_api_key");
}

#[tokio::test]
async fn faults_are_real() {
    let stub = OpenAiStub::start(Script::new([
        Turn::fails(429).header("retry-after", "2"),
        Turn::faulty(Fault::Drop),
        Turn::faulty(Fault::HalfBody),
        Turn::faulty(Fault::MalformedJson),
        Turn::fails_with(502, json!("<html>bad</html>")),
        Turn::faulty(Fault::Stall),
        Turn::says("recovered"),
    ]))
    .await
    .unwrap();
    let request = body(&user());
    let (status, answer) = post(&stub, &request).await.unwrap();
    assert_eq!(
        (status, &answer["error"]["type"]),
        (429, &json!("requests"))
    );
    assert!(post(&stub, &request).await.is_err(), "dropped");
    assert!(post(&stub, &request).await.is_err(), "half a body");
    let (status, answer) = post(&stub, &request).await.unwrap();
    assert_eq!(status, 200);
    assert!(answer.is_string(), "malformed: {answer}");
    assert_eq!(
        post(&stub, &request).await.unwrap(),
        (502, json!("<html>bad</html>"))
    );
    // Given up only once the stub has the request, or the next one would get the stall.
    let arrived = async {
        while stub.turns_left() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    tokio::select! {
        answer = post(&stub, &request) => panic!("not stalled: {answer:?}"),
        () = arrived => {}
    }
    let (status, _) = post(&stub, &request).await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test]
async fn serving_ends_when_cancelled_even_with_a_stalled_request() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!(
        "http://{}/v1/chat/completions",
        listener.local_addr().unwrap()
    );
    let cancel = CancellationToken::new();
    let options = Options {
        key: None,
        ..Options::new(Script::new([Turn::faulty(Fault::Stall)]), "")
    };
    let server = tokio::spawn(serve(listener, options, cancel.clone()));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let stalled = tokio::spawn(client.post(url).json(&body(&user())).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    cancel.cancel();
    tokio::time::timeout(PATIENCE, server)
        .await
        .expect("it ends")
        .unwrap()
        .unwrap();
    // Whether it was stalled already or came too late, it has ended.
    drop(
        tokio::time::timeout(PATIENCE, stalled)
            .await
            .expect("it ends"),
    );
}
