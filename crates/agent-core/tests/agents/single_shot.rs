//! `single_shot`: one call, no tools.

use agent_core::{Agents, McpEndpoint, RunInput, ToolSources, run};
use formats::trajectory::AgentStatus;
use llm_client::{ChatErrorKind, FinishReason};
use serde_json::json;

use crate::support::model::{Say, Script, calls, text};
use crate::support::{assert_completed, assert_every_call_answered, end, lines};

async fn ask(say: Say) -> (formats::trajectory::Trajectory, Script) {
    let script = Script::new([say]);
    // Nobody listens there: an agent without tools does not ask for them.
    let nowhere = ToolSources::new().with_endpoint(McpEndpoint::new("http://127.0.0.1:9/mcp/"));
    let input = RunInput::new(script.model())
        .agent("single_shot", json!({}))
        .user("What is 2 + 40?")
        .tools(nowhere);
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_every_call_answered(&trajectory.messages);
    (trajectory, script)
}

#[tokio::test]
async fn the_first_text_is_the_answer() {
    let (trajectory, script) = ask(text("42")).await;
    assert_completed(&trajectory);
    assert_eq!(trajectory.final_answer.as_deref(), Some("42"));
    assert_eq!(
        lines(&trajectory),
        ["user: What is 2 + 40?", "assistant: 42"]
    );
    assert_eq!(script.asked().len(), 1);
    assert!(script.asked()[0].tools.is_empty());
}

#[tokio::test]
async fn what_is_no_answer_fails_the_run_at_once() {
    for (say, status, kind) in [
        (text(" "), AgentStatus::Failed, "empty_replies"),
        (
            text("The answer is").because(FinishReason::Length),
            AgentStatus::Failed,
            "replies_cut_off",
        ),
        (
            calls(&[("calculator", json!({}))]),
            AgentStatus::Failed,
            "unexpected_calls",
        ),
        (
            Say::Fail(ChatErrorKind::Timeout, "slow"),
            AgentStatus::Error,
            "model_timeout",
        ),
    ] {
        let (trajectory, script) = ask(say).await;
        let ended = end(&trajectory);
        assert_eq!((ended.0, ended.2), (status, kind));
        assert_eq!(script.asked().len(), 1);
    }
}
