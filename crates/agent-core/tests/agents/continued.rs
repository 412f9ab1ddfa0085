//! Runs that go on after their process ended, and finished ones that go on with a further question.

use std::sync::Arc;

use agent_core::{
    AgentConfigError, Agents, Checkpoint, EventLog, RunInput, ToolSources, read_events, rebuild,
    run,
};
use formats::event::{Event, EventKind};
use formats::trajectory::Trajectory;
use serde_json::{Value, json};

use crate::support::model::{Say, Script, calls, text};
use crate::support::server::Server;
use crate::support::{Events, assert_completed, assert_every_call_answered, lines};

/// What the model says in a run of each agent, turn by turn.
fn turns(agent: &str) -> Vec<Say> {
    let work = [
        calls(&[("counter", json!({})), ("echo", json!({"text": "a"}))]),
        calls(&[("look", json!({"ms": 1})), ("counter", json!({}))]),
    ];
    if agent == "loop_agent" {
        return work.into_iter().chain([text("two")]).collect();
    }
    let add = |name: &str| ("toolbelt_add_tool", json!({"tool_name": name}));
    let todo = |status: &str| {
        let item = json!({"id": "count", "content": "count", "status": status});
        ("todo_write", json!({"todos": [item], "merge": true}))
    };
    let answer = || {
        (
            "final_answer",
            json!({"answer": "two", "status": "blocked"}),
        )
    };
    [calls(&[
        add("counter"),
        add("echo"),
        add("look"),
        todo("pending"),
    ])]
    .into_iter()
    .chain(work)
    .chain([
        text("I am done"),
        calls(&[answer()]),
        calls(&[todo("completed"), answer()]),
    ])
    .collect()
}

fn input(agent: &str, script: &Script, server: &Server, events: &Events) -> RunInput {
    RunInput::new(script.model())
        .agent(agent, json!({"turn_warnings_enabled": true}))
        .user("count to two")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url))
}

/// How many results the server gave according to `events`, and the calls of it that were on their
/// way when they end and are not repeated.
fn made(events: &[Event]) -> (usize, usize) {
    const TOOLS: [&str; 3] = ["counter", "echo", "look"];
    let mut open: Vec<&str> = Vec::new();
    let mut answered = 0;
    for event in events {
        match &event.kind {
            EventKind::ToolCall { call } if TOOLS.contains(&call.function.name.as_str()) => {
                open.push(&call.id);
            }
            EventKind::ToolResult { message, .. } => {
                let id = message.tool_call_id.as_deref().unwrap();
                if open.contains(&id) {
                    answered += 1;
                    open.retain(|known| *known != id);
                }
            }
            _ => {}
        }
    }
    let lost = |id: &&&str| {
        let is_it = |event: &Event| {
            matches!(&event.kind, EventKind::ToolCall { call }
                if call.id == **id && call.function.name != "look")
        };
        events.iter().any(is_it)
    };
    (answered, open.iter().filter(lost).count())
}

#[tokio::test]
async fn a_run_goes_on_from_any_event_and_repeats_no_answered_call() {
    for agent in ["loop_agent", "react_toolbelt_agent"] {
        let server = Server::start().await;
        let whole = Events::default();
        let script = Script::new(turns(agent));
        let original = run(&Agents::builtin(), input(agent, &script, &server, &whole))
            .await
            .unwrap();
        assert_completed(&original);
        let all = whole.all();
        let total = server.calls().len();
        assert_eq!(total, 4);
        for cut in 1..all.len() {
            let before = &all[..cut];
            let what = format!("{agent}, event {cut}: {:?}", before.last().unwrap().kind);
            let replies = |event: &&Event| matches!(event.kind, EventKind::Response { .. });
            let said = before.iter().filter(replies).count();
            let server = Server::start().await;
            let events = Events::default();
            let script = Script::new(turns(agent).into_iter().skip(said));
            let checkpoint = Checkpoint::from_events(before).unwrap();
            let complete = checkpoint.is_complete();
            let input = input(agent, &script, &server, &events).continue_from(checkpoint);
            let trajectory = run(&Agents::builtin(), input).await.unwrap();

            // Between the result of `final_answer` and the event of that name the model is asked
            // once more; it has nothing to say here.
            let answered = matches!(&before.last().unwrap().kind, EventKind::ToolResult { message, .. }
                if message.text() == "two" && message.name.as_deref() == Some("final_answer"));
            if !answered {
                assert_completed(&trajectory);
                assert_eq!(trajectory.final_answer, original.final_answer, "{what}");
                assert_eq!(trajectory.output, original.output, "{what}");
                assert_eq!(script.left(), 0, "{what}");
            }
            assert_every_call_answered(&trajectory.messages);
            if matches!(
                before.last().unwrap().kind,
                EventKind::StepStarted | EventKind::Request { .. }
            ) {
                let said = |run: &Trajectory| {
                    let mut lines = lines(run);
                    lines.retain(|line| !line.starts_with("tool:"));
                    lines
                };
                assert_eq!(said(&trajectory), said(&original), "{what}");
            }
            let (results, lost) = made(before);
            assert_eq!(server.calls().len(), total - results - lost, "{what}");
            if complete {
                assert!(events.all().is_empty(), "{what}");
                continue;
            }
            // The events of both processes are one run.
            let joined: Vec<Event> = before.iter().cloned().chain(events.all()).collect();
            for (seq, event) in joined.iter().enumerate() {
                assert_eq!(event.seq, seq as u64, "{what}");
            }
            assert_same(&rebuild(&joined).unwrap(), &trajectory, &what);
        }
    }
}

fn assert_same(rebuilt: &Trajectory, trajectory: &Trajectory, what: &str) {
    assert_eq!(rebuilt.messages, trajectory.messages, "{what}");
    assert_eq!(rebuilt.status, trajectory.status, "{what}");
    assert_eq!(rebuilt.final_answer, trajectory.final_answer, "{what}");
    let log = |run: &Trajectory| run.usage.as_ref().unwrap()["call_log"].clone();
    assert_eq!(log(rebuilt), log(trajectory), "{what}");
}

#[tokio::test]
async fn steps_and_dollars_of_the_earlier_process_count() {
    let server = Server::start().await;
    let settings = json!({"max_steps": 2, "accounting_mode": "cost_accounting",
        "input_cost_per_token": 0.01, "output_cost_per_token": 0.02});
    let events = Events::default();
    let script = Script::new([calls(&[("counter", json!({}))]), text("never read")]);
    let start = |script: &Script| {
        RunInput::new(script.model())
            .agent("loop_agent", settings.clone())
            .user("go")
            .observer(Arc::new(events.clone()))
            .tools(ToolSources::gateway(&server.url))
    };
    run(&Agents::builtin(), start(&script)).await.unwrap();
    let all = events.all();
    let second = |event: &Event| event.step == Some(2);
    let cut = all.iter().position(second).unwrap();
    let script = Script::new([calls(&[("counter", json!({}))]), text("too late")]);
    let checkpoint = Checkpoint::from_events(&all[..=cut]).unwrap();
    let trajectory = run(&Agents::builtin(), start(&script).continue_from(checkpoint))
        .await
        .unwrap();
    assert_eq!(crate::support::end(&trajectory).2, "step_limit");
    // Two calls of 10 prompt and 5 completion tokens: 2 · (0.10 + 0.10) dollars.
    let spent = trajectory.usage.unwrap()["cost_usd_spent"]
        .as_f64()
        .unwrap();
    assert!((spent - 0.4).abs() < 1e-9, "{spent}");
}

#[tokio::test]
async fn another_run_is_not_continued() {
    let events = Events::default();
    let script = Script::new([]);
    let start = |agent: &str, words: &str| {
        RunInput::new(script.model())
            .agent(agent, json!({}))
            .user(words)
            .observer(Arc::new(events.clone()))
    };
    run(&Agents::builtin(), start("loop_agent", "go"))
        .await
        .unwrap();
    let all = events.all();
    for (agent, words, reason) in [
        (
            "single_shot",
            "go",
            "its agent is `loop_agent`, the configuration names `single_shot`",
        ),
        ("loop_agent", "stop", "it began with other messages"),
    ] {
        let checkpoint = Checkpoint::from_events(&all).unwrap();
        let input = start(agent, words).continue_from(checkpoint);
        let error = run(&Agents::builtin(), input).await.unwrap_err();
        assert!(matches!(error, AgentConfigError::Continue(_)));
        assert_eq!(
            error.to_string(),
            format!("cannot continue the run: {reason}")
        );
    }
    assert!(Checkpoint::from_events(&all[1..]).is_none());
}

#[test]
fn a_log_is_appended_to_behind_its_last_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let long = "x".repeat(200_000);
    for (before, after) in [
        ("a\nb\n".to_owned(), "a\nb\n"),
        ("a\nb".to_owned(), "a\n"),
        ("half".to_owned(), ""),
        (String::new(), ""),
        (format!("a\n{long}"), "a\n"),
    ] {
        std::fs::write(&path, before).unwrap();
        EventLog::append(&path).unwrap().finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), after);
    }
    assert!(EventLog::append(folder.path().join("none")).is_err());
}

#[tokio::test]
async fn a_log_on_disk_is_continued_after_a_kill_in_the_middle_of_a_line() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let whole = Events::default();
    let script = Script::new(turns("loop_agent"));
    let log = Arc::new(EventLog::create(&path).unwrap());
    let mut first = input("loop_agent", &script, &server, &whole);
    first.observer = log;
    run(&Agents::builtin(), first).await.unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();

    let events = read_events(&path).unwrap();
    let said = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Response { .. }))
        .count();
    let script = Script::new(turns("loop_agent").into_iter().skip(said));
    let mut second = input("loop_agent", &script, &server, &whole)
        .continue_from(Checkpoint::from_events(&events).unwrap());
    second.observer = Arc::new(EventLog::append(&path).unwrap());
    let trajectory = run(&Agents::builtin(), second).await.unwrap();
    assert_completed(&trajectory);
    assert_same(
        &rebuild(&read_events(&path).unwrap()).unwrap(),
        &trajectory,
        "on disk",
    );
}

/// A kill between the results of a turn and the pictures that follow them: these are shown to the
/// model all the same, in the order of the calls and once.
#[tokio::test]
async fn pictures_of_an_interrupted_step_are_restored() {
    let server = Server::start().await;
    let whole = Events::default();
    let turns = || {
        [
            calls(&[
                ("image", json!({})),
                ("everything", json!({})),
                ("echo", json!({"text": "behind"})),
            ]),
            text("seen"),
        ]
    };
    let script = Script::new(turns());
    let original = run(
        &Agents::builtin(),
        input("loop_agent", &script, &server, &whole),
    )
    .await
    .unwrap();
    assert_completed(&original);
    assert_eq!(lines(&original)[6..8], ["user: <1 images>"; 2]);
    let all = whole.all();
    let of_step = |event: &&Event| event.step == Some(1);
    let first = all.iter().position(|event| event.step == Some(1)).unwrap();
    let last = first + all.iter().filter(of_step).count();
    for cut in first..last {
        let before = &all[..cut];
        let said = before
            .iter()
            .filter(|event| matches!(event.kind, EventKind::Response { .. }))
            .count();
        let script = Script::new(turns().into_iter().skip(said));
        let events = Events::default();
        let checkpoint = Checkpoint::from_events(before).unwrap();
        let input = input("loop_agent", &script, &server, &events).continue_from(checkpoint);
        let trajectory = run(&Agents::builtin(), input).await.unwrap();
        assert_completed(&trajectory);
        let what = format!("event {cut}: {:?}", before.last().unwrap().kind);
        let pictures = |run: &Trajectory| {
            let pictures = lines(run);
            pictures
                .iter()
                .filter(|line| line.starts_with("user: <"))
                .count()
        };
        // A call that was on its way is not repeated: its picture is lost with its result.
        let on_its_way = matches!(&before.last().unwrap().kind, EventKind::ToolCall { call }
            if call.function.name != "echo");
        assert_eq!(pictures(&trajectory), 2 - usize::from(on_its_way), "{what}");
        let joined: Vec<Event> = before.iter().cloned().chain(events.all()).collect();
        assert_same(&rebuild(&joined).unwrap(), &trajectory, &what);
    }
}

/// The belt and the todos of a finished run are as the model knows them.
#[tokio::test]
async fn a_finished_run_goes_on_with_a_further_question() {
    for (agent, more) in [
        (
            "loop_agent",
            vec![calls(&[("counter", json!({}))]), text("three")],
        ),
        (
            "react_toolbelt_agent",
            vec![
                calls(&[("counter", json!({}))]),
                calls(&[(
                    "final_answer",
                    json!({"answer": "three", "status": "completed"}),
                )]),
            ],
        ),
    ] {
        let server = Server::start().await;
        let events = Events::default();
        let script = Script::new(turns(agent));
        let parent = run(&Agents::builtin(), input(agent, &script, &server, &events))
            .await
            .unwrap();
        let messages = parent.messages.len();
        let script = Script::new(more);
        let next = RunInput::new(script.model())
            .agent(agent, json!({}))
            .user("and one more")
            .tools(ToolSources::gateway(&server.url))
            .after(parent.clone());
        let trajectory = run(&Agents::builtin(), next).await.unwrap();
        assert_completed(&trajectory);
        assert_eq!(trajectory.final_answer.as_deref(), Some("three"));
        assert_eq!(trajectory.messages[..messages], parent.messages);
        assert_eq!(
            lines(&trajectory)[messages..messages + 3],
            ["user: and one more", "assistant:  [counter({})]", "tool: 3"]
        );
    }
}

/// Values of a custom run do not get lost on the way.
#[test]
fn a_parents_structured_output_is_there() {
    let parent: Trajectory = serde_json::from_value(json!({
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        "output": {"x": 1}, "status": "completed", "time_elapsed": 1.0
    }))
    .unwrap();
    let input = RunInput::new(Script::new([]).model())
        .user("c")
        .after(parent);
    let said: Vec<&Value> = input
        .initial_messages
        .iter()
        .map(|m| &m["content"])
        .collect();
    assert_eq!(said, ["a", "b", "c"]);
    assert_eq!(
        Value::from(input.parent_trajectory_output.unwrap()),
        json!({"x": 1})
    );
}
