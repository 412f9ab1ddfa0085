//! The scenarios, by their numbers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use formats::chat::Role;
use formats::trajectory::AgentStatus;
use serde_json::{Value, json};
use testkit::stub::{Interface, Turn};

use super::{Bench, Provider, add, answer, calls};
use crate::support::server::{Server, jpeg};
use crate::support::{assert_completed, end, eventually, lines};

pub(super) async fn s1_a_text_completes<I: Interface>(provider: Provider) {
    let bench = Bench::<I>::new(provider, [Turn::says("42").usage(11, 3)]).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory), ["user: go", "assistant: 42"]);
    assert_eq!(trajectory.final_answer.as_deref(), Some("42"));
    assert_eq!(bench.events.of("final_answer").len(), 1);
    let usage = trajectory.usage.unwrap();
    let log = usage["call_log"].as_array().unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(
        (&log[0]["prompt_tokens"], &log[0]["completion_tokens"]),
        (&json!(11), &json!(3))
    );
}

pub(super) async fn s2_a_call_that_times_out_beside_another<I: Interface>(provider: Provider) {
    let both = calls(&[
        ("echo", json!({"text": "the first result"})),
        ("slow", json!({"ms": 60_000})),
    ]);
    let bench = Bench::<I>::new(provider, [both, Turn::says("done")]).await;
    let trajectory = bench
        .run("loop_agent", json!({"tool_call_timeout": 1}))
        .await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines[2], "tool: the first result");
    assert!(lines[3].contains("`slow` timed out"), "{lines:?}");
    bench.assert_asked(1, &["the first result", "`slow` timed out"]);
}

/// Providers that take pictures inside results get them there; others from the user, behind all
/// results of the turn.
pub(super) async fn s3_pictures<I: Interface>(provider: Provider) {
    let inside = provider.model.starts_with("anthropic/");
    let turn = calls(&[("image", json!({})), ("echo", json!({"text": "behind it"}))]);
    let bench = Bench::<I>::new(provider, [turn, Turn::says("seen")]).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_completed(&trajectory);
    let picture = STANDARD.encode(jpeg());
    assert_eq!(bench.asked(1).matches(&picture).count(), 1);
    let roles: Vec<&str> = trajectory
        .messages
        .iter()
        .map(|m| m.role.as_str())
        .collect();
    let written = serde_json::to_string(&trajectory.messages).unwrap();
    if inside {
        bench.assert_asked(1, &[&picture, "behind it"]);
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant"]);
        assert!(!written.contains(&picture), "left out of the record");
    } else {
        bench.assert_asked(1, &["behind it", &picture]);
        assert_eq!(
            roles,
            ["user", "assistant", "tool", "tool", "user", "assistant"]
        );
        assert_eq!(written.matches(&picture).count(), 1);
    }
}

pub(super) async fn s4_empty_replies<I: Interface>(provider: Provider) {
    let nothing = || Turn::says(" ").usage(10, 1);
    let bench = Bench::<I>::new(provider, [nothing(), nothing(), Turn::says("42")]).await;
    let trajectory = bench.run("loop_agent", json!({"max_steps": 3})).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[1].contains("Please continue") && lines[2].contains("Please continue"),
        "{lines:?}"
    );
}

pub(super) async fn s5_token_budget<I: Interface>(provider: Provider) {
    let expensive = || calls(&[("echo", json!({"text": "x"}))]).usage(100, 20);
    let settings = json!({"token_budget": 100, "accounting_mode": "token_accounting"});
    for (last, expected) in [
        (
            calls(&[("echo", json!({"text": "y"}))]),
            AgentStatus::Failed,
        ),
        (Turn::says("42"), AgentStatus::Completed),
    ] {
        let bench = Bench::<I>::new(provider, [expensive(), last]).await;
        let trajectory = bench.run("loop_agent", settings.clone()).await;
        assert_eq!(trajectory.status, expected);
        bench.assert_asked(1, &["The token budget is used up: 120 of 100"]);
        let usage = trajectory.usage.unwrap();
        assert!(usage["tokens_spent"].as_u64().unwrap() > 120, "{usage:?}");
    }
}

pub(super) async fn s6_steps_time_and_cancellation<I: Interface>(provider: Provider) {
    let work = || calls(&[("echo", json!({"text": "kept"}))]);
    for (settings, status, kind) in [
        (json!({"max_steps": 1}), AgentStatus::Failed, "step_limit"),
        (json!({"timeout": 3}), AgentStatus::Error, "run_timeout"),
        (json!({}), AgentStatus::Cancelled, "cancelled"),
    ] {
        let late = Turn::says("too late").after_ms(100_000);
        let bench = Bench::<I>::new(provider, [work(), late]).await;
        let input = bench.input("loop_agent", settings);
        let cancel = input.cancel.clone();
        let stop = async {
            if kind == "cancelled" {
                eventually("a second request", || bench.stub.requests().len() == 2).await;
                cancel.cancel();
            }
        };
        let (trajectory, ()) = tokio::join!(bench.go(input), stop);
        let (ended, _, why) = end(&trajectory);
        assert_eq!((ended, why), (status, kind));
        assert_eq!(lines(&trajectory)[2], "tool: kept");
    }
}

pub(super) async fn s7_a_server_that_is_gone<I: Interface>(provider: Provider) {
    let twice = [
        ("echo", json!({"text": "1"})),
        ("echo", json!({"text": "2"})),
    ];
    let turns = [calls(&twice[..1]), calls(&twice).after_ms(1000)];
    let bench = Bench::<I>::new(provider, turns).await;
    let gone = async {
        eventually("a second request", || bench.stub.requests().len() == 2).await;
        bench.server.stop().await;
    };
    let (trajectory, ()) = tokio::join!(bench.run("loop_agent", json!({})), gone);
    assert_eq!(end(&trajectory).0, AgentStatus::Error);
    let lines = lines(&trajectory);
    assert!(lines[4].starts_with("tool: Fatal error"), "{lines:?}");
    assert!(lines[5].starts_with("tool: Not called"), "{lines:?}");
}

pub(super) async fn s8_the_belt<I: Interface>(provider: Provider) {
    let named = |name: &str| json!({"tool_name": name});
    let bench = Bench::<I>::new(
        provider,
        [
            calls(&[("echo", json!({"text": "no"}))]),
            calls(&[
                ("toolbelt_list_tools", json!({})),
                ("toolbelt_inspect_tool", named("echo")),
                add("echo"),
                ("echo", json!({"text": "added and called in one turn"})),
            ]),
            calls(&[("toolbelt_remove_tool", named("echo")), ("echo", json!({}))]),
            calls(&[answer("done")]),
        ],
    )
    .await;
    let trajectory = bench.run("react_toolbelt_agent", json!({})).await;
    assert_completed(&trajectory);
    let results: Vec<String> = lines(&trajectory)
        .into_iter()
        .filter(|line| line.starts_with("tool"))
        .collect();
    let not_in_belt = "tool: Not called: `echo` is not in your toolbelt.";
    assert!(results[0].starts_with(not_in_belt), "{results:?}");
    assert!(results[1].contains(r#""blank","counter""#), "{results:?}");
    assert!(results[2].contains("Says what it is told."), "{results:?}");
    assert_eq!(
        results[3..6],
        [
            r#"tool: {"success":true,"toolbelt_size":1}"#,
            "tool: added and called in one turn",
            r#"tool: {"success":true,"toolbelt_size":0}"#
        ]
    );
    assert!(results[6].starts_with(not_in_belt), "{results:?}");
    // The belt is what the model is offered: before, with, and without the tool.
    let offered: Vec<usize> = (0..4)
        .map(|request| {
            bench
                .asked(request)
                .matches("Says what it is told.")
                .count()
        })
        .collect();
    // The result of `toolbelt_inspect_tool` says it too.
    assert_eq!(offered, [0, 0, 2, 1]);
}

pub(super) async fn s9_an_open_todo<I: Interface>(provider: Provider) {
    let todo = |status: &str| {
        let item = json!({"id": "1", "content": "look", "status": status});
        ("todo_write", json!({"todos": [item], "merge": true}))
    };
    let turns = [
        calls(&[todo("in_progress")]),
        calls(&[answer("early")]),
        calls(&[todo("completed"), answer("42")]),
    ];
    let bench = Bench::<I>::new(provider, turns).await;
    let trajectory = bench.run("react_toolbelt_agent", json!({})).await;
    assert_completed(&trajectory);
    bench.assert_asked(
        2,
        &["Refused: 1 of your todos is still open: `1` (in_progress)"],
    );
    assert_eq!(lines(&trajectory).last().unwrap(), "tool: 42");
    let last = trajectory.messages.last().unwrap();
    assert_eq!(last.name.as_deref(), Some("final_answer"));
    let output = Value::from(trajectory.output.unwrap());
    assert_eq!(output, json!({"final_answer_status": "completed"}));
}

pub(super) async fn s10_no_call_is_nudged<I: Interface>(provider: Provider) {
    let turns = [Turn::says("I am done."), calls(&[answer("42")])];
    let bench = Bench::<I>::new(provider, turns).await;
    let trajectory = bench.run("react_toolbelt_agent", json!({})).await;
    assert_completed(&trajectory);
    bench.assert_asked(1, &["I am done.", "You called no tool."]);
}

pub(super) async fn s11_long_results<I: Interface>(provider: Provider) {
    let long = |length: u64| ("long", json!({"length": length}));
    let turns = [
        calls(&[add("long"), long(120_000), long(250_000)]),
        calls(&[answer("42")]),
    ];
    let bench = Bench::<I>::new(provider, turns).await;
    let trajectory = bench.run("react_toolbelt_agent", json!({})).await;
    assert_completed(&trajectory);
    bench.assert_asked(1, &["95,000 characters left out", "250,000 characters"]);
    let length = bench.asked(1).len();
    assert!((25_000..40_000).contains(&length), "{length}");
}

pub(super) async fn s12_a_full_context_is_summarised<I: Interface>(provider: Provider) {
    let count = |prompt: u64| calls(&[("counter", json!({}))]).usage(prompt, 10);
    let mut turns = vec![calls(&[add("counter")]).usage(500, 10)];
    turns.extend((0..5).map(|step| count(if step < 4 { 1000 } else { 80_000 })));
    turns.push(Turn::says("It counted to five."));
    turns.push(count(2000));
    turns.push(calls(&[answer("6")]));
    let bench = Bench::<I>::new(provider, turns).await;
    let settings = json!({"context_tokens": 100_000});
    let trajectory = bench.run("react_toolbelt_agent", settings).await;
    assert_completed(&trajectory);
    // The seventh request asks for the summary, the eighth goes on from it.
    bench.assert_asked(6, &["<conversation>", "Task and goal"]);
    bench.assert_asked(
        7,
        &["go", "# Summary of the work so far", "It counted to five."],
    );
    assert_eq!(bench.events.of("compacted").len(), 1);
    let usage = trajectory.usage.as_ref().unwrap();
    assert_eq!(usage["compaction_count"], 1);
    let counted: Vec<String> = lines(&trajectory)
        .into_iter()
        .filter(|line| line.starts_with("tool: ") && line.len() == 7)
        .collect();
    let expected = (1..=6).map(|n| format!("tool: {n}"));
    // The last one is the answer.
    assert_eq!(
        counted,
        expected.chain(["tool: 6".to_owned()]).collect::<Vec<_>>()
    );
    let tools = trajectory.messages.iter().filter(|m| m.role == Role::Tool);
    assert_eq!(tools.count(), 8, "every result once");
}

pub(super) async fn s13_wrong_key_and_overflow<I: Interface>(provider: Provider) {
    // What the providers say of a conversation that is too long.
    let words = "This model's maximum context length is 128000 tokens; prompt is too long: 200000 tokens \
                 > 128000 maximum; the input token count (200000) exceeds the maximum number of tokens \
                 allowed (128000).";
    let overflow = Turn::fails_with(400, I::error(400, words));
    let bench = Bench::<I>::new(provider, [overflow]).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "context_window")
    );

    let bench = Bench::<I>::new(provider, [Turn::says("never")]).await;
    let right = bench.stub.variables();
    let (_, key) = I::VARIABLES;
    let wrong = move |name: &str| match name == key {
        true => Some("sk-wrong-0123456789".to_owned()),
        false => right(name),
    };
    let mut input = bench.input("loop_agent", json!({}));
    input.model = bench.model_with(wrong);
    let trajectory = agent_core::run(&agent_core::Agents::builtin(), input)
        .await
        .unwrap();
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Error, "configuration", "auth")
    );
    assert_eq!(bench.stub.requests().len(), 1, "it is not tried again");
}

pub(super) async fn s14_tools_of_all_pages<I: Interface>(provider: Provider) {
    let turns = [calls(&[("tool_059", json!({}))]), Turn::says("done")];
    let server = Server::with_many(60, 30).await;
    let bench = Bench::<I>::with_server(provider, turns, server).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory)[2], "tool: tool_059");
    assert!((0..60).all(|number| bench.asked(0).contains(&format!("tool_{number:03}"))));
}
