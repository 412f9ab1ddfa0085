//! The loop agent: scenarios 1 to 7 and 13 of `spec/agents.md` §21.

use std::sync::Arc;

use agent_core::{Agents, RunInput, ToolSources, run};
use formats::trajectory::AgentStatus;
use serde_json::json;

use crate::support::model::{Script, calls, text};
use crate::support::server::Server;
use crate::support::{Events, lines, user, why};

#[tokio::test]
async fn a_text_reply_completes_the_run() {
    let script = Script::new([text("42")]);
    let events = Events::default();
    let mut input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .observer(Arc::new(events.clone()));
    input.initial_messages = vec![user("What is it?")];
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(trajectory.status, AgentStatus::Completed, "{}", why(&trajectory));
    assert_eq!(lines(&trajectory), ["user: What is it?", "assistant: 42"]);
    assert_eq!(trajectory.final_answer.as_deref(), Some("42"));
    assert_eq!(events.of("final_answer").len(), 1);
    let usage = trajectory.usage.unwrap();
    assert_eq!(usage["call_log"].as_array().unwrap().len(), 1);
    assert_eq!(usage["accounting_mode"], "default");
}

#[tokio::test]
async fn tools_are_called_over_one_session() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[("echo", json!({"text": "hi"})), ("counter", json!({}))]),
        calls(&[("counter", json!({}))]),
        text("done"),
    ]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(trajectory.status, AgentStatus::Completed, "{}", why(&trajectory));
    assert_eq!(
        lines(&trajectory),
        [
            "user: go",
            r#"assistant:  [echo({"text":"hi"})] [counter({})]"#,
            "tool: hi",
            "tool: 1",
            "assistant:  [counter({})]",
            "tool: 2",
            "assistant: done",
        ]
    );
    use std::sync::atomic::Ordering::SeqCst;
    assert_eq!(server.state.initialized.load(SeqCst), 1);
    assert_eq!(server.state.listed.load(SeqCst), 1);
}
