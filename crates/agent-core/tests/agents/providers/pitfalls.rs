//! The pitfalls A6 to A9.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::stub::{Call, Interface, Turn};

use super::{Bench, Provider, add, answer, calls};
use crate::support::server::jpeg;
use crate::support::{assert_completed, end, lines};

/// Calls with ids of their own.
fn with_ids(ids: &[&str]) -> Turn {
    let calls = ids.iter().enumerate().map(|(number, id)| Call {
        name: "echo".into(),
        arguments: json!({"text": format!("result {number}")}),
        id: Some((*id).to_owned()),
    });
    Turn {
        tool_calls: calls.collect(),
        ..Turn::default()
    }
}

pub(super) async fn a6_equal_and_empty_ids<I: Interface>(provider: Provider) {
    let turns = [
        with_ids(&["same", "same", "", ""]),
        with_ids(&["same"]),
        Turn::says("done"),
    ];
    let bench = Bench::<I>::new(provider, turns).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_completed(&trajectory);
    let results: Vec<String> = lines(&trajectory)
        .into_iter()
        .filter(|line| line.starts_with("tool"))
        .collect();
    assert_eq!(
        results,
        [
            "tool: result 0",
            "tool: result 1",
            "tool: result 2",
            "tool: result 3",
            "tool: result 0"
        ]
    );
    // Once as arguments of the call, once as its result.
    let words = ["result 0", "result 1", "result 2", "result 3"];
    let words: Vec<&str> = words.iter().chain(&words).copied().collect();
    bench.assert_asked(1, &words);
}

/// A refused answer with two more calls behind it, which have the same id or none.
pub(super) async fn a6_calls_beside_a_refused_answer<I: Interface>(provider: Provider) {
    for id in ["same", ""] {
        let todo = |status: &str| {
            let item = json!({"id": "1", "content": "look", "status": status});
            ("todo_write", json!({"todos": [item], "merge": true}))
        };
        let mut beside = calls(&[add("echo"), answer("early")]);
        beside.tool_calls.extend(with_ids(&[id, id]).tool_calls);
        let turns = [
            calls(&[todo("pending")]),
            beside,
            calls(&[todo("completed"), answer("42")]),
        ];
        let bench = Bench::<I>::new(provider, turns).await;
        let trajectory = bench.run("react_toolbelt_agent", json!({})).await;
        assert_completed(&trajectory);
        let skipped = "Skipped: it came behind `final_answer`";
        bench.assert_asked(
            2,
            &[
                "toolbelt_size",
                "Refused: 1 of your todos",
                skipped,
                skipped,
            ],
        );
        assert_eq!(
            bench.server.calls().len(),
            0,
            "what is skipped is not called"
        );
    }
}

pub(super) async fn a7_broken_arguments<I: Interface>(provider: Provider) {
    if !provider.raw_arguments {
        // Arguments are an object on this wire: there is no text that could be broken.
        let turns = [Turn::calls("counter", Value::Null), Turn::says("done")];
        let bench = Bench::<I>::new(provider, turns).await;
        assert_completed(&bench.run("loop_agent", json!({})).await);
        assert_eq!(bench.server.calls(), [("counter".to_owned(), json!({}))]);
        return;
    }
    let broken = r#"{"text":"/a","content":"abc"#;
    for reason in ["length", "tool_calls"] {
        let turns = [
            Turn::calls("echo", broken.into()).finish_reason(reason),
            calls(&[("counter", "".into()), ("counter", "{}\"".into())]),
            Turn::says("done"),
        ];
        let bench = Bench::<I>::new(provider, turns).await;
        let trajectory = bench.run("loop_agent", json!({})).await;
        assert_completed(&trajectory);
        let nothing = ("counter".to_owned(), json!({}));
        assert_eq!(bench.server.calls(), [nothing.clone(), nothing]);
        bench.assert_asked(1, &["the arguments are not valid JSON (line 1, column 27"]);
        assert_eq!(
            trajectory.messages[1].tool_calls[0].function.arguments,
            broken
        );
        assert_eq!(
            bench.events.warnings(),
            ["call of `counter`: stray characters behind the arguments were dropped"]
        );
    }
}

pub(super) async fn a8_blank_texts_and_empty_turns<I: Interface>(provider: Provider) {
    let nothing = || Turn::says(" ").usage(10, 1);
    let turns = [
        calls(&[("empty", json!({})), ("blank", json!({}))]),
        Turn::says("  \n"),
        nothing(),
        nothing(),
    ];
    let bench = Bench::<I>::new(provider, turns).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    bench.assert_asked(1, &["`empty` returned nothing", "`blank` returned nothing"]);
    let (_, owner, kind) = end(&trajectory);
    assert_eq!((owner, kind), ("model", "empty_replies"));
}

pub(super) async fn a9_every_kind_of_part<I: Interface>(provider: Provider) {
    let inside = provider.model.starts_with("anthropic/");
    let turn = calls(&[
        ("everything", json!({})),
        ("error", json!({})),
        ("protocol_error", json!({})),
    ]);
    let bench = Bench::<I>::new(provider, [turn, Turn::says("done")]).await;
    let trajectory = bench.run("loop_agent", json!({})).await;
    assert_completed(&trajectory);
    let picture = STANDARD.encode(jpeg());
    let mut words = vec![
        "hello",
        "[resource file:///notes.txt]\ninner text",
        "[binary resource file:///a.pdf: application/pdf, 5 bytes; not shown]",
        "[link to resource file:///b.csv: b.csv, text/csv]",
        "[audio: audio/wav, 4 bytes; not shown]",
        r#"{"code":7,"why":"no such row"}"#,
        "the row must be positive",
    ];
    words.insert(if inside { 1 } else { words.len() }, &picture);
    bench.assert_asked(1, &words);
    assert_eq!(bench.asked(1).matches(&picture).count(), 1);
}
