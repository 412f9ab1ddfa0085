//! Replies that are no answers, and model calls that fail (scenarios 4 and 13, pitfall A8,
//! `spec/agents.md` §14).

use std::sync::Arc;

use agent_core::{Agents, RunInput, run};
use formats::chat::{Block, Message};
use formats::trajectory::AgentStatus;
use llm_client::{ChatErrorKind, FinishReason};
use serde_json::json;

use crate::support::model::{Say, Script, text, usage};
use crate::support::{Events, assert_completed, end, lines};

async fn of(
    agent: &str,
    settings: serde_json::Value,
    script: &Script,
) -> formats::trajectory::Trajectory {
    let input = RunInput::new(script.model())
        .agent(agent, settings)
        .user("go");
    run(&Agents::builtin(), input).await.unwrap()
}

fn nothing() -> Say {
    let mut message = Message::assistant("");
    message.content = None;
    Say::Reply(message, FinishReason::Stop, usage(10, 0))
}

#[tokio::test]
async fn scenario_4_no_choices_use_up_the_step_and_ask_to_continue() {
    let script = Script::new([
        Say::Fail(ChatErrorKind::MalformedReply, "no choices"),
        nothing(),
        text("42"),
    ]);
    let trajectory = of("loop_agent", json!({"max_steps": 3}), &script).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[1].starts_with("user: Please continue"), "{lines:?}");
    assert!(
        lines[2].contains("neither text nor tool calls"),
        "{lines:?}"
    );
    assert_eq!(lines[3], "assistant: 42");
}

#[tokio::test]
async fn a8_three_empty_replies_in_a_row_end_the_run() {
    for agent in ["loop_agent", "react_toolbelt_agent"] {
        let blank = || Say::Reply(Message::assistant("  \n"), FinishReason::Stop, usage(10, 1));
        let mut thinking = Message::assistant("");
        thinking.content = Some(vec![Block::text("")].into());
        thinking
            .extra
            .insert("reasoning_content".into(), json!("hm"));
        let thinking = Say::Reply(thinking, FinishReason::Stop, usage(10, 1));
        let script = Script::new([nothing(), blank(), thinking, text("never asked")]);
        let trajectory = of(agent, json!({}), &script).await;
        assert_eq!(
            end(&trajectory),
            (AgentStatus::Failed, "model", "empty_replies"),
            "{agent}"
        );
        assert_eq!(script.left(), 1);
        // Two requests to continue; the empty turns are not sent back.
        assert_eq!(trajectory.messages.len(), 3);
        assert_eq!(
            trajectory.usage.unwrap()["call_log"]
                .as_array()
                .unwrap()
                .len(),
            3
        );
    }
}

#[tokio::test]
async fn a8_blank_texts_beside_calls_are_not_sent_back() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let mut message = Message::assistant("");
    message.content = Some(
        vec![
            serde_json::from_value(thinking.clone()).unwrap(),
            Block::text(""),
        ]
        .into(),
    );
    message.tool_calls = vec![formats::chat::ToolCall::new(
        "c1",
        "toolbelt_list_tools",
        "{}",
    )];
    let script = Script::new([
        Say::Reply(message, FinishReason::ToolCalls, usage(10, 5)),
        crate::support::model::calls(&[(
            "final_answer",
            json!({"answer": "x", "status": "completed"}),
        )]),
    ]);
    let trajectory = of("react_toolbelt_agent", json!({}), &script).await;
    assert_completed(&trajectory);
    let sent = serde_json::to_value(&script.asked()[1].messages[1]).unwrap();
    assert_eq!(sent["content"], json!([thinking]));
}

#[tokio::test]
async fn cut_off_filtered_and_malformed_replies_are_no_answers() {
    for (reason, kind) in [
        (FinishReason::Length, "replies_cut_off"),
        (FinishReason::ContentFilter, "content_filter"),
        (FinishReason::MalformedCall, "malformed_calls"),
    ] {
        let half = || text("half an ans").because(reason.clone());
        let script = Script::new([half(), text("whole answer")]);
        let trajectory = of("loop_agent", json!({}), &script).await;
        assert_completed(&trajectory);
        assert_eq!(trajectory.final_answer.as_deref(), Some("whole answer"));
        assert_eq!(lines(&trajectory)[1], "assistant: half an ans");

        let script = Script::new([half(), half(), half(), text("never asked")]);
        let trajectory = of("loop_agent", json!({}), &script).await;
        assert_eq!(end(&trajectory), (AgentStatus::Failed, "model", kind));
    }
}

#[tokio::test]
async fn unusable_replies_count_only_in_a_row() {
    let script = Script::new([
        nothing(),
        nothing(),
        text("x").because(FinishReason::Length),
    ]);
    let trajectory = of("loop_agent", json!({}), &script).await;
    assert_eq!(end(&trajectory).2, "replies_cut_off");
    let talk = || text("let me think");
    let script = Script::new([nothing(), nothing(), talk(), nothing(), nothing(), talk()]);
    let trajectory = of("react_toolbelt_agent", json!({"max_steps": 6}), &script).await;
    assert_eq!(end(&trajectory).2, "step_limit");
    assert_eq!(script.left(), 0);
}

#[tokio::test]
async fn scenario_13_failures_of_the_model_call_have_their_owner_and_status() {
    for (kind, message, expected) in [
        (
            ChatErrorKind::Auth,
            "bad key",
            (AgentStatus::Error, "configuration", "auth"),
        ),
        (
            ChatErrorKind::ContextWindow,
            "too long",
            (AgentStatus::Failed, "model", "context_window"),
        ),
        (
            ChatErrorKind::ContentFilter,
            "no",
            (AgentStatus::Failed, "model", "content_filter"),
        ),
        (
            ChatErrorKind::RateLimit,
            "slow down",
            (AgentStatus::Error, "infrastructure", "rate_limit"),
        ),
        (
            ChatErrorKind::BadRequest,
            "unexpected token in the schema",
            (AgentStatus::Error, "infrastructure", "bad_request"),
        ),
        (
            ChatErrorKind::BadRequest,
            "this is Not a Multimodal model",
            (AgentStatus::Failed, "model", "refused_pictures"),
        ),
    ] {
        let script = Script::new([Say::Fail(kind, message)]);
        let trajectory = of("loop_agent", json!({}), &script).await;
        assert_eq!(end(&trajectory), expected, "{message}");
        assert_eq!(trajectory.messages.len(), 1);
    }
}

#[tokio::test]
async fn a_model_that_times_out_uses_up_its_step_and_three_times_ends_the_run() {
    let late = || Say::Fail(ChatErrorKind::Timeout, "no reply");
    let script = Script::new([late(), late(), text("42")]);
    let trajectory = of("loop_agent", json!({}), &script).await;
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory), ["user: go", "assistant: 42"]);

    let script = Script::new([late(), late(), late(), text("never asked")]);
    let trajectory = of("loop_agent", json!({}), &script).await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Error, "infrastructure", "model_timeout")
    );

    // The limit is that of the settings.
    let script = Script::new([Say::Hang, text("42")]);
    let trajectory = of("loop_agent", json!({"llm_response_timeout": 0.5}), &script).await;
    assert_completed(&trajectory);
}

#[tokio::test]
async fn retries_are_told_to_observers() {
    let script = Script::new([Say::Fail(ChatErrorKind::Server, "oops"), text("42")]);
    let model = script.model().with_retry(llm_client::RetryPolicy {
        attempts: 2,
        first_wait: std::time::Duration::from_millis(1),
        ..llm_client::RetryPolicy::default()
    });
    let events = Events::default();
    let input = RunInput::new(model)
        .agent("loop_agent", json!({}))
        .user("go")
        .observer(Arc::new(events.clone()));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    let retries = events.of("retry");
    assert_eq!(retries.len(), 1);
    assert_eq!(retries[0]["attempt"], 1);
    assert_eq!(retries[0]["failure"]["kind"], "server_error");
}

#[tokio::test]
async fn usage_follows_the_provider_and_estimates_the_rest() {
    let mut message = Message::assistant("twelve chars");
    message
        .extra
        .insert("reasoning_content".into(), json!("sixteen letters!"));
    let reported = serde_json::from_value(json!({
        "prompt_tokens": 100, "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 30, "cache_creation_tokens": 7, "image_tokens": 9}
    }))
    .unwrap();
    let script = Script::new([
        nothing(),
        Say::Reply(message, FinishReason::Stop, Some(reported)),
    ]);
    let trajectory = of("loop_agent", json!({}), &script).await;
    assert_completed(&trajectory);
    let usage = trajectory.usage.unwrap();
    for (key, value) in [
        ("prompt_tokens", 110),
        ("completion_tokens", 50),
        ("total_tokens", 160),
        ("final_answer_tokens", 50),
        ("max_prompt_tokens", 100),
        ("compaction_count", 0),
        ("reasoning_tokens", 4),
        ("cached_tokens", 30),
        ("cache_creation_tokens", 7),
    ] {
        assert_eq!(usage[key], value, "{key}");
    }
    assert_eq!(
        usage["call_log"][1],
        json!({"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
            "reasoning_tokens": 4, "cached_tokens": 30, "cache_creation_tokens": 7,
            "user_output_tokens": 3, "reasoning_summary_tokens": 4, "tool_call_input_tokens": 0,
            "tool_call_output_tokens": 0, "tool_call_output_image_tokens": 0,
            "tool_call_output_image_count": 0, "final_answer_tokens": 3, "image_tokens": 9,
            "marginal_input_tokens": 90, "compactions_before": 0, "compacted": false})
    );
}
