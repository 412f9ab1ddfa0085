//! The calls of all vectors over Converse, about which LiteLLM was not asked: what the strict stub takes,
//! and that nothing that was said is lost.

use std::collections::BTreeSet;

use formats::Object;
use llm_vectors::{self as golden, Input};
use llm_wire::ChatRequest;
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use serde_json::Value;
use testkit::bedrock::{BedrockStub, Options, Script, Turn};

use super::parameters::Given;
use super::request::Converse;

/// Models of each kind: thinking with a budget, by itself, not at all; not Anthropic's.
const MODELS: [&str; 4] = [
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "anthropic.claude-opus-5",
    "anthropic.claude-3-haiku-20240307-v1:0",
    "amazon.nova-pro-v1:0",
];

/// The body for the call of a vector with `extra_args`.
fn body(input: &Input, extra_args: &Object, model: &str) -> Result<Value, String> {
    let mut given = Given::read(extra_args)?;
    let rest = std::mem::take(&mut given.rest);
    let settings = Settings::read(&rest)?;
    let request = ChatRequest {
        extra_args: &rest,
        ..input.request()
    };
    let names = ToolNames::new(request.tools, request.messages);
    let body =
        Converse::new(&request, &settings, given, &names, model).map_err(|(_, reason)| reason)?;
    Ok(serde_json::to_value(&body).unwrap())
}

#[test]
fn nothing_that_was_said_is_lost() {
    for (name, input) in golden::all_inputs() {
        for model in MODELS {
            if let Ok(body) = body(&input, &Object::new(), model) {
                golden::check_all_is_said(&name, &input, &body);
            }
        }
    }
}

#[tokio::test]
async fn the_strict_stub_takes_every_request() {
    let script = Script::new([Turn::says("fine")]).repeat_last();
    // The vectors have signatures of Anthropic's own.
    let options = Options {
        lenient: true,
        ..Options::new(script, "key")
    };
    let stub = BedrockStub::start_with(options).await.unwrap();
    for model in MODELS {
        let mut seen = BTreeSet::new();
        let mut bodies = Vec::new();
        for (name, input) in golden::all_inputs() {
            let own = input.request().extra_args;
            for (kind, extra_args) in [("own", own), ("none", &Object::new())] {
                let Ok(body) = body(&input, extra_args, model) else {
                    continue;
                };
                if seen.insert(body.to_string()) {
                    bodies.push((format!("{name} ({kind}, {model})"), body));
                }
            }
        }
        assert!(bodies.len() > 100, "{}", bodies.len());
        golden::check_stub_takes(bodies, |client, _| {
            let model = model.replace(':', "%3A");
            let address = format!("{}/model/{model}/converse", stub.base_url());
            client.post(address).bearer_auth(stub.key())
        })
        .await;
    }
}
