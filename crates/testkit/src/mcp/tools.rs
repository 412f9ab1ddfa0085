//! The tools of a stub server, one for each behaviour that a gateway has to get right.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::behaviour::{Running, Stub};

/// Names and what they do.
const TOOLS: [(&str, &str); 20] = [
    ("echo", "Answers with `text`."),
    (
        "count",
        "Answers with how many times it was called in this session.",
    ),
    (
        "sleep",
        "Answers after `ms`; notices its cancellation under `label`.",
    ),
    ("noticed", "Answers with the labels of cancelled calls."),
    ("crash", "Writes `text` to stderr and exits with `code`."),
    ("big", "Answers with `bytes` letters."),
    (
        "content",
        "Answers with every kind of content and unknown fields.",
    ),
    (
        "fail",
        "Answers with an error result of two items and structure.",
    ),
    (
        "protocol_error",
        "Answers with a JSON-RPC error of its own code.",
    ),
    (
        "progress",
        "Tells of `steps` steps of progress, `ms` apart.",
    ),
    ("log", "Writes a log message at `level`."),
    (
        "ask",
        "Puts `method` with `params` to the client and answers with what came back.",
    ),
    (
        "ask_all",
        "Puts all `requests` (method and params) to the client at once and answers with what came back.",
    ),
    (
        "need",
        "Asks the client for a sample and fails with its error.",
    ),
    ("subscriptions", "Answers with what is subscribed to."),
    ("meta", "Answers with the `_meta` of the request."),
    (
        "environment",
        "Answers with variables, directory and process id.",
    ),
    ("add_tool", "Adds the tool `name` and says so."),
    ("touch", "Tells subscribers that `uri` has changed."),
    ("log_level", "Answers with the level that was set."),
];

/// The entries of `tools/list`.
pub(crate) fn listed(stub: &Stub) -> Vec<Value> {
    if stub.settings.no_tools {
        return Vec::new();
    }
    let added = stub.lock().added.clone();
    let own = TOOLS.iter().map(|(name, text)| (*name, *text));
    let extra = stub.settings.extra_tools.iter().chain(&added);
    let mut all: Vec<Value> = own
        .chain(extra.map(|name| (name.as_str(), "Answers with its own name.")))
        .map(|(name, text)| {
            json!({"name": name, "description": text, "inputSchema": {"type": "object"}})
        })
        .collect();
    all.extend(raw_tool(stub));
    all
}

fn raw_tool(stub: &Stub) -> Option<Value> {
    serde_json::from_str(stub.settings.raw_tool.as_deref()?).ok()
}

pub(crate) fn call(running: &Running) -> Result<Value, Value> {
    let name = running.text("name");
    let arguments = &running.params["arguments"];
    let number = |key: &str| arguments[key].as_u64().unwrap_or_default();
    let word = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    let stub = &running.stub;
    Ok(match name.as_str() {
        "echo" => text(word("text")),
        "count" => text((stub.counter.fetch_add(1, Ordering::SeqCst) + 1).to_string()),
        "sleep" => sleep(running, Duration::from_millis(number("ms")), &word("label")),
        "noticed" => text(json!(stub.lock().noticed).to_string()),
        "crash" => crash(&word("text"), i32::try_from(number("code")).unwrap_or(1)),
        "big" => text("x".repeat(usize::try_from(number("bytes")).unwrap_or(0))),
        "content" => content(),
        "fail" => json!({
            "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}],
            "structuredContent": {"why": "asked to"}, "isError": true, "_meta": {"k": 1},
        }),
        "protocol_error" => {
            return Err(
                json!({"code": -32050, "message": "own error", "data": {"detail": [1, 2]}}),
            );
        }
        "progress" => progress(
            running,
            number("steps"),
            Duration::from_millis(number("ms")),
        ),
        "log" => {
            let data = json!({"level": arguments["level"], "data": "a line", "logger": "stub"});
            running.notify("notifications/message", &data);
            text("logged")
        }
        "ask" => text(
            running
                .ask(&word("method"), &arguments["params"])
                .to_string(),
        ),
        "ask_all" => {
            let requests = arguments["requests"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let asked: Vec<_> = requests
                .iter()
                .map(|one| running.put(one["method"].as_str().unwrap_or_default(), &one["params"]))
                .collect();
            let heard: Vec<Value> = asked.iter().map(Running::heard).collect();
            text(json!(heard).to_string())
        }
        "need" => {
            let answer = running.ask("sampling/createMessage", &json!({"messages": []}));
            match answer.get("error") {
                Some(error) => return Err(error.clone()),
                None => text(answer["result"].to_string()),
            }
        }
        "subscriptions" => text(json!(stub.lock().subscriptions).to_string()),
        "meta" => text(running.params["_meta"].to_string()),
        "environment" => text(environment()),
        "add_tool" => {
            stub.lock().added.push(word("name"));
            running.notify("notifications/tools/list_changed", &json!({}));
            text("added")
        }
        "touch" => {
            let uri = word("uri");
            if stub.lock().subscriptions.contains(&uri) {
                running.notify("notifications/resources/updated", &json!({"uri": uri}));
            }
            text("touched")
        }
        "log_level" => text(stub.lock().log_level.clone().unwrap_or_default()),
        other
            if stub.settings.extra_tools.iter().any(|known| known == other)
                || stub.lock().added.iter().any(|known| known == other)
                || raw_tool(stub).is_some_and(|tool| tool["name"] == other) =>
        {
            text(other)
        }
        other => {
            return Err(
                json!({"code": -32602, "message": format!("the stub has no tool {other}")}),
            );
        }
    })
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn sleep(running: &Running, length: Duration, label: &str) -> Value {
    let end = Instant::now() + length;
    while Instant::now() < end {
        if running.is_cancelled() {
            running.stub.lock().noticed.insert(label.to_owned());
            return text("cancelled");
        }
        std::thread::sleep(Duration::from_millis(5).min(end - Instant::now()));
    }
    text(format!("slept {label}"))
}

#[expect(clippy::print_stderr, reason = "what this tool is for")]
fn crash(text: &str, code: i32) -> Value {
    eprintln!("{text}");
    std::process::exit(code)
}

fn content() -> Value {
    json!({
        "x-first": "kept in its place",
        "content": [
            {"type": "text", "text": "ü \u{0} \u{2028} 🔧", "annotations": {"priority": 0.5}, "x-unknown": [1]},
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "data://info", "text": "embedded"}},
            {"type": "resource", "resource": {"uri": "data://doc", "blob": "JVBERg==", "mimeType": "application/pdf"}},
            {"type": "resource_link", "uri": "data://info", "name": "info"},
            {"type": "x-new-kind", "value": {"z": 1, "a": null}},
        ],
        "structuredContent": {"n": 1.0, "big": 18_446_744_073_709_551_615_u64, "null": null},
        "_meta": {"example.com/k": "v"},
        "isError": false,
    })
}

fn progress(running: &Running, steps: u64, pause: Duration) -> Value {
    let token = &running.params["_meta"]["progressToken"];
    for step in 1..=steps {
        std::thread::sleep(pause);
        if !token.is_null() {
            let params =
                json!({"progressToken": token, "progress": step, "total": steps, "x-own": true});
            running.notify("notifications/progress", &params);
        }
    }
    text(token.is_null().to_string())
}

fn environment() -> String {
    let variables: serde_json::Map<String, Value> = std::env::vars()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    json!({
        "variables": variables,
        "directory": std::env::current_dir().ok(),
        "process": std::process::id(),
    })
    .to_string()
}
