//! The vectors of `llm-vectors`: what LiteLLM sends and reads in 252 cases.
//!
//! They are evidence, not law. Where a verdict says that LiteLLM is wrong or loses something, or
//! where we had a reason, the tables here say what we do instead, as changes of what LiteLLM does;
//! everywhere else we do the same. The connection cases are tested over sockets in `llm-client/tests/anthropic.rs`.

mod expected;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::anthropic::{AnthropicStub, Options, Script, Turn};

use super::answer::{self, Reading};
use super::request::{Body, Style};
use llm_vectors::{self as golden, Input, Vectors, edited};
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;

/// LiteLLM sets no marks by itself; ours are tested in `request_tests.rs`.
const STYLE: Style = Style {
    marks: false,
    ..super::DIRECT
};

fn vectors() -> Vectors {
    golden::vectors("anthropic")
}

/// The body that we send for a vector, or why we send none. Whether it comes as a stream is left out.
fn our_request(vector: &Value) -> Result<Value, String> {
    let input = Input::of(vector);
    let request = input.request();
    let settings = Settings::read(request.extra_args).unwrap();
    let names = ToolNames::new(request.tools, request.messages);
    let mut body = Body::new(&request, &settings, &names, &input.model, STYLE)
        .map_err(|(_, reason)| reason)?;
    body.stream = false;
    Ok(serde_json::to_value(&body).unwrap())
}

#[test]
fn requests_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 252);
    golden::check_requests(&vectors, expected::requests(), |_, vector| {
        our_request(vector)
    });
}

/// What LiteLLM's answers hold beside what ours hold: a place in the list of blocks, which chat
/// completions do not have, and the same thinking blocks a second time.
fn without_doubles(mut message: Value) -> Value {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    for call in calls.into_iter().flatten() {
        call.as_object_mut().unwrap().remove("index");
        // Numbers and letters are spelled differently.
        let arguments = call["function"]["arguments"].as_str().unwrap();
        call["function"]["arguments"] = serde_json::from_str(arguments).unwrap();
    }
    let fields = message
        .get_mut("provider_specific_fields")
        .and_then(Value::as_object_mut);
    if let Some(fields) = fields {
        fields.remove("thinking_blocks");
        if fields.is_empty() {
            message
                .as_object_mut()
                .unwrap()
                .remove("provider_specific_fields");
        }
    }
    message
}

fn names_of(vector: &Value) -> ToolNames {
    let input = Input::of(vector);
    let request = input.request();
    ToolNames::new(request.tools, request.messages)
}

#[test]
fn answers_are_read_as_in_the_vectors() {
    let mut expected = expected::answers();
    let mut count = 0;
    for (name, vector) in &vectors() {
        let response = &vector["provider_response"];
        if response["status"] != 200 || response["body"]["type"] != "message" {
            continue;
        }
        if vector["translated"].is_null() {
            continue;
        }
        count += 1;
        let names = names_of(vector);
        let answer_tool = (response["body"]["content"][0]["name"] == "json_tool_call")
            .then_some("json_tool_call");
        let reading = Reading {
            model: "asked",
            names: &names,
            answer_tool,
            arguments: &BTreeMap::new(),
        };
        // The stub names are LiteLLM's; ours carry a check sum.
        let mut body = response["body"].clone();
        if name == "tools_names_odd" {
            for (index, original) in ["fs.read-file", "fs/read file"].iter().enumerate() {
                body["content"][index]["name"] = names.wire(original).into();
            }
        }
        let reply = answer::read(body.clone(), reading).unwrap();
        assert_eq!(reply.raw, body, "{name}");
        let ours = json!({
            "message": without_doubles(serde_json::to_value(&reply.message).unwrap()),
            "finish_reason": reply.finish_reason.as_str(),
            "model": reply.model,
        });
        let translated = &vector["translated"];
        let mut message = translated["message"].clone();
        if answer_tool.is_some() {
            // The answer as text, spelled differently.
            let text = message["content"].as_str().unwrap();
            let value: Value = serde_json::from_str(text).unwrap();
            message["content"] = value.to_string().into();
        }
        let mut theirs = json!({
            "message": without_doubles(message),
            "finish_reason": translated["finish_reason"],
            "model": translated["model"],
        });
        if let Some(edits) = expected.remove(name.as_str()) {
            theirs = edited(theirs, &edits);
        }
        assert_eq!(ours, theirs, "{name}");
        let usage = serde_json::to_value(reply.usage.unwrap()).unwrap();
        check_usage(name, &usage, &translated["usage"], &body["usage"]);
    }
    assert!(count > 150, "{count}");
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
}

/// The counts are LiteLLM's, but for guesses of the thinking, which we do not make.
fn check_usage(name: &str, ours: &Value, theirs: &Value, native: &Value) {
    for place in [
        "/prompt_tokens",
        "/completion_tokens",
        "/total_tokens",
        "/prompt_tokens_details/cached_tokens",
        "/prompt_tokens_details/cache_creation_tokens",
    ] {
        assert!(ours.pointer(place).is_some(), "{name} {place}");
        assert_eq!(ours.pointer(place), theirs.pointer(place), "{name} {place}");
    }
    assert_eq!(
        ours.pointer("/completion_tokens_details/reasoning_tokens"),
        native.pointer("/output_tokens_details/thinking_tokens"),
        "{name}"
    );
    if !native["cache_creation"].is_null() {
        assert_eq!(ours["cache_creation"], native["cache_creation"], "{name}");
    }
}

/// Whatever a server answers is read or refused, and what was read can be sent back.
#[test]
fn spoiled_answers_do_no_harm() {
    let names = ToolNames::default();
    golden::check_spoiled_answers(
        &vectors(),
        |_, answer| {
            let reading = Reading {
                model: "asked",
                names: &names,
                answer_tool: None,
                arguments: &BTreeMap::new(),
            };
            Some(answer::read(answer, reading).ok()?.message)
        },
        |history| {
            let request = golden::plain_request(history);
            let settings = Settings::default();
            let body = Body::new(&request, &settings, &names, "claude-opus-5", STYLE)
                .map_err(|(_, reason)| reason)?;
            Ok(serde_json::to_value(&body).unwrap())
        },
    );
}

#[test]
fn errors_are_told_apart() {
    let vectors = vectors();
    golden::check_errors(
        "anthropic",
        &vectors,
        expected::errors(),
        |name, body, error| {
            assert_eq!(
                error.request_id.as_deref(),
                body["request_id"].as_str(),
                "{name}"
            );
        },
    );
    let waits = &vectors["error_429_retry_after"]["provider_response"];
    let error = golden::error("anthropic", waits);
    assert_eq!(error.retry_after, Some(Duration::from_secs(2)));
    let body = &vectors["error_200_error_body"]["provider_response"]["body"];
    let error = golden::error_in_success("anthropic", body);
    assert_eq!(error.kind, llm_wire::ChatErrorKind::Overloaded);
    assert_eq!(error.request_id.as_deref(), Some("req_1"));
}

/// Every verdict but `ok` and `note` has its answer in one of the tables.
#[test]
fn nothing_wrong_or_lossy_is_copied() {
    let (requests, answers, errors) = (
        expected::requests(),
        expected::answers(),
        expected::errors(),
    );
    let elsewhere = [
        // Where there is nothing to do better: the fields have no counterpart.
        "user_name_field",
        "user_image_detail_high",
        // The turn goes back as it is.
        "roundtrip_pause_turn_turn2",
    ];
    let known = requests.keys().chain(answers.keys()).chain(errors.keys());
    golden::check_verdicts(
        &vectors(),
        &["wrong", "lossy"],
        known.copied().chain(elsewhere),
    );
}

/// What we send to Anthropic passes the stub that refuses what Anthropic refuses.
#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let script = Script::new([Turn::says("fine")]).repeat_last();
    // The signatures of the vectors are not the stub's, and one tool has an odd property.
    let options = Options {
        lenient: true,
        ..Options::new(script, "key")
    };
    let stub = AnthropicStub::start_with(options).await.unwrap();
    let vectors = vectors();
    let bodies = vectors
        .iter()
        .filter_map(|(name, vector)| Some((name.clone(), our_request(vector).ok()?)));
    golden::check_stub_takes(bodies, |client, _| {
        client
            .post(format!("{}/v1/messages", stub.base_url()))
            .header("x-api-key", stub.key())
            .header("anthropic-version", super::VERSION)
    })
    .await;
}
