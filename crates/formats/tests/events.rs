//! `events.jsonl` is a format that others read: the JSON of each kind of event is pinned here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

use std::collections::BTreeSet;

use formats::Object;
use formats::chat::{Message, ToolCall, Usage};
use formats::event::{Event, EventKind, FORMAT_VERSION, ToolOutcome};
use formats::owner::{Failure, Owner};
use formats::trajectory::AgentStatus;
use serde_json::{Value, json};

/// One event of each kind, every optional key set.
fn kinds() -> Vec<EventKind> {
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        ..Usage::default()
    };
    let call = ToolCall::new("c1", "echo", r#"{"text":"hi"}"#);
    let mut reply = Message::assistant("Calling.");
    reply.tool_calls = vec![call.clone()];
    let failure = Failure::new(Owner::Infrastructure, "rate_limit", "slow down").retryable(true);
    let details = Object::from_iter([("kind".to_owned(), json!("turn_warning"))]);
    vec![
        EventKind::RunStarted {
            trajectory_id: "t1".into(),
            agent_config_id: "loop_agent".into(),
            model: "openai/x".into(),
            messages: vec![Message::user("go")],
        },
        EventKind::RunContinued {
            model: "openai/x".into(),
        },
        EventKind::Configured {
            tools: vec!["echo".into()],
        },
        EventKind::StepStarted,
        EventKind::Request {
            messages: 1,
            tools: 1,
        },
        EventKind::Retry {
            attempt: 1,
            wait_seconds: 0.5,
            failure: failure.clone(),
        },
        EventKind::Waited {
            seconds: 12.5,
            reason: "tokens_per_minute".into(),
        },
        EventKind::Reasoning {
            text: "It wants an echo.".into(),
        },
        EventKind::Response {
            message: reply,
            finish_reason: "tool_calls".into(),
            usage: Some(usage.clone()),
            cost_usd: Some(0.25),
            duration: 1.5,
        },
        EventKind::ToolCall { call },
        EventKind::ToolResult {
            message: Message::tool("c1", "echo", "hi"),
            outcome: ToolOutcome::Ok,
            duration: 0.25,
            pictures: Vec::new(),
        },
        EventKind::Message {
            message: Message::user("3 steps are left."),
        },
        EventKind::Compacted {
            before: 12,
            messages: vec![Message::user("so far")],
            usage: Some(usage),
        },
        EventKind::Budget { details },
        EventKind::Warning {
            message: "careful".into(),
        },
        EventKind::FinalAnswer {
            answer: "hi".into(),
            answer_status: Some("completed".into()),
        },
        EventKind::Subagent {
            name: "reader".into(),
            event: Box::new(event(0, EventKind::StepStarted)),
        },
        EventKind::RunEnded {
            status: AgentStatus::Error,
            failure: Some(failure),
        },
    ]
}

fn event(seq: u64, kind: EventKind) -> Event {
    Event {
        v: FORMAT_VERSION,
        seq,
        time: "2026-01-01T00:00:00Z".into(),
        elapsed: 0.5,
        step: Some(1),
        kind,
    }
}

#[test]
fn the_json_of_each_kind_stays_as_it_is() {
    let written: Vec<String> = (0..)
        .zip(kinds())
        .map(|(seq, kind)| serde_json::to_string(&event(seq, kind)).unwrap())
        .collect();
    for line in &written {
        let read: Event = serde_json::from_str(line).unwrap();
        assert_eq!(&serde_json::to_string(&read).unwrap(), line);
    }
    insta::assert_snapshot!("events", written.join("\n"));
}

#[test]
fn every_kind_is_pinned() {
    let pinned: BTreeSet<String> = kinds()
        .into_iter()
        .map(|kind| {
            let value = serde_json::to_value(kind).unwrap();
            value["type"].as_str().unwrap().to_owned()
        })
        .collect();
    let schema = schemars::schema_for!(EventKind).to_value();
    let kinds: BTreeSet<String> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind: &Value| {
            let name = &kind["properties"]["type"]["const"];
            name.as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(pinned, kinds);
}
