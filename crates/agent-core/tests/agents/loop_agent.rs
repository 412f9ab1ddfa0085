//! The loop agent: scenarios 1 to 6 of `spec/agents.md` §21.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use agent_core::{Agents, RunInput, ToolSources, run};
use formats::trajectory::AgentStatus;
use serde_json::{Value, json};

use crate::support::model::{Script, calls, text};
use crate::support::server::Server;
use crate::support::{
    Events, assert_completed, assert_every_call_answered, end, go, lines, user, why,
};

#[tokio::test]
async fn scenario_1_a_text_reply_completes_the_run() {
    let script = Script::new([text("42")]);
    let events = Events::default();
    let mut input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .observer(Arc::new(events.clone()));
    input.initial_messages = vec![user("What is it?")];
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory), ["user: What is it?", "assistant: 42"]);
    assert_eq!(trajectory.final_answer.as_deref(), Some("42"));
    assert_eq!(trajectory.output, None);
    assert_eq!(events.of("final_answer").len(), 1);
    let usage = trajectory.usage.unwrap();
    assert_eq!(usage["call_log"].as_array().unwrap().len(), 1);
    assert_eq!(usage["accounting_mode"], "default");
    assert_eq!(usage["call_log"][0]["final_answer_tokens"], 1);
}

#[tokio::test]
async fn tools_are_called_over_one_session_and_keep_their_state() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[("echo", json!({"text": "hi"})), ("counter", json!({}))]),
        calls(&[("counter", json!({}))]),
        text("done"),
    ]);
    let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
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
    assert_eq!(server.state.initialized.load(SeqCst), 1);
    assert_eq!(server.state.listed.load(SeqCst), 1);
    let first = &script.asked()[0];
    assert_eq!(first.tool_names()[..2], ["echo", "image"]);
    assert_eq!(
        serde_json::to_value(&first.tools[0]).unwrap(),
        json!({"type": "function", "function": {
            "name": "echo", "description": "Says what it is told.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}},
                           "additionalProperties": false},
            "strict": false}})
    );
}

#[tokio::test]
async fn scenario_2_a_timed_out_call_does_not_lose_its_sibling() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[
            ("echo", json!({"text": "one"})),
            ("slow", json!({"ms": 60_000})),
        ]),
        text("done"),
    ]);
    let settings = json!({"tool_call_timeout": 1});
    let trajectory = go("loop_agent", settings, script.model(), &server).await;
    assert_completed(&trajectory);
    let next = script.asked()[1].lines();
    assert_eq!(next[2], "tool: one");
    assert!(
        next[3].starts_with("tool: The call of `slow` timed out after 1 s"),
        "{next:?}"
    );
    let answers = &script.asked()[1].messages[2..4];
    let ids: Vec<_> = answers.iter().map(|m| m.tool_call_id.as_deref()).collect();
    assert_eq!(ids, [Some("c1"), Some("c2")]);
    // The server was told that nobody waits any more.
    crate::support::eventually("the call is cancelled on the server", || {
        server.state.cancelled.load(SeqCst) == 1
    })
    .await;
}

#[tokio::test]
async fn a_result_just_after_the_limit_is_used() {
    let server = Server::start().await;
    let script = Script::new([calls(&[("slow", json!({"ms": 2500}))]), text("done")]);
    // Grace is as long as the limit, at most 5 s.
    let settings = json!({"tool_call_timeout": 2});
    let trajectory = go("loop_agent", settings, script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory)[2], "tool: awake");
}

#[tokio::test]
async fn scenario_3_pictures_follow_all_answers_of_the_step() {
    let server = Server::start().await;
    for model in ["openai/fake", "gemini/fake"] {
        let script = Script::new([
            calls(&[
                ("image", json!({})),
                ("echo", json!({"text": "x"})),
                ("image", json!({})),
            ]),
            text("done"),
        ]);
        let trajectory = go("loop_agent", json!({}), script.named(model), &server).await;
        assert_completed(&trajectory);
        assert_eq!(
            script.asked()[1].lines()[2..],
            [
                "tool: The tool `image` returned one image, which follows.",
                "tool: x",
                "tool: The tool `image` returned one image, which follows.",
                "user: <1 images>",
                "user: <1 images>",
            ],
            "{model}"
        );
        // The server says PNG, the data is JPEG.
        let picture = &trajectory.messages[5].content.as_ref().unwrap().blocks()[0];
        let url = picture.as_image_url().unwrap();
        assert!(url.starts_with("data:image/jpeg;base64,/9j/"), "{url}");
        let usage = trajectory.usage.unwrap();
        assert_eq!(usage["call_log"][0]["tool_call_output_image_count"], 2);
        let tokens = if model.starts_with("openai") {
            2 * 59
        } else {
            2 * 258
        };
        assert_eq!(
            usage["call_log"][0]["tool_call_output_image_tokens"], tokens,
            "{model}"
        );
    }
}

#[tokio::test]
async fn scenario_3_anthropic_sees_pictures_inside_and_the_record_leaves_them_out() {
    let server = Server::start().await;
    let script = Script::new([calls(&[("image", json!({}))]), text("done")]);
    let trajectory = go(
        "loop_agent",
        json!({}),
        script.named("anthropic/fake"),
        &server,
    )
    .await;
    assert_completed(&trajectory);
    assert_eq!(script.asked()[1].lines()[2..], ["tool: <1 images>"]);
    assert_eq!(
        lines(&trajectory)[2],
        "tool: [image_url, image/jpeg: content left out of this record]"
    );
    let usage = trajectory.usage.unwrap();
    assert_eq!(usage["call_log"][0]["tool_call_output_image_tokens"], 64);
}

#[tokio::test]
async fn scenario_5_an_exhausted_token_budget_leaves_one_turn() {
    let server = Server::start().await;
    for (last, status) in [
        (text("my answer"), AgentStatus::Completed),
        (
            calls(&[("echo", json!({"text": "again"}))]),
            AgentStatus::Failed,
        ),
    ] {
        let script = Script::new([
            calls(&[("echo", json!({"text": "x"}))]).used(100, 20),
            last,
            text("never asked"),
        ]);
        let settings = json!({"token_budget": 100});
        let trajectory = go("loop_agent", settings, script.model(), &server).await;
        assert_eq!(trajectory.status, status, "{}", why(&trajectory));
        assert_eq!(script.left(), 1);
        let first = script.asked()[0].lines();
        assert_eq!(first[1], "user: 100 of 100 tokens of the budget are left.");
        let second = script.asked()[1].lines();
        assert!(
            second
                .last()
                .unwrap()
                .starts_with("user: The token budget is used up: 120 of 100"),
            "{second:?}"
        );
        let usage = trajectory.usage.as_ref().unwrap();
        assert_eq!(usage["accounting_mode"], "token_accounting");
        assert_eq!(usage["token_budget"], 100);
        assert_eq!(usage["tokens_spent"], 135);
        if status == AgentStatus::Failed {
            assert_eq!(end(&trajectory).2, "token_budget");
        }
    }
}

#[tokio::test]
async fn a_cost_budget_counts_dollars_at_the_rates_of_the_settings() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[("echo", json!({"text": "x"}))]).used(1000, 100),
        calls(&[("echo", json!({"text": "y"}))]).used(1000, 100),
        text("never asked"),
    ]);
    let events = Events::default();
    let input = RunInput::new(script.model())
        .agent(
            "loop_agent",
            json!({"accounting_mode": " Cost_Accounting ", "cost_budget_usd": "0.001",
                   "input_cost_per_token": 0.000001, "output_cost_per_token": 0.000002,
                   "cached_input_cost_per_token": "x"}),
        )
        .user("go")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "cost_budget")
    );
    let usage = trajectory.usage.unwrap();
    assert_eq!(
        usage["cost_rate_overrides"],
        json!({"input_cost_per_token": 0.000_001, "output_cost_per_token": 0.000_002})
    );
    let spent = usage["cost_usd_spent"].as_f64().unwrap();
    assert!((spent - 0.0024).abs() < 1e-9, "{spent}");
    assert_eq!(usage["cost_unpriced_calls"], 0);
    assert_eq!(usage["cost_budget_usd"], 0.001);
    let first = script.asked()[0].lines();
    assert_eq!(first[1], "user: $0.0010 of the $0.0010 budget are left.");
    let costs: Vec<Value> = events
        .of("budget")
        .into_iter()
        .filter(|event| event["details"]["kind"] == "step_cost")
        .collect();
    assert_eq!(costs.len(), 2);
    assert!(events.warnings()[0].contains("cached_input_cost_per_token"));
}

#[tokio::test]
async fn turn_warnings_count_down() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[("echo", json!({"text": "x"}))]),
        calls(&[("echo", json!({"text": "y"}))]),
    ]);
    let settings = json!({"max_steps": 2, "turn_warnings_enabled": "TRUE"});
    let trajectory = go("loop_agent", settings, script.model(), &server).await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "step_limit")
    );
    let lines = lines(&trajectory);
    assert!(lines[1].starts_with("user: 2 steps are left"), "{lines:?}");
    assert!(
        lines[4].starts_with("user: This is the last step"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn scenario_6_the_step_limit_keeps_the_history() {
    let server = Server::start().await;
    let script = Script::new([calls(&[("echo", json!({"text": "x"}))])]);
    let settings = json!({"max_steps": 1});
    let trajectory = go("loop_agent", settings, script.model(), &server).await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "step_limit")
    );
    assert_eq!(trajectory.messages.len(), 3);
}

/// A run that hangs in its third call.
fn hanging(server: &Server) -> RunInput {
    let script = Script::new([
        calls(&[("echo", json!({"text": "x"}))]),
        calls(&[
            ("slow", json!({"ms": 60_000})),
            ("echo", json!({"text": "y"})),
        ]),
    ]);
    RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(&server.url))
}

fn assert_whole_history(trajectory: &formats::trajectory::Trajectory) {
    assert_eq!(trajectory.messages.len(), 6, "{:?}", lines(trajectory));
    assert_every_call_answered(&trajectory.messages);
    assert_eq!(lines(trajectory)[2], "tool: x");
    assert!(trajectory.usage.is_some());
}

#[tokio::test]
async fn scenario_6_the_timeout_keeps_the_history() {
    let server = Server::start().await;
    let input = hanging(&server).agent("loop_agent", json!({"timeout": 3}));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Error, "infrastructure", "run_timeout")
    );
    assert_whole_history(&trajectory);
    assert!(trajectory.time_elapsed > 1.0, "{}", trajectory.time_elapsed);
}

#[tokio::test]
async fn scenario_6_the_outer_limit_keeps_the_history() {
    let server = Server::start().await;
    let mut input = hanging(&server);
    input.limit = std::time::Duration::from_secs(3);
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Error, "infrastructure", "outer_limit")
    );
    assert_whole_history(&trajectory);
}

#[tokio::test]
async fn scenario_6_cancellation_keeps_the_history() {
    let server = Server::start().await;
    let mut input = hanging(&server);
    let cancel = input.cancel.clone();
    input.observer = Arc::new(CancelOn("slow", cancel));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Cancelled, "cancelled", "cancelled")
    );
    assert_whole_history(&trajectory);
}

/// Cancels the run when a tool is called.
struct CancelOn(&'static str, tokio_util::sync::CancellationToken);

impl agent_core::Observer for CancelOn {
    fn event(&self, event: &formats::event::Event) {
        if let formats::event::EventKind::ToolCall { call } = &event.kind
            && call.function.name == self.0
        {
            self.1.cancel();
        }
    }
}

#[tokio::test]
async fn no_steps_are_no_answer() {
    let script = Script::new([]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({"max_steps": 0}))
        .user("go");
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "step_limit")
    );
}
