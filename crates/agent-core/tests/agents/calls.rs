//! Calls and their answers: pitfalls A6, A7, A8 and A9, and tools of this process.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use agent_core::{
    Agents, FunctionTool, McpEndpoint, RunInput, ToolOutput, ToolSources, rebuild, run,
};
use llm_client::FinishReason;
use serde_json::json;

use crate::support::model::{Script, calls, raw_calls, text};
use crate::support::server::Server;
use crate::support::{
    Events, assert_completed, assert_every_call_answered, end, eventually, go, lines,
};

#[tokio::test]
async fn a6_equal_and_empty_ids_are_made_distinct() {
    let server = Server::start().await;
    for id in ["same", ""] {
        let script = Script::new([
            raw_calls(&[
                (id, "echo", r#"{"text":"1"}"#),
                (id, "echo", r#"{"text":"2"}"#),
                (id, "error", "{}"),
            ]),
            // The same id once more, in a later turn.
            raw_calls(&[(id, "echo", r#"{"text":"4"}"#)]),
            text("done"),
        ]);
        let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
        assert_completed(&trajectory);
        let answers: Vec<String> = lines(&trajectory)
            .into_iter()
            .filter(|line| line.starts_with("tool"))
            .collect();
        assert_eq!(
            answers,
            [
                "tool: 1",
                "tool: 2",
                r#"tool: {"code":7,"why":"no such row"}"#,
                "tool: 4"
            ]
        );
        assert_every_call_answered(&trajectory.messages);
    }
}

#[tokio::test]
async fn a7_broken_arguments_are_not_executed() {
    let server = Server::start().await;
    for reason in [FinishReason::Length, FinishReason::ToolCalls] {
        let broken = r#"{"text":"/a","content":"abc"#;
        let script = Script::new([
            raw_calls(&[("c1", "echo", broken), ("c2", "echo", "[1]")]).because(reason),
            raw_calls(&[("c3", "counter", ""), ("c4", "counter", "{}\"")]),
            text("done"),
        ]);
        let events = Events::default();
        let before = server.calls().len();
        let input = RunInput::new(script.model())
            .agent("loop_agent", json!({}))
            .user("go")
            .observer(Arc::new(events.clone()))
            .tools(ToolSources::gateway(&server.url));
        let trajectory = run(&Agents::builtin(), input).await.unwrap();
        assert_completed(&trajectory);
        // Only the two calls of `counter` arrived, with nothing as arguments.
        let arrived = server.calls().split_off(before);
        assert_eq!(
            arrived,
            [("counter".into(), json!({})), ("counter".into(), json!({}))]
        );
        let lines = lines(&trajectory);
        assert_eq!(
            lines[2],
            "tool: Not called: the arguments are not valid JSON (line 1, column 27: EOF while \
             parsing a string). Call `echo` again with a complete JSON object as arguments."
        );
        assert!(
            lines[3].contains("not a JSON object but an array"),
            "{lines:?}"
        );
        // The raw text stays in the record, the repair is told.
        assert_eq!(
            trajectory.messages[1].tool_calls[0].function.arguments,
            broken
        );
        assert_eq!(
            trajectory.messages[4].tool_calls[1].function.arguments,
            "{}\""
        );
        assert_eq!(
            events.warnings(),
            ["call of `counter`: stray characters behind the arguments were dropped"]
        );
        assert_eq!(events.of("tool_result")[0]["outcome"], "refused");
    }
}

#[tokio::test]
async fn a8_and_a9_no_result_is_blank_and_no_part_is_lost() {
    let server = Server::start().await;
    let script = Script::new([
        calls(&[
            ("empty", json!({})),
            ("blank", json!({})),
            ("everything", json!({})),
            ("error", json!({})),
            ("protocol_error", json!({})),
            ("no_such_tool", json!({})),
        ]),
        text("done"),
    ]);
    let events = Events::default();
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        script.asked()[1].lines()[2..],
        [
            "tool: The tool `empty` returned nothing.",
            "tool: The tool `blank` returned nothing.",
            "tool: hello\n[resource file:///notes.txt]\ninner text\n\
             [binary resource file:///a.pdf: application/pdf, 5 bytes; not shown]\n\
             [link to resource file:///b.csv: b.csv, text/csv]\n\
             [audio: audio/wav, 4 bytes; not shown]",
            r#"tool: {"code":7,"why":"no such row"}"#,
            "tool: The call of `protocol_error` failed: the row must be positive",
            "tool: The call of `no_such_tool` failed: unknown tool `no_such_tool`",
            "user: <1 images>",
        ]
    );
    let failed: Vec<bool> = trajectory.messages[2..8]
        .iter()
        .map(|message| message.extra.get("is_error") == Some(&json!(true)))
        .collect();
    assert_eq!(failed, [false, false, false, true, true, true]);
    let outcomes: Vec<String> = events
        .of("tool_result")
        .iter()
        .map(|event| event["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        outcomes,
        ["ok", "ok", "ok", "tool_error", "tool_error", "tool_error"]
    );
}

#[tokio::test]
async fn tools_that_only_read_run_side_by_side_and_answer_in_order() {
    let server = Server::start().await;
    let look = |ms: u64| ("look", json!({"ms": ms}));
    let script = Script::new([
        calls(&[
            look(1200),
            look(900),
            look(1000),
            ("counter", json!({})),
            look(10),
        ]),
        text("done"),
    ]);
    let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(server.state.most_running.load(SeqCst), 3);
    let ids: Vec<_> = trajectory.messages[2..7]
        .iter()
        .map(|message| message.tool_call_id.clone().unwrap())
        .collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5"]);
    // The writing tool came after the first three were done, and before the last.
    let names: Vec<String> = server.calls().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["look", "look", "look", "counter", "look"]);
}

#[tokio::test]
async fn finished_calls_are_kept_when_the_run_is_cut_off_beside_them() {
    let server = Server::start().await;
    let script = Script::new([calls(&[
        ("look", json!({"ms": 60_000})),
        ("look", json!({"ms": 1})),
    ])]);
    let trajectory = go("loop_agent", json!({"timeout": 3}), script.model(), &server).await;
    assert_eq!(end(&trajectory).2, "run_timeout");
    let lines = lines(&trajectory);
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[2].starts_with("tool: No result: the run ended"),
        "{lines:?}"
    );
    assert_eq!(lines[3], "tool: awake");
}

/// Pitfall A6: observers, and so the log, have the result of a call when it ends, not when its
/// slower neighbours do.
#[tokio::test]
async fn a_result_is_told_as_soon_as_its_call_ends() {
    let server = Server::start().await;
    let script = Script::new([calls(&[
        ("look", json!({"ms": 60_000})),
        ("look", json!({"ms": 1})),
    ])]);
    let events = Events::default();
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .observer(Arc::new(events.clone()))
        .tools(ToolSources::gateway(&server.url));
    let cancel = input.cancel.clone();
    let seen = events.clone();
    let watching = tokio::spawn(async move {
        eventually("a result", || !seen.of("tool_result").is_empty()).await;
        cancel.cancel();
        seen.all()
    });
    run(&Agents::builtin(), input).await.unwrap();
    // What a process that is killed at this moment leaves.
    let left = rebuild(&watching.await.unwrap()).unwrap();
    assert_every_call_answered(&left.messages);
    let lines = lines(&left);
    assert!(lines[2].contains("the process ended"), "{lines:?}");
    assert_eq!(lines[3], "tool: awake");
}

/// Three calls that each wait for the others: they end only when they run side by side.
#[tokio::test]
async fn calls_run_side_by_side_where_the_settings_ask_for_it() {
    for (settings, together) in [
        (json!({"concurrent_calls": "all"}), true),
        (json!({"concurrent_tools": ["meet", "nobody"]}), true),
        (json!({}), false),
        (json!({"concurrent_calls": "none"}), false),
    ] {
        for agent in ["loop_agent", "react_toolbelt_agent"] {
            let here = Arc::new(AtomicUsize::new(0));
            let meet = FunctionTool::new("meet", "Meets.", json!({}), move |_| {
                let here = Arc::clone(&here);
                async move {
                    here.fetch_add(1, SeqCst);
                    let mut met = false;
                    for _ in 0..50 {
                        met |= here.load(SeqCst) == 3;
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    here.fetch_sub(1, SeqCst);
                    Ok(ToolOutput::text(if met { "met" } else { "alone" }))
                }
            });
            let meeting = calls(&[
                ("meet", json!({})),
                ("meet", json!({})),
                ("meet", json!({})),
            ]);
            let turns = match agent {
                "loop_agent" => vec![meeting, text("done")],
                _ => vec![
                    calls(&[("toolbelt_add_tool", json!({"tool_name": "meet"}))]),
                    meeting,
                    calls(&[("final_answer", json!({"answer": "", "status": "completed"}))]),
                ],
            };
            let events = Events::default();
            let input = RunInput::new(Script::new(turns).model())
                .agent(agent, settings.clone())
                .user("go")
                .observer(Arc::new(events.clone()))
                .tools(ToolSources::new().with_tool(meet));
            let trajectory = run(&Agents::builtin(), input).await.unwrap();
            assert_completed(&trajectory);
            let lines = lines(&trajectory);
            let met = lines.iter().filter(|line| *line == "tool: met").count();
            assert_eq!(
                met,
                if together { 3 } else { 0 },
                "{agent}, {settings}: {lines:?}"
            );
            let unknown = settings["concurrent_tools"].is_array();
            let warned = "`concurrent_tools` names `nobody`, which is no tool here".to_owned();
            assert_eq!(events.warnings().contains(&warned), unknown);
        }
    }
}

/// `none` holds back also what says that it only reads.
#[tokio::test]
async fn none_side_by_side_is_none() {
    let server = Server::start().await;
    let look = || ("look", json!({"ms": 30}));
    let script = Script::new([calls(&[look(), look(), look()]), text("done")]);
    let settings = json!({"concurrent_calls": "none"});
    let trajectory = go("loop_agent", settings, script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(server.state.most_running.load(SeqCst), 1);
}

#[tokio::test]
async fn functions_of_this_process_are_tools_beside_a_server() {
    let server = Server::start().await;
    let add = FunctionTool::new(
        "add",
        "Adds two numbers.",
        json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}),
        |arguments| async move {
            match (arguments.get("a"), arguments.get("b")) {
                (Some(a), Some(b)) => {
                    let sum = a.as_i64().unwrap_or(0) + b.as_i64().unwrap_or(0);
                    Ok(ToolOutput::text(sum.to_string()))
                }
                _ => Err("`a` and `b` are needed".to_owned()),
            }
        },
    );
    let script = Script::new([
        calls(&[
            ("add", json!({"a": 2, "b": 40})),
            ("echo", json!({"text": "beside"})),
            ("add", json!({})),
        ]),
        text("done"),
    ]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(&server.url).with_tool(add));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[2..5],
        ["tool: 42", "tool: beside", "tool: `a` and `b` are needed"]
    );
}

#[tokio::test]
async fn one_name_in_two_places_is_refused() {
    let server = Server::start().await;
    let echo = FunctionTool::new("echo", "Another echo.", json!({}), |_| async {
        Ok(ToolOutput::text("me"))
    });
    let script = Script::new([]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(&server.url).with_tool(echo));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_eq!(end(&trajectory).2, "ambiguous_tool");
    let message = trajectory.error.unwrap().message;
    assert!(
        message.contains("`echo`") && message.contains(&server.url),
        "{message}"
    );
}

#[tokio::test]
async fn several_servers_and_functions_are_one_set_of_tools() {
    let (first, second) = (
        Server::start().await,
        Server::with_many(3, usize::MAX).await,
    );
    let double = FunctionTool::typed("double", "Doubles.", |n: Number| async move {
        Ok((2 * n.value).to_string())
    });
    let script = Script::new([
        calls(&[
            ("tool_001", json!({})),
            ("double", json!({"value": 21})),
            ("echo", json!({"text": "first"})),
            ("nowhere", json!({})),
        ]),
        text("done"),
    ]);
    let sources = ToolSources::gateway(&first.url)
        .with_endpoint(McpEndpoint::new(&second.url))
        .with_tool(double);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(sources);
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[2..6],
        [
            "tool: tool_001",
            "tool: 42",
            "tool: first",
            "tool: The call of `nowhere` failed: there is no tool `nowhere`"
        ]
    );
    assert_eq!(first.calls().len(), 1);
    assert_eq!(second.calls().len(), 1);
    let offered = script.asked()[0].tool_names().join(" ");
    assert!(
        offered.starts_with("echo ") && offered.ends_with(" tool_000 tool_001 tool_002 double"),
        "{offered}"
    );
}

#[tokio::test]
async fn one_name_at_two_servers_is_refused_with_both_named() {
    let (first, second) = (Server::start().await, Server::start().await);
    let input = RunInput::new(Script::new([]).model())
        .user("go")
        .tools(ToolSources::gateway(&first.url).with_endpoint(McpEndpoint::new(&second.url)));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    let (_, owner, kind) = end(&trajectory);
    assert_eq!((owner, kind), ("configuration", "ambiguous_tool"));
    assert_eq!(
        trajectory.error.unwrap().message,
        format!(
            "the tool `echo` is offered by {} and by {}",
            first.url, second.url
        )
    );
}

/// Arguments of `double`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    /// What to double.
    value: i64,
    /// How the result is written.
    #[serde(default)]
    style: Style,
}

#[derive(Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Style {
    #[default]
    Digits,
    Words,
}

#[tokio::test]
async fn typed_functions_tell_their_schema_and_refuse_what_does_not_fit() {
    let double = FunctionTool::typed("double", "Doubles.", |n: Number| async move {
        match n.style {
            Style::Digits => Ok((2 * n.value).to_string()),
            Style::Words => Err("no words yet".to_owned()),
        }
    });
    let script = Script::new([
        calls(&[
            ("double", json!({"value": "many"})),
            ("double", json!({})),
            ("double", json!({"value": 1, "style": "words"})),
        ]),
        text("done"),
    ]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::new().with_tool(double.read_only()));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[2..5],
        [
            "tool: the arguments do not fit the schema: value: invalid type: string \"many\", expected i64",
            "tool: the arguments do not fit the schema: missing field `value`",
            "tool: no words yet"
        ]
    );
    assert_eq!(
        script.asked()[0].tools[0].function.parameters,
        json!({
            "type": "object",
            "description": "Arguments of `double`.",
            "properties": {
                "value": {"type": "integer", "format": "int64", "description": "What to double."},
                "style": {"type": "string", "enum": ["digits", "words"],
                          "description": "How the result is written."}
            },
            "required": ["value"],
            "additionalProperties": false
        })
    );
}
