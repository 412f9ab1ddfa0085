//! Following a run: an observer of one's own beside the event log on disk, and what can be rebuilt
//! from the log.
//!
//! `cargo run -p agent-core --example observe`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_core::{
    Agents, EventLog, FunctionTool, Observer, Observers, RunInput, ToolSources, read_events,
    rebuild, run,
};
use formats::Object;
use formats::event::{Event, EventKind};
use llm_client::Models;
use serde_json::json;

/// Counts what a run does while it does it.
#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    tokens: AtomicU64,
}

impl Observer for Counter {
    fn event(&self, event: &Event) {
        match &event.kind {
            EventKind::ToolCall { .. } => {
                self.calls.fetch_add(1, Ordering::Relaxed);
            }
            EventKind::Response {
                usage: Some(usage), ..
            } => {
                self.tokens.fetch_add(usage.total_tokens, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let script = json!([
        {"tool_calls": [{"name": "time", "arguments": {}}]},
        {"content": "It is noon."}
    ]);
    std::fs::write(folder.path().join("time.json"), script.to_string())?;
    let models = Models::new(|_| None).with_script_folder(folder.path());
    let time = FunctionTool::typed("time", "Tells the time.", |_: Nothing| async { Ok("noon") });

    let counter = Arc::new(Counter::default());
    let path = folder.path().join("events.jsonl");
    let log = Arc::new(EventLog::create(&path)?);
    let input = RunInput::new(models.resolve("scripted/time.json", &Object::new())?)
        .agent("loop_agent", json!({}))
        .user("What time is it?")
        .observer(Arc::new(Observers(vec![counter.clone(), log.clone()])))
        .tools(ToolSources::new().with_tool(time));
    let trajectory = run(&Agents::builtin(), input).await?;
    log.finish()?;

    assert_eq!(counter.calls.load(Ordering::Relaxed), 1);
    let rebuilt = rebuild(&read_events(&path)?);
    assert_eq!(rebuilt.map(|run| run.messages), Some(trajectory.messages));
    Ok(())
}
