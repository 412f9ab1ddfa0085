//! The recorded runs of the reference, played again: its model's turns, its tools' results, its
//! requests and its trajectories, compared field by field.
//!
//! What may differ, and why:
//! - Keys that are null in messages made by the reference (`function_call`, …) are left out, and
//!   `name` stays on every tool message of the trajectory (`spec/agents.md` §4.5); on the wire to
//!   OpenAI only standard keys are sent (`spec/llm.md` §6.5).
//! - The wording of messages and tool descriptions of the agent's own is ours; their JSON and what
//!   they must name are compared.
//! - Pictures carry the type that their data shows (the files are JPEG, named `.png`).
//! - Arguments that are no JSON are answered, not executed (§10).
//! - `final_answer`, `output` and `error` are filled (§4.3).
//! - Token estimates come from another estimator; what the provider reported is equal.

use std::path::PathBuf;
use std::sync::Arc;

use agent_core::{Agents, RunInput, ToolSources, run};
use formats::Object;
use formats::trajectory::Trajectory;
use llm_client::Models;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

use crate::support::server::Server;

/// The folder of recorded runs, where it is there.
fn recorded() -> Option<PathBuf> {
    let shared = std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("golden/reference-run");
    if !folder.is_dir() {
        eprintln!("SKIPPED: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

fn read(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// One recorded run and ours of the same script.
struct Played {
    golden: Value,
    golden_requests: Vec<Value>,
    ours: Trajectory,
    requests: Vec<Value>,
    server: Server,
}

async fn play(name: &str) -> Option<Played> {
    let folder = recorded()?.join(name);
    let golden = read(folder.join("trajectory.json"));
    let mut golden_requests = Vec::new();
    while let path = folder.join(format!(
        "llm_requests/{:04}.json",
        golden_requests.len() + 1
    )) && path.exists()
    {
        golden_requests.push(read(path)["body"].clone());
    }

    let mut turns: Vec<Turn> =
        serde_json::from_value(read(folder.join("llm_script.json"))).unwrap();
    for (turn, used) in turns
        .iter_mut()
        .zip(golden["usage"]["call_log"].as_array().unwrap())
    {
        let count = |key: &str| used[key].as_u64().unwrap();
        *turn = turn
            .clone()
            .usage(count("prompt_tokens"), count("completion_tokens"));
    }
    let stub = OpenAiStub::start(Script::new(turns)).await.unwrap();
    let model = Models::new(stub.variables())
        .resolve("openai/fake", &Object::new())
        .unwrap();

    // The loop agent of the reference offers all tools: their definitions are in its requests.
    let offered = read(recorded()?.join("loop/llm_requests/0001.json"));
    let tools = offered["body"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(tool)
        .collect();
    let server = Server::with_tools(tools, usize::MAX).await;
    server.state.replay.lock().unwrap().extend(results(&golden));

    let mut input = RunInput::new(model).tools(ToolSources::gateway(&server.url));
    input.initial_messages =
        serde_json::from_value(read(folder.join("initial_messages.json"))).unwrap();
    input.config = serde_json::from_value(read(folder.join("agent_config.json"))).unwrap();
    let ours = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(stub.refusals(), Vec::<String>::new());
    let requests = stub
        .requests()
        .into_iter()
        .map(|request| request.body)
        .collect();
    Some(Played {
        golden,
        golden_requests,
        ours,
        requests,
        server,
    })
}

fn tool(offered: &Value) -> Tool {
    let function = &offered["function"];
    let text = |key: &str| function[key].as_str().unwrap().to_owned();
    let Value::Object(schema) = function["parameters"].clone() else {
        panic!("no schema")
    };
    Tool::new(text("name"), text("description"), Arc::new(schema))
}

/// What the reference's tools returned, in the order of the calls that we execute too.
fn results(golden: &Value) -> Vec<CallToolResult> {
    let messages = golden["messages"].as_array().unwrap();
    let mut pictures = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"][0]["image_url"]["url"].as_str());
    let mut results = Vec::new();
    for message in messages.iter().filter(|message| message["role"] == "tool") {
        let call = call_of(messages, message);
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let readable = arguments.is_empty() || serde_json::from_str::<Value>(arguments).is_ok();
        // The reference's own tools answer in plain text.
        if !message["content"].is_array() || !readable {
            continue;
        }
        let text = message["content"][0]["text"].as_str().unwrap();
        results.push(CallToolResult::success(vec![
            if text.starts_with("Image(s)") {
                let (head, data) = pictures.next().unwrap().split_once(";base64,").unwrap();
                ContentBlock::image(data, head.trim_start_matches("data:"))
            } else {
                ContentBlock::text(text)
            },
        ]));
    }
    results
}

fn call_of<'a>(messages: &'a [Value], answer: &Value) -> &'a Value {
    messages
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .find(|call| call["id"] == answer["tool_call_id"])
        .unwrap()
}

/// A message in the form in which both are compared.
fn normal(message: &Value, messages: &[Value]) -> Value {
    let mut message = message.clone();
    let own_text = match message["role"].as_str() {
        Some("tool") => Some(call_of(messages, &message)["function"].clone()),
        _ => None,
    };
    let object = message.as_object_mut().unwrap();
    // The stub says more of itself than the recorded model did: `annotations`.
    let left_out = ["provider_specific_fields", "name", "annotations"];
    object.retain(|key, value| !value.is_null() && !left_out.contains(&key.as_str()));
    if let Some(calls) = object.get_mut("tool_calls") {
        for call in calls.as_array_mut().unwrap() {
            let raw = &mut call["function"]["arguments"];
            *raw = as_json(raw.as_str().unwrap());
        }
    }
    if let Some(url) = message.pointer_mut("/content/0/image_url/url") {
        let data = url.as_str().unwrap().split_once(',').unwrap().1.to_owned();
        *url = json!(data);
    }
    if let Some(function) = own_text {
        message["content"] = normal_answer(&message["content"], &function);
    }
    message
}

fn as_json(raw: &str) -> Value {
    // Nothing is sent as an empty object; other text that is no JSON is wrapped.
    match serde_json::from_str(raw) {
        Ok(value) => value,
        Err(_) if raw.is_empty() => json!({}),
        Err(_) => json!({"_raw": raw}),
    }
}

/// The answer to a call: wording of the agents' own becomes what it is about.
fn normal_answer(content: &Value, function: &Value) -> Value {
    let name = function["name"].as_str().unwrap();
    if let Some(text) = content.as_str() {
        return match serde_json::from_str::<Value>(text) {
            Ok(mut json) => {
                if let Some(error) = json.get_mut("error") {
                    *error = json!("in words");
                }
                json
            }
            Err(_) if text.starts_with("ERROR: Cannot submit") || text.starts_with("Refused") => {
                assert!(text.contains('1') && text.contains("in_progress"), "{text}");
                json!("refused, naming todo 1 that is in progress")
            }
            Err(_) => json!(text),
        };
    }
    let text = content[0]["text"].as_str().unwrap();
    if text == format!("Image(s) returned by {name} tool")
        || text == format!("The tool `{name}` returned one image, which follows.")
    {
        return json!("a picture follows");
    }
    content.clone()
}

/// Messages in the form in which both are compared, up to those where we differ on purpose.
fn normal_all(messages: &Value) -> Vec<Value> {
    let messages = messages.as_array().unwrap();
    let unreadable = |message: &Value| {
        message["role"] == "tool" && {
            let raw = call_of(messages, message)["function"]["arguments"]
                .as_str()
                .unwrap();
            !raw.is_empty()
                && serde_json::from_str::<Value>(raw)
                    .map_or(true, |value| value.get("_raw").is_some())
        }
    };
    messages
        .iter()
        .map(|message| match unreadable(message) {
            true => json!("the answer to a call that the reference executes with {}"),
            false => normal(message, messages),
        })
        .collect()
}

fn assert_same_messages(golden: &Value, ours: &Value, what: &str) {
    let (golden, ours) = (normal_all(golden), normal_all(ours));
    for (index, (golden, ours)) in golden.iter().zip(&ours).enumerate() {
        assert_eq!(golden, ours, "{what}, message {index}");
    }
    assert_eq!(golden.len(), ours.len(), "{what}");
}

/// Tools of a request: those of servers as they are, the agents' own without our wording.
fn tools(request: &Value) -> Vec<Value> {
    let tools = request["tools"].as_array().unwrap();
    let own =
        |name: &str| name.starts_with("toolbelt_") || matches!(name, "todo_write" | "final_answer");
    tools
        .iter()
        .map(|tool| {
            let mut tool = tool.clone();
            if own(tool["function"]["name"].as_str().unwrap()) {
                without_descriptions(&mut tool);
            }
            tool
        })
        .collect()
}

fn without_descriptions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("description").is_some_and(Value::is_string) {
                object.remove("description");
            }
            object.values_mut().for_each(without_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

fn assert_same_run(played: &Played) {
    let Played {
        golden,
        golden_requests,
        ours,
        requests,
        server,
    } = played;
    assert!(
        server.state.replay.lock().unwrap().is_empty(),
        "all results were asked for"
    );
    assert_eq!(golden_requests.len(), requests.len());
    for (index, (golden, ours)) in golden_requests.iter().zip(requests).enumerate() {
        let what = format!("request {}", index + 1);
        assert_eq!(golden["model"], ours["model"], "{what}");
        assert_same_messages(&golden["messages"], &ours["messages"], &what);
        assert_eq!(tools(golden), tools(ours), "{what}");
    }
    for message in ours
        .messages
        .iter()
        .filter(|message| message.tool_call_id.is_some())
    {
        assert!(message.name.is_some(), "{message:?}");
    }
    let written = serde_json::to_value(ours).unwrap();
    assert_same_messages(&golden["messages"], &written["messages"], "trajectory");
    assert_eq!(golden["status"], written["status"]);
    for key in golden.as_object().unwrap().keys() {
        assert!(written.get(key).is_some(), "`{key}` is not written");
    }
    assert_same_usage(&golden["usage"], &written["usage"]);
}

fn assert_same_usage(golden: &Value, ours: &Value) {
    let keys =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys(golden), keys(ours));
    for (key, value) in golden.as_object().unwrap() {
        if key != "call_log" {
            assert_eq!(value, &ours[key], "{key}");
        }
    }
    let estimated = [
        "user_output_tokens",
        "tool_call_input_tokens",
        "tool_call_output_tokens",
        "final_answer_tokens",
    ];
    let log = |usage: &Value| usage["call_log"].as_array().unwrap().clone();
    assert_eq!(log(golden).len(), log(ours).len());
    for (call, (golden, ours)) in log(golden).iter().zip(&log(ours)).enumerate() {
        assert_eq!(keys(golden), keys(ours));
        for (key, value) in golden.as_object().unwrap() {
            if estimated.contains(&key.as_str()) {
                assert_eq!(value == 0, ours[key] == 0, "call {call}: {key}");
            } else {
                assert_eq!(value, &ours[key], "call {call}: {key}");
            }
        }
    }
}

#[tokio::test]
async fn the_loop_agents_run_is_the_same() {
    let Some(played) = play("loop").await else {
        return;
    };
    assert_same_run(&played);
    assert_eq!(
        played.ours.final_answer.as_deref(),
        Some("The gorilla image is at /animals/xk92m/qz7fw.png")
    );
}

#[tokio::test]
async fn the_toolbelt_agents_run_is_the_same() {
    let Some(played) = play("react").await else {
        return;
    };
    assert_same_run(&played);
    let output = serde_json::to_value(&played.ours.output).unwrap();
    assert_eq!(output, json!({"final_answer_status": "completed"}));
}

#[tokio::test]
async fn the_run_on_tool_errors_is_the_same_but_for_unreadable_arguments() {
    let Some(played) = play("errors").await else {
        return;
    };
    assert_same_run(&played);
    let refused = played.ours.messages.iter().find(|message| {
        message
            .text()
            .starts_with("Not called: the arguments are not valid JSON")
    });
    assert_eq!(
        refused.and_then(|message| message.tool_call_id.as_deref()),
        Some("call_0004_0")
    );
}
