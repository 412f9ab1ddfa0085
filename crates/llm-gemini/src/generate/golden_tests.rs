//! The vectors of `llm-vectors`: what LiteLLM sends and reads in 270 cases.
//!
//! They are evidence, not law. Where a verdict says that LiteLLM is wrong or loses something, or
//! where we had a reason, the tables here say what we do instead, as changes of what LiteLLM does;
//! everywhere else we do the same. The connection cases are tested over sockets in `llm-client/tests/gemini.rs`.

mod expected;

use std::collections::BTreeSet;
use std::time::Duration;

use formats::Object;
use serde_json::{Value, json};
use testkit::gemini::{GeminiStub, Options, Script, Turn};

use super::answer::{self, Reading};
use super::conversation::Signatures;
use super::family::abilities;
use super::parameters::language;
use super::request::Body;
use super::tools::Functions;
use llm_vectors::{self as golden, Input, Vectors, edited};
use llm_wire::ChatErrorKind;
use llm_wire::extra_args::Settings;

/// The vectors, with the bodies of their requests in the documented spelling.
fn vectors() -> Vectors {
    let mut vectors = golden::vectors("gemini");
    for vector in vectors.values_mut() {
        let body = spelled(&vector["request"]["body"]);
        if !body.is_null() {
            vector["request"]["body"] = body;
        }
    }
    vectors
}

/// The body that we send for a vector, or why we send none.
fn our_request(vector: &Value) -> Result<Value, String> {
    let input = Input::of(vector);
    let request = input.request();
    let settings = Settings::read(request.extra_args).unwrap();
    let functions = Functions::new(
        request.tools,
        request.messages,
        language(request.extra_args),
    )?;
    let body = Body::new(
        &request,
        &settings,
        &functions,
        &input.model,
        abilities(&input.model),
        Signatures::Own,
    )
    .map_err(|(_, reason)| reason)?;
    Ok(serde_json::to_value(&body).unwrap())
}

/// LiteLLM's body in Google's documented spelling; it mixes two. A function without parameters has none,
/// which is the documented form, where LiteLLM sends an object of nothing.
fn spelled(theirs: &Value) -> Value {
    match theirs {
        Value::Array(list) => list.iter().map(spelled).collect(),
        Value::Object(object) => {
            let mut spelled_out = Object::new();
            for (key, value) in object {
                let is_free = matches!(
                    key.as_str(),
                    "args" | "response" | "parameters" | "response_json_schema"
                );
                if key == "parameters" && *value == json!({"type": "object"}) {
                    continue;
                }
                let value = if is_free {
                    value.clone()
                } else {
                    spelled(value)
                };
                spelled_out.insert(camel(key), value);
            }
            Value::Object(spelled_out)
        }
        other => other.clone(),
    }
}

fn camel(key: &str) -> String {
    // Fields of the caller's own stay as they are.
    if key.starts_with("vendor_") {
        return key.to_owned();
    }
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut all, word| {
        all.push_str(&word[..1].to_uppercase());
        all.push_str(&word[1..]);
        all
    })
}

#[test]
fn requests_are_those_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 270);
    golden::check_requests(&vectors, expected::requests(), |_, vector| {
        our_request(vector)
    });
}

fn functions_of(vector: &Value) -> Functions {
    let input = Input::of(vector);
    let request = input.request();
    let language = language(request.extra_args);
    Functions::new(request.tools, request.messages, language).unwrap_or_default()
}

/// An answer of a vector as we read it.
fn our_answer(vector: &Value) -> Result<llm_wire::Reply, (ChatErrorKind, String)> {
    let functions = functions_of(vector);
    let reading = Reading {
        model: "asked",
        functions: &functions,
        answer: None,
        one_call: false,
    };
    answer::read(vector["provider_response"]["body"].clone(), reading)
}

/// A message without what is spelled differently: LiteLLM gives a place in the list of calls, which chat
/// completions do not have, hangs signatures on ids, and writes numbers and letters in its own way.
fn comparable(mut message: Value) -> Value {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    let mut made_up = 0;
    for call in calls.into_iter().flatten() {
        call.as_object_mut().unwrap().remove("index");
        if let Some(arguments) = call["function"]["arguments"].as_str() {
            call["function"]["arguments"] = serde_json::from_str(arguments).unwrap();
        }
        let id = call["id"].as_str().unwrap();
        let id = id.split_once("__thought__").map_or(id, |(id, _)| id);
        call["id"] = if id.starts_with("call_") {
            made_up += 1;
            format!("call_generated_{made_up}").into()
        } else {
            id.into()
        };
    }
    message
}

#[test]
fn answers_are_read_as_in_the_vectors() {
    let mut expected = expected::answers();
    let mut rescued = expected::rescued();
    let mut unreadable = expected::unreadable();
    let mut count = 0;
    for (name, vector) in &vectors() {
        let body = &vector["provider_response"]["body"];
        if vector["provider_response"]["status"] != 200 || !body.is_object() {
            continue;
        }
        if body["error"].is_object() {
            continue;
        }
        count += 1;
        let name = name.as_str();
        if let Some(kind) = unreadable.remove(name) {
            assert_eq!(our_answer(vector).unwrap_err().0, kind, "{name}");
            continue;
        }
        let reply = our_answer(vector).expect(name);
        assert_eq!(reply.raw, *body, "{name}");
        assert_eq!(
            reply.request_id.as_deref(),
            body["responseId"].as_str(),
            "{name}"
        );
        let message = comparable(serde_json::to_value(&reply.message).unwrap());
        if let Some((theirs, reason)) = rescued.remove(name) {
            assert_eq!(
                (message, reply.finish_reason.as_str()),
                (theirs, reason),
                "{name}"
            );
            assert_eq!(
                reply.usage.is_some(),
                body["usageMetadata"].is_object(),
                "{name}"
            );
            continue;
        }
        let ours = json!({
            "message": message,
            "finish_reason": reply.finish_reason.as_str(),
            "model": reply.model,
        });
        let translated = &vector["translated"];
        if translated.is_null() {
            // LiteLLM refused the request, so nothing came back.
            continue;
        }
        let mut theirs = json!({
            "message": comparable(translated["message"].clone()),
            "finish_reason": translated["finish_reason"],
            "model": translated["model"],
        });
        if let Some(edits) = expected.remove(name) {
            theirs = edited(theirs, &edits);
        }
        assert_eq!(ours, theirs, "{name}");
        let usage = serde_json::to_value(reply.usage.unwrap()).unwrap();
        check_usage(name, &usage, &translated["usage"]);
    }
    assert!(count > 200, "{count}");
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
    assert!(rescued.is_empty(), "no such vector: {:?}", rescued.keys());
    assert!(
        unreadable.is_empty(),
        "no such vector: {:?}",
        unreadable.keys()
    );
}

fn check_usage(name: &str, ours: &Value, theirs: &Value) {
    for place in [
        "/prompt_tokens",
        "/completion_tokens",
        "/total_tokens",
        "/prompt_tokens_details/cached_tokens",
        "/prompt_tokens_details/tool_use_tokens",
        "/completion_tokens_details/reasoning_tokens",
    ] {
        let zero = json!(0);
        let nothing = |count: &&Value| **count != zero;
        assert_eq!(
            ours.pointer(place).filter(nothing),
            theirs.pointer(place).filter(nothing),
            "{name} {place}"
        );
    }
}

/// Whatever a server answers is read or refused, and what was read can be sent back.
#[test]
fn spoiled_answers_do_no_harm() {
    let functions = Functions::default();
    golden::check_spoiled_answers(
        &vectors(),
        |_, answer| {
            let reading = Reading {
                model: "asked",
                functions: &functions,
                answer: None,
                one_call: false,
            };
            Some(answer::read(answer, reading).ok()?.message)
        },
        |history| {
            let request = golden::plain_request(history);
            let model = "gemini-3.5-flash";
            let body = Body::new(
                &request,
                &Settings::default(),
                &functions,
                model,
                abilities(model),
                Signatures::Own,
            )
            .map_err(|(_, reason)| reason)?;
            Ok(serde_json::to_value(&body).unwrap())
        },
    );
}

#[test]
fn errors_are_told_apart() {
    let vectors = vectors();
    golden::check_errors("gemini", &vectors, expected::errors(), |name, _, error| {
        let waits = (name == "error_429_retry_after").then_some(Duration::from_millis(2500));
        assert_eq!(error.retry_after, waits, "{name}");
    });
    let body = &vectors["error_200_error_body"]["provider_response"]["body"];
    let error = golden::error_in_success("gemini", body);
    assert_eq!(error.kind, ChatErrorKind::Overloaded);
}

/// Every verdict but `ok` and `note` has its answer in one of the tables.
#[test]
fn nothing_wrong_or_lossy_is_copied() {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    known.extend(expected::requests().into_keys());
    known.extend(expected::answers().into_keys());
    known.extend(expected::rescued().into_keys());
    known.extend(expected::unreadable().into_keys());
    known.extend(expected::errors().into_keys());
    // Where there is nothing to do better: the dialect has no counterpart.
    known.extend([
        "user_name_field",
        "tools_additional_properties_false",
        "tools_empty_properties_closed",
        "tools_strict",
    ]);
    // The caller allowed that.
    known.extend(["param_penalties_dropped__gemini-3.5-flash"]);
    // The answer is cut to one call: `only_one_call_counts_where_one_was_asked_for`.
    known.extend([
        "parallel_tool_calls_false",
        "parallel_tool_calls_false_no_tools",
        "parallel_tool_calls_false_one_tool",
        "parallel_tool_calls_false_required",
    ]);
    // What LiteLLM kept of the turn before says no more; ours is in `tests/gemini.rs`.
    known.extend(["roundtrip_empty_signed_part__gemini-3.5-flash_turn2"]);
    // The count of text, which we take from Google only.
    known.extend(["usage_thoughts_inclusive"]);
    // Unreadable over sockets: `tests/gemini.rs`.
    known.extend(["body_empty", "body_html_200", "body_malformed"]);
    golden::check_verdicts(&vectors(), &["wrong", "lossy"], known);
}

#[test]
fn only_one_call_counts_where_one_was_asked_for() {
    let vectors = vectors();
    let vector = &vectors["answer_thinking"];
    let functions = functions_of(vector);
    let reading = Reading {
        model: "asked",
        functions: &functions,
        answer: None,
        one_call: true,
    };
    let body = vector["provider_response"]["body"].clone();
    let reply = answer::read(body, reading).unwrap();
    assert_eq!(reply.message.tool_calls.len(), 1);
    assert_eq!(reply.message.text(), "Let me look.");
    for name in [
        "parallel_tool_calls_false",
        "parallel_tool_calls_false_required",
    ] {
        let input = Input::of(&vectors[name]);
        let request = input.request();
        let settings = Settings::read(request.extra_args).unwrap();
        let functions = functions_of(&vectors[name]);
        let own = Signatures::Own;
        let body = Body::new(&request, &settings, &functions, "m", abilities("m"), own).unwrap();
        assert!(body.one_call, "{name}");
    }
}

/// What we send to Gemini passes the stub that refuses what Gemini refuses.
#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let script = Script::new([Turn::says("fine")]).repeat_last();
    // The signatures of the vectors are not the stub's, and one request has fields of its own.
    let options = Options {
        lenient: true,
        ..Options::new(script, "key")
    };
    let stub = GeminiStub::start_with(options).await.unwrap();
    let vectors = vectors();
    let bodies: Vec<(String, Value)> = vectors
        .iter()
        .filter_map(|(name, vector)| Some((name.clone(), our_request(vector).ok()?)))
        .collect();
    assert!(bodies.len() > 250, "{}", bodies.len());
    // The newest generation takes ids and signatures, the others do not: each vector has its model.
    for (name, body) in bodies {
        let model = Input::of(&vectors[&name]).model;
        let address = format!("{}/models/{model}:generateContent", stub.base_url());
        golden::check_stub_takes([(name, body)], |client, _| {
            client.post(&address).header("x-goog-api-key", stub.key())
        })
        .await;
    }
}
