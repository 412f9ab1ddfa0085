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
use program::{Running, archipelago, variables_of_stub};
use serde_json::json;

const SCRIPT: &str = r#"{"turns": [{"content": "Hello from the script."}], "repeat_last": true}"#;

/// Starts `archipelago stub`, and a client of the model `name` for it.
fn start(script: &Path, provider: &str, name: &str, faults: &[&str]) -> (Running, Model) {
    let call = archipelago()
        .args(["stub", provider, "--script"])
        .arg(script);
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let mut running = call.args(faults).start();
    let models = Models::new(variables_of_stub(&running.line_with("listening")));
    let model = models
        .with_retry(RetryPolicy {
            attempts: 10,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(100),
            total: Duration::from_secs(60),
        })
        .resolve(name, &Object::new())
        .unwrap();
    (running, model)
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

/// Every fault against the client of every interface, at once or streamed as the client has it.
#[tokio::test(flavor = "multi_thread")]
async fn faults_come_first_and_in_order() {
    use ChatErrorKind::{Connection, MalformedReply, Overloaded, RateLimit, Server, Timeout};
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    std::fs::write(&script, SCRIPT).unwrap();
    let faults = [
        "drop",
        "429,retry-after-ms=40",
        "529",
        "half-body",
        "malformed-json",
        "midway",
        "stall",
    ];
    // What breaks off midway says why in the words of its interface.
    let clients = [
        ("openai", "openai/gpt-4.1", Server),
        ("openai", "openai/responses/gpt-5.5", Server),
        ("azure", "azure/my-gpt", Overloaded),
        ("anthropic", "anthropic/claude-sonnet-4-5", Overloaded),
        ("gemini", "gemini/gemini-2.5-flash", Overloaded),
        ("vertex_ai", "vertex_ai/gemini-2.5-flash", Overloaded),
        (
            "vertex_ai",
            "vertex_ai/claude-sonnet-4-5@20250929",
            Overloaded,
        ),
        ("bedrock", "bedrock/us.anthropic.claude-opus-5", Overloaded),
    ];
    let started: Vec<_> = clients
        .iter()
        .map(|(provider, name, _)| start(&script, provider, name, &faults))
        .collect();
    let asked = started.iter().map(|(_, model)| ask(model));
    let answers = futures::future::join_all(asked).await;
    for ((_, name, midway), (text, repeated)) in clients.iter().zip(answers) {
        assert_eq!(text, "Hello from the script.", "{name}");
        let kinds: Vec<ChatErrorKind> = repeated.iter().map(|(kind, ..)| *kind).collect();
        assert_eq!(
            kinds,
            [
                Connection,
                RateLimit,
                Overloaded,
                Connection,
                MalformedReply,
                *midway,
                Timeout
            ],
            "{name}"
        );
        assert_eq!(repeated[1].1, Some(429), "{name}");
        assert_eq!(repeated[1].2, Some(Duration::from_millis(40)), "{name}");
        assert_eq!(repeated[2].1, Some(529), "{name}");
    }
    for (running, _) in started {
        tokio::task::spawn_blocking(|| end(running)).await.unwrap();
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
