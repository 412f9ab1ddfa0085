//! What a step costs beside model and tool: time between two model calls, early and late in a run,
//! with a model and a tool that answer at once and the event log on disk.
//!
//! `cargo bench -p agent-core`. The whole runner is measured from outside by `benches/peers`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a program for people"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent_core::{Agents, EventLog, FunctionTool, RunInput, ToolSources, run};
use formats::chat::{Message, ToolCall};
use futures::FutureExt;
use futures::future::BoxFuture;
use llm_client::{ChatError, ChatRequest, Model, Provider, Reply};
use serde_json::json;

const STEPS: usize = 210;

/// Notes when it is asked.
#[derive(Default)]
struct Clock(Mutex<Vec<Instant>>);

impl Provider for Clock {
    fn name(&self) -> &str {
        "openai"
    }

    fn send<'a>(&'a self, _: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        let mut asked = self.0.lock().unwrap();
        asked.push(Instant::now());
        let number = asked.len();
        let mut message = Message::assistant("Next.");
        if number <= STEPS {
            let arguments = r#"{"text":"hello from the model"}"#;
            message.tool_calls = vec![ToolCall::new(format!("c{number}"), "echo", arguments)];
        }
        async move { Ok(Reply::new("fake", message)) }.boxed()
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

fn median(mut gaps: Vec<Duration>) -> f64 {
    gaps.sort();
    gaps[gaps.len() / 2].as_secs_f64() * 1e6
}

#[tokio::main]
async fn main() {
    for agent in ["loop_agent", "react_toolbelt_agent"] {
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            let clock = Arc::new(Clock::default());
            let folder = tempfile::tempdir().unwrap();
            let log = EventLog::create(folder.path().join("events.jsonl")).unwrap();
            let echo = FunctionTool::typed("echo", "Echoes.", |e: Echo| async { Ok(e.text) });
            let input = RunInput::new(Model::new("openai/fake", clock.clone()))
                .agent(agent, json!({"max_steps": STEPS}))
                .user("go")
                .observer(Arc::new(log))
                .tools(ToolSources::new().with_tool(echo));
            run(&Agents::builtin(), input).await.unwrap();
            let asked = clock.0.lock().unwrap();
            let gaps: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
            early.extend_from_slice(&gaps[5..15]);
            late.extend_from_slice(&gaps[195..205]);
        }
        println!(
            "{agent}: {:.0} µs at step 10, {:.0} µs at step 200 (medians)",
            median(early),
            median(late)
        );
    }
}
