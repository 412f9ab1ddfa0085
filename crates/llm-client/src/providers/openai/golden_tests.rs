//! The vectors of `tests/golden/openai`: what LiteLLM sends and reads in 246 cases.
//!
//! They are evidence, not law. Where a verdict says that LiteLLM is wrong or loses something, or
//! where we had a reason, the tables here say what we do instead, as changes of what LiteLLM does;
//! everywhere else we do the same. The connection cases are tested over sockets in `tests/openai.rs`.

mod expected;

use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

use super::request::Body;
use super::{Dialect, answer};
use crate::error::ChatError;
use crate::extra_args::Settings;
use crate::providers::failure;
use crate::providers::golden::{self, Input, Outcome, Vectors, edited};
use crate::repair::ToolNames;

fn vectors() -> Vectors {
    golden::vectors("openai")
}

/// The body that we send for a vector, or why we send none.
fn our_request(name: &str, vector: &Value) -> Result<Value, String> {
    let input = Input::of(vector);
    let request = input.request();
    let dialect = if name.contains("__compatible") {
        Dialect::Compatible
    } else {
        Dialect::OpenAi
    };
    let settings = Settings::read(request.extra_args).unwrap();
    let body = Body::new(&request, &settings, dialect, &input.model)?;
    Ok(serde_json::to_value(&body).unwrap())
}

#[test]
fn requests_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 246);
    let mut expected = expected::requests();
    for (name, vector) in &vectors {
        let ours = our_request(name, vector);
        let theirs = &vector["request"]["body"];
        match expected.remove(name.as_str()) {
            Some(Outcome::Refused(reason)) => {
                let error = ours.expect_err(name);
                assert!(error.contains(reason), "{name}: {error}");
            }
            Some(Outcome::Changed(edits)) => {
                let theirs = edited(theirs.clone(), &edits);
                assert_eq!(ours.expect(name), theirs, "{name}");
            }
            Some(Outcome::Whole(body)) => assert_eq!(ours.expect(name), body, "{name}"),
            None => assert_eq!(&ours.expect(name), theirs, "{name}"),
        }
    }
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
}

#[test]
fn answers_are_read_as_in_the_vectors() {
    let mut expected = expected::answers();
    for (name, vector) in &vectors() {
        let response = &vector["provider_response"];
        let is_completion = response["body"]["object"] == "chat.completion";
        if response["status"] != 200 || !is_completion || vector["translated"].is_null() {
            continue;
        }
        let read = answer::read(response["body"].clone(), "asked", &ToolNames::default());
        if name == "choices_empty" {
            assert!(read.unwrap_err().contains("`choices` are empty"));
            continue;
        }
        let reply = read.unwrap();
        assert_eq!(reply.raw, response["body"], "{name}");
        let ours = json!({
            "message": reply.message,
            "finish_reason": reply.finish_reason.as_str(),
            "usage": reply.usage,
            "model": reply.model,
        });
        let translated = vector["translated"].as_object().unwrap();
        let keys = ["message", "finish_reason", "usage", "model"];
        let mut theirs: Value = keys
            .iter()
            .map(|key| ((*key).to_owned(), translated[*key].clone()))
            .collect();
        if let Some(edits) = expected.remove(name.as_str()) {
            theirs = edited(theirs, &edits);
        }
        assert_eq!(ours, theirs, "{name}");
    }
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
}

fn our_error(response: &Value) -> ChatError {
    golden::error("openai", response)
}

#[test]
fn errors_are_told_apart() {
    let mut expected = expected::errors();
    for (name, vector) in &vectors() {
        let response = &vector["provider_response"];
        if response["status"]
            .as_u64()
            .is_none_or(|status| status < 300)
        {
            continue;
        }
        let error = our_error(response);
        let (kind, retryable) = expected.remove(name.as_str()).expect(name);
        assert_eq!(
            (error.kind, error.is_retryable()),
            (kind, retryable),
            "{name}"
        );
        assert_eq!(error.status.map(u64::from), response["status"].as_u64());
        let said = response["body"]["error"]["message"].as_str();
        assert!(
            said.is_none_or(|said| error.message.contains(said)),
            "{name}: {error}"
        );
    }
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());

    let waits = [
        "error_429_retry_after",
        "error_429_retry_after_long",
        "error_503",
    ];
    let waits = waits.map(|name| our_error(&vectors()[name]["provider_response"]).retry_after);
    let milliseconds = |number| Some(Duration::from_millis(number));
    assert_eq!(
        waits,
        [
            milliseconds(1500),
            milliseconds(3_600_000),
            milliseconds(1000)
        ]
    );

    let body = &vectors()["error_200_error_body"]["provider_response"]["body"];
    let error = failure::inside_success("openai", &HeaderMap::new(), body).unwrap();
    assert!(error.is_retryable() && error.message.contains("Upstream failed."));
}

/// Every verdict `wrong` has its answer in one of the tables.
#[test]
fn nothing_wrong_is_copied() {
    let requests = expected::requests();
    let errors = expected::errors();
    for (name, vector) in &vectors() {
        if vector["verdict"] == "wrong" {
            let name = name.as_str();
            let elsewhere = ["choices_empty", "error_200_error_body"].contains(&name);
            assert!(
                requests.contains_key(name) || errors.contains_key(name) || elsewhere,
                "{name}"
            );
        }
    }
}

/// What we send to OpenAI passes the stub that refuses what OpenAI refuses.
#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let stub = OpenAiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    // What the user asked for by name is sent, whether OpenAI takes it or not.
    let wanted = ["param_extra_body", "tools_strict"];
    for (name, vector) in &vectors() {
        let Ok(body) = our_request(name, vector) else {
            continue;
        };
        if name.contains("__compatible") || wanted.contains(&name.as_str()) {
            continue;
        }
        let response = client
            .post(format!("{}/chat/completions", stub.base_url()))
            .bearer_auth(stub.key())
            .json(&body)
            .send()
            .await
            .unwrap();
        let status = response.status();
        let answer = response.text().await.unwrap();
        assert_eq!(status, 200, "{name}: {answer}\n{body}");
    }
}
