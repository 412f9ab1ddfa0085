//! The toolbelt agent: scenarios 8 to 12 of `spec/agents.md` §21.

use std::sync::Arc;

use agent_core::{Agents, RunInput, ToolSources, run};
use formats::chat::Message;
use formats::trajectory::AgentStatus;
use llm_client::ChatErrorKind;
use serde_json::{Value, json};

use crate::support::model::{Say, Script, calls, raw_calls, text};
use crate::support::server::Server;
use crate::support::{
    Events, assert_completed, assert_every_call_answered, end, go, lines, user, why,
};

const AGENT: &str = "react_toolbelt_agent";

fn add(name: &str) -> (&'static str, Value) {
    ("toolbelt_add_tool", json!({"tool_name": name}))
}

fn answer(text: &str) -> (&'static str, Value) {
    (
        "final_answer",
        json!({"answer": text, "status": "completed"}),
    )
}

fn todo(status: &str) -> (&'static str, Value) {
    (
        "todo_write",
        json!({"todos": [{"id": "1", "content": "find it", "status": status}], "merge": true}),
    )
}

#[tokio::test]
async fn scenario_8_the_belt_decides_what_can_be_called() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[("echo", json!({"text": "too early"}))]),
        // Adding takes effect for a call of the same turn, even before it.
        calls(&[
            ("echo", json!({"text": "now"})),
            add("echo"),
            ("toolbelt_list_tools", json!({})),
        ]),
        calls(&[
            ("toolbelt_inspect_tool", json!({"tool_name": "echo"})),
            add("nothing"),
            ("toolbelt_remove_tool", json!({"tool_name": "echo"})),
        ]),
        calls(&[("echo", json!({"text": "too late"}))]),
        calls(&[answer("bye")]),
    ]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert!(
        lines[2].starts_with("tool: Not called: `echo` is not in your toolbelt"),
        "{lines:?}"
    );
    assert_eq!(lines[4], "tool: now");
    assert_eq!(lines[5], r#"tool: {"success":true,"toolbelt_size":1}"#);
    let names: Vec<String> = serde_json::from_str(lines[6].trim_start_matches("tool: ")).unwrap();
    assert!(
        names.is_sorted() && names.len() == 10 && !names.contains(&"echo".into()),
        "{names:?}"
    );
    assert_eq!(
        lines[8],
        r#"tool: {"name":"echo","description":"Says what it is told.","parameters":{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}}"#
    );
    assert_eq!(lines[9], r#"tool: {"error":"there is no tool `nothing`"}"#);
    assert_eq!(lines[10], r#"tool: {"success":true,"toolbelt_size":0}"#);
    assert!(lines[12].starts_with("tool: Not called"), "{lines:?}");
    assert_eq!(server.calls(), [("echo".into(), json!({"text": "now"}))]);

    let own = [
        "toolbelt_list_tools",
        "toolbelt_inspect_tool",
        "toolbelt_add_tool",
        "toolbelt_remove_tool",
        "todo_write",
    ];
    let asked = script.asked();
    assert_eq!(
        asked[0].tool_names(),
        [&own[..], &["final_answer"]].concat()
    );
    assert_eq!(
        asked[2].tool_names(),
        [&own[..], &["echo", "final_answer"]].concat()
    );
}

#[tokio::test]
async fn scenario_8_the_eighty_first_tool_is_refused() {
    let server = Server::with_many(81, 100).await;
    let names: Vec<String> = (0..81).map(|number| format!("tool_{number:03}")).collect();
    let adds: Vec<_> = names.iter().map(|name| add(name)).collect();
    let script = Script::new([calls(&adds), calls(&[answer("full")])]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines[81], r#"tool: {"success":true,"toolbelt_size":80}"#);
    assert!(
        lines[82].starts_with(r#"tool: {"error":"the toolbelt is full"#),
        "{}",
        lines[82]
    );
    assert_eq!(script.asked()[1].tools.len(), 86);
}

#[tokio::test]
async fn scenario_9_an_open_todo_refuses_the_answer() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[todo("in_progress")]),
        calls(&[answer("too early")]),
        calls(&[todo("completed")]),
        raw_calls(&[(
            "c1",
            "final_answer",
            r#"{"answer":"Here it is","status":"blocked"}"#,
        )]),
    ]);
    let events = Events::default();
    let input = RunInput::new(script.model())
        .agent(AGENT, json!({}))
        .user("go")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert!(
        lines[4].starts_with("tool: Refused: 1 of your todos is still open: `1` (in_progress)")
    );
    let last = trajectory.messages.last().unwrap();
    assert_eq!(
        serde_json::to_value(last).unwrap(),
        json!({"role": "tool", "content": "Here it is", "tool_call_id": "call_4",
               "name": "final_answer"})
    );
    assert_eq!(trajectory.final_answer.as_deref(), Some("Here it is"));
    assert_eq!(
        serde_json::to_value(&trajectory.output).unwrap(),
        json!({"final_answer_status": "blocked"})
    );
    let told = events.of("final_answer");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["answer_status"], "blocked");
    // The refused answer counts as output of a tool, the accepted one does not.
    let log = trajectory.usage.unwrap()["call_log"].clone();
    assert!(
        log[1]["tool_call_output_tokens"].as_u64().unwrap() > 10,
        "{log}"
    );
    assert_eq!(log[3]["tool_call_output_tokens"], 0);
    assert_eq!(log[3]["final_answer_tokens"], 3);
}

#[tokio::test]
async fn a6_calls_beside_a_final_answer_are_answered_once_and_in_order() {
    let server = Server::start().await;
    let refused = |id: &'static str| {
        Script::new([
            calls(&[todo("pending"), add("echo")]),
            raw_calls(&[
                (
                    "a",
                    "final_answer",
                    r#"{"answer":"x","status":"completed"}"#,
                ),
                (id, "echo", r#"{"text":"1"}"#),
                (id, "echo", r#"{"text":"2"}"#),
            ]),
            calls(&[todo("completed"), answer("y")]),
        ])
    };
    for id in ["same", ""] {
        let script = refused(id);
        let trajectory = go(AGENT, json!({}), script.model(), &server).await;
        assert_completed(&trajectory);
        let next = script.asked()[2].lines();
        assert!(next[5].starts_with("tool: Refused"), "{next:?}");
        assert_eq!(
            next[6],
            "tool: Skipped: it came behind `final_answer` in the same turn."
        );
        assert_eq!(next[7], next[6]);
        assert_every_call_answered(&trajectory.messages);
    }
    assert!(server.calls().is_empty());
}

#[tokio::test]
async fn calls_before_an_accepted_answer_are_made_and_the_answer_stays_last() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[add("echo"), add("image")]),
        calls(&[
            ("echo", json!({"text": "before"})),
            ("image", json!({})),
            answer("the end"),
            ("echo", json!({"text": "behind"})),
        ]),
    ]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[5..],
        [
            "tool: before",
            "tool: The tool `image` returned one image, which follows.",
            "tool: Skipped: it came behind `final_answer` in the same turn.",
            "tool: the end"
        ]
    );
    assert_eq!(trajectory.answer(), "the end");
    assert_every_call_answered(&trajectory.messages);
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_asked_for_again() {
    let server = Server::start().await;
    let script = Script::new([
        raw_calls(&[("c1", "final_answer", r#"{"answer":"The gorilla is at /an"#)])
            .because(llm_client::FinishReason::Length),
        calls(&[answer("whole")]),
    ]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(trajectory.final_answer.as_deref(), Some("whole"));
    assert!(lines(&trajectory)[2].starts_with("tool: Refused: the call was cut off"));
}

#[tokio::test]
async fn scenario_10_a_reply_without_calls_is_nudged() {
    let server = Server::start().await;
    let script = Script::new([text("I am done"), calls(&[answer("42")])]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines[1], "assistant: I am done");
    assert!(
        lines[2].starts_with("user: You called no tool"),
        "{lines:?}"
    );
    let talk: Vec<Say> = (0..5).map(|_| text("still thinking")).collect();
    let trajectory = go(
        AGENT,
        json!({"max_steps": 5}),
        Script::new(talk).model(),
        &server,
    )
    .await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "step_limit")
    );
}

#[tokio::test]
async fn scenario_11_long_results_are_cut() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[add("long")]),
        calls(&[
            ("long", json!({"length": 96_000})),
            ("long", json!({"length": 120_000})),
            ("long", json!({"length": 250_000})),
        ]),
        calls(&[answer("seen")]),
    ]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    let said: Vec<String> = trajectory.messages[4..7]
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(said[0].len(), 96_000);
    let whole = "abcdefghij".repeat(12_000);
    assert!(said[1].starts_with(&whole[..20_000]) && said[1].ends_with(&whole[..5_000]));
    assert!(said[1].contains("95,000 characters left out") && said[1].len() < 25_200);
    assert!(said[2].contains("250,000 characters") && said[2].len() < 300);
}

/// A conversation that fills a small context: every step reads 2,000 characters.
fn long_work(steps: usize) -> Vec<Say> {
    let mut turns = vec![calls(&[add("long")]).used(100, 10)];
    for step in 0..steps {
        let used = 100 + 550 * (step as u64 + 1);
        turns.push(calls(&[("long", json!({"length": 2000}))]).used(used, 10));
    }
    turns
}

fn is_summary_request(asked: &crate::support::model::Asked) -> bool {
    asked.tools.is_empty() && asked.messages.len() == 2
}

#[tokio::test]
async fn scenario_12_a_full_context_is_summarised_and_the_record_stays_whole() {
    let server = Server::start().await;
    let mut turns = long_work(6);
    turns.push(text("They read a lot. The key is 7.").used(3000, 40));
    turns.push(calls(&[answer("done")]).used(900, 10));
    let script = Script::new(turns);
    let events = Events::default();
    let mut input = RunInput::new(script.model())
        .agent(AGENT, json!({"context_tokens": 5000}))
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let task = json!({"role": "user", "content": [
        {"type": "text", "text": "Read everything."}, {"type": "text", "text": "Twice."}]});
    input.initial_messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        task.clone(),
    ];
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);

    let asked = script.asked();
    let summaries: Vec<_> = asked
        .iter()
        .filter(|asked| is_summary_request(asked))
        .collect();
    assert_eq!(summaries.len(), 1);
    let request = summaries[0].messages[1].text().into_owned();
    // The results of tools are in it.
    assert!(request.contains("**TOOL long**\nabcdefghij"), "{request}");
    assert!(request.contains(r#"calls long({"length":2000})"#));

    let last = asked.last().unwrap();
    assert_eq!(last.messages.len(), 3);
    assert_eq!(last.messages[0].text(), "Be brief.");
    assert_eq!(serde_json::to_value(&last.messages[1]).unwrap(), task);
    let state = last.messages[2].text().into_owned();
    assert!(
        state.contains("The key is 7.") && state.contains("**TOOL long**\nabcdefghij"),
        "{state}"
    );

    // Every original message once, in order: system, task, 7 turns with a result each, the answer.
    assert_eq!(trajectory.messages.len(), 2 + 2 * 7 + 2);
    assert_every_call_answered(&trajectory.messages[1..]);
    assert!(
        !lines(&trajectory)
            .iter()
            .any(|line| line.contains("Summary of"))
    );
    let usage = trajectory.usage.as_ref().unwrap();
    assert_eq!(usage["compaction_count"], 1);
    assert_eq!(usage["compaction_prompt_tokens"], 3000);
    assert_eq!(usage["compaction_completion_tokens"], 40);
    let log = usage["call_log"].as_array().unwrap();
    assert_eq!(log.len(), 8);
    assert_eq!(log[7]["compacted"], true);
    assert_eq!(log[7]["compactions_before"], 1);
    assert_eq!(events.of("compacted").len(), 1);

    // The same record comes of the events.
    let rebuilt = agent_core::rebuild(&events.all()).unwrap();
    assert_eq!(rebuilt.messages, trajectory.messages);
    assert_eq!(rebuilt.usage, trajectory.usage);
}

#[tokio::test]
async fn a_second_summary_builds_on_the_first() {
    let server = Server::start().await;
    let mut turns = long_work(6);
    turns.push(text("FIRST SUMMARY").used(3000, 40));
    turns.extend(long_work(6).into_iter().skip(1));
    turns.push(text("SECOND SUMMARY").used(3000, 40));
    turns.push(calls(&[answer("done")]));
    let script = Script::new(turns);
    let settings = json!({"context_tokens": 5000});
    let trajectory = go(AGENT, settings, script.model(), &server).await;
    assert_completed(&trajectory);
    let asked = script.asked();
    let requests: Vec<String> = asked
        .iter()
        .filter(|asked| is_summary_request(asked))
        .map(|asked| asked.messages[1].text().into_owned())
        .collect();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("FIRST SUMMARY"));
    let state = asked.last().unwrap().messages[1].text().into_owned();
    assert!(state.contains("SECOND SUMMARY") && !state.contains("FIRST SUMMARY"));
    assert_eq!(trajectory.messages.len(), 1 + 2 * 13 + 2);
    assert_eq!(trajectory.usage.unwrap()["compaction_count"], 2);
}

#[tokio::test]
async fn a_failed_summary_changes_nothing_and_is_tried_again() {
    let server = Server::start().await;
    let mut turns = long_work(6);
    turns.push(Say::Fail(ChatErrorKind::Server, "oops"));
    turns.push(calls(&[("long", json!({"length": 10}))]).used(4000, 10));
    turns.push(text("The summary.").used(3000, 40));
    turns.push(calls(&[answer("done")]));
    let script = Script::new(turns);
    let settings = json!({"context_tokens": 5000});
    let trajectory = go(AGENT, settings, script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(trajectory.messages.len(), 1 + 2 * 8 + 2);
    let usage = trajectory.usage.unwrap();
    assert_eq!(usage["compaction_count"], 1);
    assert_eq!(usage["compaction_calls"], 2);
}

#[tokio::test]
async fn an_overflow_is_answered_by_a_summary_that_shrinks_or_by_the_end() {
    let server = Server::start().await;
    let overflow = || Say::Fail(ChatErrorKind::ContextWindow, "too long");
    let read = |length: u64| calls(&[("long", json!({"length": length}))]);
    // Few but large messages; the first request for a summary does not fit either.
    let script = Script::new([
        calls(&[add("long")]),
        read(20_000),
        read(20_000),
        overflow(),
        overflow(),
        text("The summary."),
        calls(&[answer("done")]),
    ]);
    let trajectory = go(
        AGENT,
        json!({"context_tokens": 50_000}),
        script.model(),
        &server,
    )
    .await;
    assert_completed(&trajectory);
    assert_eq!(trajectory.usage.unwrap()["compaction_count"], 1);
    let requests: Vec<usize> = script
        .asked()
        .iter()
        .filter(|asked| is_summary_request(asked))
        .map(|asked| asked.messages[1].text().len())
        .collect();
    assert_eq!(requests.len(), 2);

    // Nothing to summarise: the same request would fail for ever.
    let script = Script::new([overflow(), text("never asked")]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_eq!(
        end(&trajectory),
        (AgentStatus::Failed, "model", "context_window")
    );
    assert_eq!(script.left(), 1, "{}", why(&trajectory));
}

#[tokio::test]
async fn a_huge_history_cannot_overflow_its_own_summary() {
    let server = Server::start().await;
    let script = Script::new([text(&"s".repeat(100_000)), calls(&[answer("done")])]);
    let mut input = RunInput::new(script.model())
        .agent(AGENT, json!({"context_tokens": 8000}))
        .tools(ToolSources::gateway(&server.url));
    input.initial_messages = vec![user("the task")];
    for number in 0..300 {
        input
            .initial_messages
            .push(user(&format!("{number} {}", "x".repeat(5000))));
        let reply = Message::assistant("y".repeat(5000));
        input
            .initial_messages
            .push(serde_json::to_value(reply).unwrap());
    }
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    let asked = script.asked();
    let tokens = |index: usize| llm_client::tokens::of_messages(&asked[index].messages);
    assert!(tokens(0) < 5000, "{}", tokens(0));
    assert!(tokens(1) < 3000, "{}", tokens(1));
    assert_eq!(trajectory.messages.len(), 601 + 2);
}

#[tokio::test]
async fn meta_tools_answer_nonsense_with_an_error() {
    let server = Server::start().await;
    let script = Script::new([
        raw_calls(&[
            ("a", "toolbelt_list_tools", ""),
            ("b", "toolbelt_add_tool", "{\"tool_name\": "),
            ("c", "toolbelt_inspect_tool", "[]"),
            ("d", "todo_write", r#"{"todos": 7}"#),
        ]),
        calls(&[answer("ok")]),
    ]);
    let trajectory = go(AGENT, json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert!(lines[2].starts_with("tool: [\""), "{lines:?}");
    for line in &lines[3..6] {
        assert!(line.starts_with(r#"tool: {"error":""#), "{line}");
    }
}
