//! The calls of all vectors over this interface, about which LiteLLM was not asked: what the strict stub
//! takes, and that nothing that was said is lost.

use std::collections::BTreeSet;

use formats::Object;
use llm_vectors::{self as golden, Input};
use llm_wire::ChatRequest;
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use serde_json::Value;
use testkit::openai::{OpenAiStub, Script, Turn};

use super::request::Body;

const MODEL: &str = "gpt-5.5";

/// The body for the call of a vector with its own arguments, or without any.
fn body(input: &Input, extra_args: &Object) -> Result<Value, String> {
    let request = ChatRequest {
        extra_args,
        ..input.request()
    };
    let settings = Settings::read(extra_args)?;
    let names = ToolNames::new(request.tools, request.messages);
    let body = Body::new(&request, &settings, &names, MODEL)?;
    Ok(serde_json::to_value(&body).unwrap())
}

#[test]
fn nothing_that_was_said_is_lost() {
    for (name, input) in golden::all_inputs() {
        let body = body(&input, &Object::new()).unwrap();
        golden::check_all_is_said(&name, &input, &body);
    }
}

#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let stub = OpenAiStub::start(Script::new([Turn::says("fine")]).repeat_last())
        .await
        .unwrap();
    // What the user asked for by name is sent, whether OpenAI takes it or not.
    let is_wanted = |name: &str| name.contains("param_extra_body") || name.contains("tools_strict");
    let mut seen = BTreeSet::new();
    let mut bodies = Vec::new();
    for (name, input) in golden::all_inputs() {
        if is_wanted(&name) {
            continue;
        }
        let own = input.request().extra_args;
        for (kind, extra_args) in [("own", own), ("none", &Object::new())] {
            let Ok(body) = body(&input, extra_args) else {
                continue;
            };
            if seen.insert(body.to_string()) {
                bodies.push((format!("{name} ({kind})"), body));
            }
        }
    }
    assert!(bodies.len() > 100, "{}", bodies.len());
    golden::check_stub_takes(bodies, |client, _| {
        let address = format!("{}/responses", stub.base_url());
        client.post(address).bearer_auth(stub.key())
    })
    .await;
}
