//! The stub of OpenAI's Responses interface: what it refuses, what it answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::time::Duration;

use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn post(stub: &OpenAiStub, body: &Value) -> (u16, Value) {
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()
        .unwrap();
    let response = client
        .post(format!("{}/responses", stub.base_url()))
        .bearer_auth(stub.key())
        .json(body)
        .send()
        .await
        .unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

/// A request of a reasoning model, stateless, with `input` and `more`.
fn body(input: &Value, more: &Value) -> Value {
    let mut body = json!({
        "model": "gpt-5.5", "input": input, "store": false,
        "include": ["reasoning.encrypted_content"]
    });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "x"})
}

#[tokio::test]
async fn what_openai_refuses_is_refused_with_its_reason() {
    let stub = OpenAiStub::start(Script::new([])).await.unwrap();
    let user = || json!({"role": "user", "content": "hi"});
    let reasoning = |sealed: Value| json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed});
    let with = |key: &str, value: Value| {
        let mut item = call("1");
        item[key] = value;
        json!([item, output("1")])
    };
    let inputs = [
        (json!([]), "empty array"),
        (
            json!([{"type": "message", "role": "tool", "content": "x"}]),
            "'tool' is not one of",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
            "'text'; supported values are: input_text",
        ),
        (
            json!([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]),
            "'input_text'; supported values are: output_text",
        ),
        (
            json!([{"role": "user", "content": "x", "name": "y"}]),
            "input[0].name",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": {"url": "https://h/"}}]}]),
            "'input_image'",
        ),
        (
            json!([output("1")]),
            "No tool call found for function call output with call_id 1.",
        ),
        (
            json!([call("1")]),
            "No tool output found for function call 1.",
        ),
        (
            json!([call("1"), output("1"), output("1")]),
            "No tool call found",
        ),
        (
            json!([call("1"), call("1"), output("1")]),
            "duplicate call_id '1'",
        ),
        (
            json!([call(&"x".repeat(65)), output("1")]),
            "1 to 64 characters",
        ),
        (with("id", json!("call_1")), "begins with 'fc'"),
        (with("name", json!("a.b")), "does not match pattern"),
        (with("arguments", json!({})), "expected a string"),
        (
            with("id", json!("fc_0_0_after_rs_0")),
            "without its required 'reasoning' item: 'rs_0'",
        ),
        (
            json!([reasoning(Value::Null), user()]),
            "Items are not persisted",
        ),
        (
            json!([reasoning("stolen".into()), {"role": "assistant", "content": "x"}]),
            "could not be verified",
        ),
        (
            json!([{"type": "reasoning", "id": "rs_1"}, user()]),
            "summary",
        ),
    ];
    let parameters = [
        (json!({"max_tokens": 5}), "moved to 'max_output_tokens'"),
        (json!({"messages": []}), "moved to 'input'"),
        (
            json!({"response_format": {"type": "text"}}),
            "moved to 'text.format'",
        ),
        (json!({"seed": 1}), "Unknown parameter: 'seed'"),
        (json!({"max_output_tokens": 5}), "not between 16"),
        (json!({"temperature": 0.5}), "not supported with this model"),
        (
            json!({"model": "gpt-4.1"}),
            "encrypted content is not supported",
        ),
        (
            json!({"model": "gpt-4.1", "include": [], "reasoning": {"effort": "low"}}),
            "reasoning",
        ),
        (
            json!({"reasoning": {"effort": "great"}}),
            "reasoning.effort",
        ),
        (json!({"include": ["everything"]}), "cannot be included"),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            "tools[0].name",
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}),
            "missing properties",
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "strict": true,
                   "parameters": {"type": "object", "properties": {}}}]}),
            "additionalProperties",
        ),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (
            json!({"tool_choice": {"type": "function", "name": "f"}}),
            "tool_choice",
        ),
        (
            json!({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}),
            "text.format.name",
        ),
        (
            json!({"text": {"format": {"type": "json_object"}}}),
            "the word 'json'",
        ),
    ];
    let mut bodies: Vec<(Value, &str)> = inputs
        .iter()
        .map(|(input, expected)| (body(input, &json!({})), *expected))
        .collect();
    for (more, expected) in &parameters {
        bodies.push((body(&json!([user()]), more), expected));
    }
    for (body, expected) in bodies {
        let (status, answer) = post(&stub, &body).await;
        assert_eq!(status, 400, "{body}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}\n{body}");
    }
}

#[tokio::test]
async fn reasoning_is_sealed_and_taken_back() {
    let turn = Turn::calls("f", json!({})).field("reasoning_content", json!("hm"));
    let stub = OpenAiStub::start(Script::new([turn, Turn::says("done")]).by_conversation())
        .await
        .unwrap();
    let user = json!({"role": "user", "content": "hi"});
    let (status, answer) = post(&stub, &body(&json!([user]), &json!({}))).await;
    assert_eq!((status, &answer["status"]), (200, &json!("completed")));
    let mut input = vec![user];
    input.extend(answer["output"].as_array().unwrap().clone());
    let id = answer["output"][1]["call_id"].as_str().unwrap();
    input.push(output(id));
    let (status, last) = post(&stub, &body(&json!(input), &json!({}))).await;
    assert_eq!(status, 200, "{last}");
    assert_eq!(last["output"][0]["content"][0]["text"], "done");
    // What was thought is not changed on the way.
    input[1]["summary"][0]["text"] = "something else".into();
    let (status, changed) = post(&stub, &body(&json!(input), &json!({}))).await;
    assert_eq!(status, 400);
    assert_eq!(changed["error"]["code"], "invalid_encrypted_content");
}

#[tokio::test]
async fn newer_models_are_sent_here_by_the_other_interface() {
    let stub = OpenAiStub::start(Script::new([])).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    for (model, tools) in [("gpt-5.5", Some(&tools)), ("gpt-5-pro", None)] {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        if let Some(tools) = tools {
            body["tools"] = tools.clone();
        }
        let response = client
            .post(format!("{}/chat/completions", stub.base_url()))
            .bearer_auth(stub.key())
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 400);
        let text = response.text().await.unwrap();
        assert!(text.contains("v1/responses"), "{text}");
    }
}
