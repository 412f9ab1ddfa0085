//! The vectors of `tests/golden/openai`: what LiteLLM sends and reads in 246 cases.
//!
//! They are evidence, not law. Where a verdict says that LiteLLM is wrong or loses something, or
//! where we had a reason, the tables here say what we do instead, as changes of what LiteLLM does;
//! everywhere else we do the same. The connection cases are tested over sockets in `tests/openai.rs`.

mod expected;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

use self::expected::{Edit, Outcome};
use super::request::Body;
use super::{Dialect, answer};
use crate::call::{CallLabels, ChatRequest};
use crate::error::ChatError;
use crate::extra_args::Settings;
use crate::providers::failure;
use crate::repair::ToolNames;

type Vectors = BTreeMap<String, Value>;

fn vectors() -> Vectors {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openai");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect()
}

/// The body that we send for a vector, or why we send none.
fn our_request(name: &str, vector: &Value) -> Result<Value, String> {
    let input = &vector["input"];
    let messages: Vec<Message> = serde_json::from_value(input["messages"].clone()).unwrap();
    let tools: Option<Vec<ToolDefinition>> =
        serde_json::from_value(input["tools"].clone()).unwrap();
    let mut extra_args: Object = serde_json::from_value(input["extra_args"].clone()).unwrap();
    if input["litellm_settings"]["drop_params"] == json!(true) {
        extra_args.insert("drop_params".to_owned(), true.into());
    }
    let request = ChatRequest {
        messages: &messages,
        tools: &tools.unwrap_or_default(),
        extra_args: &extra_args,
        timeout: Duration::from_secs(1),
        labels: CallLabels::default(),
    };
    let dialect = if name.contains("__compatible") {
        Dialect::Compatible
    } else {
        Dialect::OpenAi
    };
    let model = input["model"].as_str().unwrap();
    let model = model.strip_prefix("openai/").unwrap();
    let settings = Settings::read(&extra_args).unwrap();
    let body = Body::new(&request, &settings, dialect, model)?;
    Ok(serde_json::to_value(&body).unwrap())
}

fn edited(mut value: Value, edits: &[Edit]) -> Value {
    let parent_of = |pointer: &str| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        (parent.to_owned(), key.to_owned())
    };
    for edit in edits {
        match edit {
            Edit::Set(pointer, new) => {
                let (parent, key) = parent_of(pointer);
                value.pointer_mut(&parent).unwrap()[key.as_str()] = new.clone();
            }
            Edit::At(pointer, new) => *value.pointer_mut(pointer).unwrap() = new.clone(),
            Edit::Remove(pointer) => {
                let (parent, key) = parent_of(pointer);
                match value.pointer_mut(&parent).unwrap() {
                    Value::Array(list) => drop(list.remove(key.parse().unwrap())),
                    Value::Object(map) => drop(map.remove(&key).unwrap()),
                    other => panic!("{pointer} is in {other}"),
                }
            }
            Edit::Insert(pointer, index, new) => {
                let list = value.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
                list.insert(*index, new.clone());
            }
        }
    }
    value
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
    let headers: HeaderMap = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = value.as_str().unwrap();
            (
                HeaderName::try_from(name).unwrap(),
                HeaderValue::try_from(value).unwrap(),
            )
        })
        .collect();
    let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    let body = match &response["raw_body"] {
        Value::String(text) => text.clone(),
        _ => response["body"].to_string(),
    };
    failure::from_answer(
        "openai",
        StatusCode::from_u16(status).unwrap(),
        &headers,
        body.as_bytes(),
    )
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
