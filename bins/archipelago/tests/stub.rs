//! `archipelago stub --fault` as a process of its own, and clients that live with the faults.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod program;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use formats::Object;
use formats::chat::Message;
use llm_client::{CallLabels, ChatErrorKind, ChatRequest, Model, Models, RetryPolicy};
use program::{Running, archipelago};
use serde_json::json;

const SCRIPT: &str = r#"{"turns": [{"content": "Hello from the script."}], "repeat_last": true}"#;

/// Starts `archipelago stub` and returns the base URL that it tells.
fn start(script: &Path, provider: &str, faults: &[&str]) -> (Running, String) {
    let call = archipelago()
        .args(["stub", provider, "--script"])
        .arg(script);
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let mut running = call.args(faults).start();
    let line = running.line_with("listening");
    let (_, rest) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
    let (base, _) = rest
        .split_once(" and any ")
        .unwrap_or_else(|| panic!("{line}"));
    (running, base.to_owned())
}

fn client(provider: &str, base: &str, model: &str) -> Model {
    let prefix = provider.to_uppercase();
    let base_variable = if provider == "openai" {
        "OPENAI_BASE_URL"
    } else {
        "ANTHROPIC_API_BASE"
    };
    Models::new(|name| {
        if name == base_variable {
            Some(base.to_owned())
        } else {
            (name == format!("{prefix}_API_KEY")).then(|| "any".to_owned())
        }
    })
    .with_retry(RetryPolicy {
        attempts: 10,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(100),
        total: Duration::from_secs(60),
    })
    .resolve(&format!("{provider}/{model}"), &Object::new())
    .unwrap()
}

/// The text of the answer, and what was repeated before it.
async fn ask(model: &Model) -> (String, Vec<(ChatErrorKind, Option<u16>, Option<Duration>)>) {
    let repeated = Mutex::new(Vec::new());
    let mut extra_args = Object::new();
    extra_args.insert("timeout".to_owned(), json!(2));
    let messages = [Message::user("hello")];
    let request = ChatRequest {
        messages: &messages,
        tools: &[],
        extra_args: &extra_args,
        timeout: Duration::from_secs(60),
        labels: CallLabels::default(),
    };
    let answer = model
        .chat(request, &|notice| {
            let error = notice.error;
            repeated
                .lock()
                .unwrap()
                .push((error.kind, error.status, error.retry_after));
        })
        .await
        .unwrap();
    (
        answer.message.text().into_owned(),
        repeated.into_inner().unwrap(),
    )
}

/// Ends the stub as a user does.
fn end(running: Running) {
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_come_first_and_in_order() {
    use ChatErrorKind::{Connection, MalformedReply, Overloaded, RateLimit, Timeout};
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    std::fs::write(&script, SCRIPT).unwrap();
    let faults = [
        "drop",
        "429,retry-after-ms=40",
        "529",
        "half-body",
        "malformed-json",
        "stall",
    ];
    for (provider, model) in [("openai", "gpt-4.1"), ("anthropic", "claude-sonnet-4-5")] {
        let (running, base) = start(&script, provider, &faults);
        let (text, repeated) = ask(&client(provider, &base, model)).await;
        assert_eq!(text, "Hello from the script.");
        let kinds: Vec<ChatErrorKind> = repeated.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(
            kinds,
            [
                Connection,
                RateLimit,
                Overloaded,
                Connection,
                MalformedReply,
                Timeout
            ],
            "{provider}"
        );
        assert_eq!(repeated[1].1, Some(429));
        assert_eq!(repeated[1].2, Some(Duration::from_millis(40)));
        assert_eq!(repeated[2].1, Some(529));
        end(running);
    }
}

#[test]
fn a_wrong_fault_is_told() {
    let ended = archipelago()
        .args(["stub", "openai", "--script", "x.json", "--fault", "explode"])
        .end();
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("explode") && ended.stderr.contains("half-body"),
        "{}",
        ended.stderr
    );
}
