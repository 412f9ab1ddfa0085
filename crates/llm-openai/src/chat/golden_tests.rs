//! The vectors of `llm-vectors`: what LiteLLM sends and reads in 246 cases.
//!
//! They are evidence, not law. Where a verdict says that LiteLLM is wrong or loses something, or
//! where we had a reason, the tables here say what we do instead, as changes of what LiteLLM does;
//! everywhere else we do the same. The connection cases are tested over sockets in `llm-client/tests/openai.rs`.

mod expected;

use std::time::Duration;

use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

use super::interfaces::Choice;
use super::request::Body;
use super::{Dialect, answer};
use crate::responses;
use llm_vectors::{self as golden, Input, Vectors, edited};
use llm_wire::extra_args::{Api, Settings};
use llm_wire::repair::ToolNames;

fn vectors() -> Vectors {
    golden::vectors("openai")
}

/// The body that we send for a vector, or why we send none.
fn our_request(name: &str, vector: &Value) -> Result<Value, String> {
    let input = Input::of(vector);
    let request = input.request();
    let (dialect, choice) = if name.contains("__compatible") {
        (Dialect::Compatible, Choice::ByStatedNeed)
    } else {
        (Dialect::OpenAi, Choice::ByNeed)
    };
    let settings = Settings::read(request.extra_args).unwrap();
    let path = vector["request"]["path"].as_str();
    let body = match choice.interface(&input.model, &request, &settings) {
        Api::ChatCompletions => {
            assert!(
                path.is_none_or(|path| path == "/v1/chat/completions"),
                "{name}"
            );
            let body = Body::new(&request, &settings, dialect, &input.model)?;
            serde_json::to_value(&body)
        }
        Api::Responses => {
            assert_eq!(path, Some("/v1/responses"), "{name}");
            let names = ToolNames::new(request.tools, request.messages);
            let body = responses::Body::new(&request, &settings, &names, &input.model)?;
            serde_json::to_value(&body)
        }
    };
    Ok(body.unwrap())
}

#[test]
fn requests_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 246);
    golden::check_requests(&vectors, expected::requests(), our_request);
}

#[test]
fn answers_are_read_as_in_the_vectors() {
    let mut expected = expected::answers();
    for (name, vector) in &vectors() {
        let response = &vector["provider_response"];
        if response["status"] != 200 || vector["translated"].is_null() {
            continue;
        }
        let names = ToolNames::default();
        let read = match response["body"]["object"].as_str() {
            Some("chat.completion") => answer::read(response["body"].clone(), "asked", &names),
            Some("response") => responses::read(response["body"].clone(), "asked", &names),
            _ => continue,
        };
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

/// Whatever a server answers is read or refused, and what was read can be sent back.
#[test]
fn spoiled_answers_do_no_harm() {
    let names = ToolNames::default();
    golden::check_spoiled_answers(
        &vectors(),
        |vector, answer| {
            let is_chat = vector["provider_response"]["body"]["object"] == "chat.completion";
            let read = if is_chat {
                answer::read(answer, "asked", &names)
            } else {
                responses::read(answer, "asked", &names)
            };
            Some(read.ok()?.message)
        },
        |history| {
            let request = golden::plain_request(history);
            let settings = Settings::default();
            let body = Body::new(&request, &settings, Dialect::OpenAi, "gpt-4.1")?;
            let input = responses::Body::new(&request, &settings, &names, "gpt-5.5")?;
            serde_json::to_value(&input).unwrap();
            Ok(serde_json::to_value(&body).unwrap())
        },
    );
}

#[test]
fn errors_are_told_apart() {
    let vectors = vectors();
    golden::check_errors("openai", &vectors, expected::errors(), |_, _, _| {});
    let wait =
        |name: &str| golden::error("openai", &vectors[name]["provider_response"]).retry_after;
    let milliseconds = |number| Some(Duration::from_millis(number));
    assert_eq!(wait("error_429_retry_after"), milliseconds(1500));
    assert_eq!(wait("error_429_retry_after_long"), milliseconds(3_600_000));
    assert_eq!(wait("error_503"), milliseconds(1000));

    let body = &vectors["error_200_error_body"]["provider_response"]["body"];
    let error = golden::error_in_success("openai", body);
    assert!(error.is_retryable() && error.message.contains("Upstream failed."));
}

/// Every verdict `wrong` has its answer in one of the tables.
#[test]
fn nothing_wrong_is_copied() {
    let (requests, errors) = (expected::requests(), expected::errors());
    let elsewhere = ["choices_empty", "error_200_error_body"];
    let known = requests.keys().chain(errors.keys()).copied();
    golden::check_verdicts(&vectors(), &["wrong"], known.chain(elsewhere));
}

/// What we send to OpenAI passes the stub that refuses what OpenAI refuses.
#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let stub = OpenAiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    // What the user asked for by name is sent, whether OpenAI takes it or not.
    let wanted = ["param_extra_body", "tools_strict"];
    let vectors = vectors();
    let bodies = vectors
        .iter()
        .filter(|(name, _)| !name.contains("__compatible") && !wanted.contains(&name.as_str()))
        .filter_map(|(name, vector)| Some((name.clone(), our_request(name, vector).ok()?)));
    golden::check_stub_takes(bodies, |client, body| {
        let path = if body.get("input").is_some() {
            "responses"
        } else {
            "chat/completions"
        };
        let address = format!("{}/{path}", stub.base_url());
        client.post(address).bearer_auth(stub.key())
    })
    .await;
}
