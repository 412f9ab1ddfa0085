//! Long runs stay within bounded memory. The runs are in a process of their own, which is this test
//! program again, so that nothing else counts.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_core::{Agents, EventLog, FunctionTool, RunInput, ToolSources, run};
use formats::Object;
use formats::chat::{Message, ToolCall, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use llm_client::{ChatError, ChatRequest, Model, Models, Provider, Reply};
use serde_json::json;
use testkit::openai::{OpenAiStub, Script, Turn};

use crate::support::assert_completed;

/// What a run may add to the peak of the process. Each of these runs holds less than 2 MB of
/// conversation; the rest is for requests, allocator and an unoptimised program.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

const PEAK: &str = "peak of the run in bytes:";

/// Peak memory of this process in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

fn tell(before: u64) {
    eprintln!("{PEAK} {}", peak() - before);
}

/// Runs the ignored test `name` of this program alone and returns what its run added to the peak.
async fn child(name: &str, variables: Vec<(&'static str, String)>) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--ignored", "--nocapture"])
        .envs(variables);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let (_, figure) = text.split_once(PEAK).expect(&text);
    figure.split_whitespace().next().unwrap().parse().unwrap()
}

/// Calls a tool so many times, then answers; keeps nothing.
struct Endless {
    asked: AtomicU64,
    calls: u64,
}

impl Provider for Endless {
    fn name(&self) -> &str {
        "openai"
    }

    fn send<'a>(&'a self, _: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut message = Message::assistant("Working on it.");
        if number < self.calls {
            message.tool_calls = vec![ToolCall::new(format!("c{number}"), "note", "{}")];
        }
        let mut reply = Reply::new("fake", message);
        reply.usage = Some(Usage {
            prompt_tokens: 100 * number,
            completion_tokens: 10,
            total_tokens: 100 * number + 10,
            ..Usage::default()
        });
        async move { Ok(reply) }.boxed()
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn a_thousand_steps() {
    let model = Model::new(
        "openai/fake",
        Arc::new(Endless {
            asked: AtomicU64::new(0),
            calls: 1000,
        }),
    );
    let note = FunctionTool::typed("note", "Notes.", |_: Nothing| async {
        Ok("noted ".repeat(50))
    });
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(EventLog::create(folder.path().join("events.jsonl")).unwrap());
    let input = RunInput::new(model)
        .agent("loop_agent", json!({"max_steps": 2000}))
        .user("go")
        .observer(log.clone())
        .tools(ToolSources::new().with_tool(note));
    let before = peak();
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    log.finish().unwrap();
    tell(before);
    assert_completed(&trajectory);
    assert_eq!(trajectory.messages.len(), 2002);
}

/// Nine results of almost 24,000 tokens: none is cut, and together they are more than 200,000.
#[tokio::test]
#[ignore = "runs in a process of its own"]
async fn two_hundred_thousand_tokens() {
    let (base, key) = (
        std::env::var("STUB_BASE").unwrap(),
        std::env::var("STUB_KEY").unwrap(),
    );
    let models = Models::new(|name| match name {
        "OPENAI_BASE_URL" => Some(base.clone()),
        "OPENAI_API_KEY" => Some(key.clone()),
        _ => None,
    });
    let read = FunctionTool::typed("read", "Reads.", |_: Nothing| async {
        Ok("four".repeat(23_900))
    });
    let model = models.resolve("openai/stub", &Object::new()).unwrap();
    let input = RunInput::new(model)
        .agent("react_toolbelt_agent", json!({"context_tokens": 1_000_000}))
        .user("go")
        .tools(ToolSources::new().with_tool(read));
    let before = peak();
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    tell(before);
    assert_completed(&trajectory);
    let characters: usize = trajectory.messages.iter().map(|m| m.text().len()).sum();
    assert!(characters > 800_000, "{characters}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_thousand_steps_stay_within_bounded_memory() {
    let added = child("bounds::a_thousand_steps", Vec::new()).await;
    assert!(added < MOST_BYTES, "{added} bytes");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_thousand_tokens_stay_within_bounded_memory() {
    let add = Turn::calls("toolbelt_add_tool", json!({"tool_name": "read"}));
    let reads = std::iter::repeat_with(|| Turn::calls("read", json!({}))).take(9);
    let answer = json!({"answer": "read", "status": "completed"});
    let turns = std::iter::once(add)
        .chain(reads)
        .chain([Turn::calls("final_answer", answer)]);
    let stub = OpenAiStub::start(Script::new(turns)).await.unwrap();
    let variables = vec![
        ("STUB_BASE", stub.base_url()),
        ("STUB_KEY", stub.key().to_owned()),
    ];
    let added = child("bounds::two_hundred_thousand_tokens", variables).await;
    assert_eq!(stub.refusals(), [""; 0]);
    assert_eq!(stub.turns_left(), 0);
    assert!(added < MOST_BYTES, "{added} bytes");
}
