//! The world reacts while the agent works (`spec/environment.md` §17).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Env, members, stub_server, tar_gz, until};

fn state(env: &Env) -> PathBuf {
    env.apps_data().join(".coordinator")
}

async fn apply(env: &Env, coordinator: Value) -> (u16, Value) {
    let body = json!({"mcpServers": {"s": stub_server()}, "coordinator_config": coordinator});
    let response = env.post("/apps", body.to_string()).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

async fn applied(env: &Env, coordinator: Value) {
    let (status, answer) = apply(env, coordinator).await;
    assert_eq!(status, 200, "{answer}");
}

/// Calls a tool of the stub as the agent would.
async fn call(env: &Env, session: &str, tool: &str, arguments: Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    env.mcp("/mcp/", Some(session), body).await.1
}

/// The record, a line each.
fn calls(env: &Env) -> Vec<Value> {
    let path = state(env).join("checkpoint_observations/mcp_calls.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn occurrence(env: &Env, event: &str) -> Option<Value> {
    let path = state(env).join(format!("event_occurrences/{event}.json"));
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

async fn ended(env: &Env, event: &str) -> Value {
    until(event, || {
        occurrence(env, event).is_some_and(|one| one["status"] != "running")
    })
    .await;
    occurrence(env, event).unwrap()
}

fn event(id: &str, trigger: Value, actions: Value) -> Value {
    json!({"event_id": id, "trigger": trigger, "actions": actions})
}

fn echo(id: &str) -> Value {
    json!({"type": "call_mcp_tool", "action_id": id, "actor_id": "coordinator", "tool_name": "echo", "arguments": {"by": id}})
}

fn seen(tool: &str) -> Value {
    json!({"type": "tool_call_seen", "selector": {"tool_name": tool, "actor_id": "target_agent"}})
}

#[tokio::test]
async fn every_call_is_recorded_before_its_answer() {
    let env = Env::start().await;
    applied(
        &env,
        json!({"enabled": true, "run_id": "r", "agents": {"ann": {"env": {"KEY": "very-secret"}}}}),
    )
    .await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({"a": [1]})).await;
    let [first] = &calls(&env)[..] else {
        panic!("one line: {:?}", calls(&env));
    };
    let files = env.files().display().to_string();
    assert_eq!(first["sequence"], 1);
    assert_eq!(first["actor_id"], "target_agent");
    assert_eq!(first["tool_name"], "echo");
    assert_eq!(first["arguments"], json!({"a": [1]}));
    assert_eq!(
        first["result_summary"],
        json!({"content_items": 1, "text": files})
    );
    assert_eq!(first["error"], Value::Null);
    assert!(first["timestamp"].as_str().unwrap().ends_with('Z'));
    call(&env, &session, "unknown", json!({})).await;
    let second = &calls(&env)[1];
    assert_eq!(
        (&second["sequence"], &second["result_summary"]),
        (&json!(2), &Value::Null)
    );
    assert_eq!(second["error"], "Unknown tool: 'unknown'");

    // Only the environment may look in, and no key is kept.
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    for folder in ["", "config", "checkpoint_observations", "event_occurrences"] {
        assert_eq!(mode(&state(&env).join(folder)), 0o700, "{folder}");
    }
    for file in [
        "config/config.json",
        "checkpoint_observations/mcp_calls.jsonl",
        "checkpoint_observations/physical_time.json",
    ] {
        assert_eq!(mode(&state(&env).join(file)), 0o600, "{file}");
    }
    let config = std::fs::read_to_string(state(&env).join("config/config.json")).unwrap();
    assert!(
        config.contains("\"run_id\"") && !config.contains("very-secret"),
        "{config}"
    );
}

#[tokio::test]
async fn nothing_is_kept_where_it_is_not_enabled() {
    let env = Env::start().await;
    applied(&env, Value::Null).await;
    applied(
        &env,
        json!({"enabled": false, "events": [event("e", seen("echo"), json!([echo("a")]))]}),
    )
    .await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({})).await;
    assert!(!state(&env).exists());
    assert!(members(&env.snapshot().await).is_empty());
}

#[tokio::test]
async fn an_event_happens_once_and_its_actions_in_order() {
    let env = Env::start().await;
    let actions = json!([
        echo("one"),
        {"type": "call_mcp_tool", "action_id": "two", "actor_id": "ann", "tool_name": "nope", "on_failure": "continue"},
        {"type": "invoke_agent", "action_id": "three", "actor_id": "ann", "on_failure": "continue"},
        echo("four"),
    ]);
    let abort = json!([
        {"type": "call_mcp_tool", "action_id": "no", "actor_id": "ann", "tool_name": "nope"},
        echo("never"),
    ]);
    applied(&env, json!({"enabled": true, "run_id": "r", "checkpoints": [{"type": "tool_call"}], "events": [
        event("first", json!({"type": "tool_call_count", "selector": {"tool_name": "echo", "actor_id": "target_agent"}, "count": 2}), actions),
        event("chained", json!({"type": "tool_call_seen", "selector": {"actor_id": "coordinator"}}), abort),
        event("unknown", json!({"type": "phase_of_the_moon"}), json!([echo("never")])),
        {"event_id": "off", "enabled": false, "trigger": seen("echo"), "actions": [echo("never")]},
    ]})).await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({"n": 1})).await;
    assert!(occurrence(&env, "first").is_none());
    call(&env, &session, "echo", json!({"n": 2})).await;
    let first = ended(&env, "first").await;
    assert_eq!(
        (&first["status"], &first["run_id"]),
        (&json!("completed"), &json!("r"))
    );
    assert_eq!(
        first["checkpoint"],
        json!({"type": "tool_call", "sequence": 2})
    );
    assert_eq!(
        first["trigger"],
        json!({"type": "tool_call_count", "count": 2})
    );
    let dispatch = |occurrence: &Value| -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        occurrence["dispatches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (word(&one["action_id"]), word(&one["status"])))
            .collect()
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(one, other)| ((*one).to_owned(), (*other).to_owned()))
            .collect()
    };
    assert_eq!(
        dispatch(&first),
        pairs(&[
            ("one", "completed"),
            ("two", "failed"),
            ("three", "failed"),
            ("four", "completed")
        ])
    );
    assert_eq!(first["dispatches"][0]["output"]["content_items"], 1);
    assert_eq!(first["dispatches"][1]["error"], "Unknown tool: 'nope'");
    assert!(
        first["dispatches"][2]["error"]
            .as_str()
            .unwrap()
            .contains("`ann`")
    );
    let metrics = env.get("/metrics").await.text().await.unwrap();
    for line in [
        r#"archipelago_actions_total{type="call_mcp_tool",status="completed"} 2"#,
        r#"archipelago_actions_total{type="invoke_agent",status="failed"} 1"#,
        r#"archipelago_action_seconds_count{type="invoke_agent"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    let chained = ended(&env, "chained").await;
    assert_eq!(chained["status"], "failed");
    assert_eq!(
        dispatch(&chained),
        pairs(&[("no", "failed"), ("never", "skipped")])
    );

    call(&env, &session, "echo", json!({"n": 3})).await;
    let by_actor = |actor: &str| {
        calls(&env)
            .iter()
            .filter(|call| call["actor_id"] == actor)
            .count()
    };
    assert_eq!(
        (
            by_actor("target_agent"),
            by_actor("coordinator"),
            by_actor("ann")
        ),
        (3, 2, 2)
    );
    for never in ["unknown", "off"] {
        assert!(occurrence(&env, never).is_none(), "{never}");
    }
}

#[tokio::test]
async fn time_is_that_of_the_run() {
    let env = Env::start().await;
    let config = |run: &str, after: f64| {
        json!({"enabled": true, "run_id": run, "checkpoints": [{"type": "periodic", "interval_seconds": 0.02}], "events": [
            event("late", json!({"type": "physical_time_elapsed", "after_seconds": after}), json!([echo("a")])),
        ]})
    };
    applied(&env, config("r", 0.1)).await;
    let late = ended(&env, "late").await;
    assert_eq!(
        (&late["status"], &late["checkpoint"]["type"]),
        (&json!("completed"), &json!("periodic"))
    );
    assert!(late["trigger"]["elapsed_seconds"].as_f64().unwrap() >= 0.1);
    let began = || {
        let text =
            std::fs::read(state(&env).join("checkpoint_observations/physical_time.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["trajectory_started_at"].clone()
    };
    let first = began();

    // The same run goes on: its clock and its events stay, also in another process.
    let archive = env.snapshot().await;
    let files: Vec<(String, Vec<u8>)> = members(&archive)
        .into_iter()
        .map(|(name, content)| {
            (
                name.strip_prefix(".apps_data/").unwrap().to_owned(),
                content,
            )
        })
        .collect();
    let files: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_slice()))
        .collect();
    let other = Env::start().await;
    let (status, _) = other
        .populate("?subsystem=.apps_data", tar_gz(&files))
        .await;
    assert_eq!(status, 200);
    applied(&other, config("r", 0.1)).await;
    let session = other.mcp_session("/mcp/").await;
    call(&other, &session, "echo", json!({})).await;
    // The stub's answer to the agent has number 2: the action of the first process was 1.
    assert_eq!(calls(&other).last().unwrap()["sequence"], 2);
    assert_eq!(occurrence(&other, "late").unwrap(), late);
    let mode = state(&other)
        .join("event_occurrences/late.json")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        mode & 0o777,
        0o600,
        "what came with the snapshot is closed too"
    );

    // Another run begins anew.
    applied(&other, config("r2", 0.0)).await;
    until("the event of the second run", || {
        occurrence(&other, "late").is_some_and(|one| one["run_id"] == "r2")
    })
    .await;
    let text =
        std::fs::read(state(&other).join("checkpoint_observations/physical_time.json")).unwrap();
    let second: Value = serde_json::from_slice(&text).unwrap();
    assert_ne!(second["trajectory_started_at"], first);
}

#[tokio::test]
async fn a_snapshot_waits_for_actions_and_looks_at_the_triggers_once_more() {
    let env = Env::start().await;
    // No checkpoint of its own: only the snapshot looks.
    applied(
        &env,
        json!({"enabled": true, "run_id": "r", "checkpoints": [], "events": [
            event("last", seen("echo"), json!([echo("a"), echo("b")])),
        ]}),
    )
    .await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({})).await;
    assert!(occurrence(&env, "last").is_none());
    let world = members(&env.snapshot().await);
    let last: Value =
        serde_json::from_slice(&world[".apps_data/.coordinator/event_occurrences/last.json"])
            .unwrap();
    assert_eq!(
        (&last["status"], &last["checkpoint"]["type"]),
        (&json!("completed"), &json!("drain"))
    );
    assert_eq!(last["dispatches"].as_array().unwrap().len(), 2);
    let calls = String::from_utf8(
        world[".apps_data/.coordinator/checkpoint_observations/mcp_calls.jsonl"].clone(),
    )
    .unwrap();
    assert_eq!(calls.lines().count(), 3);
}

#[tokio::test]
async fn events_happen_side_by_side_and_layers_wait_for_them_too() {
    let machine = tempfile::tempdir().unwrap();
    let env = Env::start_with(|command| {
        command
            .env("ROOTFS_ROOT", machine.path())
            .env("ROOTFS_MARKER", machine.path().join("etc/marker"));
    })
    .await;
    let hang = json!([{"type": "call_mcp_tool", "action_id": "h", "actor_id": "coordinator", "tool_name": "hang"}]);
    applied(
        &env,
        json!({"enabled": true, "run_id": "r", "checkpoints": [{"type": "tool_call"}], "events": [
            event("hangs", seen("echo"), hang),
            event("goes-on", json!({"type": "physical_time_elapsed", "after_seconds": 0}), json!([])),
        ]}),
    )
    .await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({})).await;
    assert_eq!(ended(&env, "goes-on").await["status"], "completed");
    assert_eq!(occurrence(&env, "hangs").unwrap()["status"], "running");

    applied(
        &env,
        json!({"enabled": true, "run_id": "r2", "checkpoints": [], "events": [
            event("last", seen("echo"), json!([echo("a")])),
        ]}),
    )
    .await;
    assert_eq!(env.post("/data/rootfs/baseline", "").await.status(), 200);
    call(&env, &session, "echo", json!({})).await;
    assert!(occurrence(&env, "last").is_none());
    let layer = env.post("/data/rootfs/layer", "").await;
    assert_eq!(layer.status(), 200);
    assert_eq!(occurrence(&env, "last").unwrap()["status"], "completed");
    // The marker is no part of the machine, wherever it lies.
    let names: Vec<String> = members(&layer.bytes().await.unwrap()).into_keys().collect();
    assert!(!names.contains(&"etc/marker".to_owned()), "{names:?}");
}

#[tokio::test]
async fn its_directory_may_lie_elsewhere_and_calls_are_logged_with_who_says_to_have_made_them() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("state");
    let env = Env::start_with(|command| {
        command.env("COORDINATOR_ROOT", &root);
    })
    .await;
    applied(&env, json!({"enabled": true, "run_id": "r"})).await;
    let session = env.mcp_session("/mcp/").await;
    let request = env
        .http
        .post(env.at("/mcp/"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", &session)
        .header("x-agent-id", "agent-seven")
        .header("x-orchestrator-version", "1.2")
        .bearer_auth("coordinator")
        .json(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}));
    assert_eq!(request.send().await.unwrap().status(), 200);
    let text = std::fs::read_to_string(root.join("checkpoint_observations/mcp_calls.jsonl"));
    let line: Value = serde_json::from_str(text.unwrap().trim()).unwrap();
    assert_eq!(line["actor_id"], "target_agent", "no claim is believed");
    assert!(!line.to_string().contains("agent-seven"));
    until("the call is logged", || {
        env.log().lines().any(|line| {
            line.contains("a tool call is recorded")
                && line.contains("agent-seven")
                && line.contains("1.2")
        })
    })
    .await;
    assert!(!state(&env).exists());
    assert!(members(&env.snapshot().await).is_empty());
}

#[tokio::test]
async fn an_end_does_not_wait_for_actions_that_hang() {
    let mut env = Env::start().await;
    let hang = json!([{"type": "call_mcp_tool", "action_id": "h", "actor_id": "coordinator", "tool_name": "hang"}, echo("never")]);
    let config =
        json!({"enabled": true, "run_id": "r", "events": [event("hangs", seen("echo"), hang)]});
    applied(&env, config.clone()).await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({})).await;
    until("the event happens", || occurrence(&env, "hangs").is_some()).await;
    env.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(env.ended().await, Some(0));
    let hangs = occurrence(&env, "hangs").unwrap();
    assert_eq!(hangs["status"], "failed");
    assert_eq!(hangs["dispatches"][0]["error"], "the action was cancelled");
    assert_eq!(hangs["dispatches"][1]["status"], "skipped");
}

#[tokio::test]
async fn what_is_wrong_with_a_configuration_is_told_before_anything_changes() {
    let env = Env::start().await;
    let with = |event: Value| json!({"enabled": true, "events": [event]});
    let exists = json!({"path": [], "operator": "exists"});
    for (wrong, word) in [
        (json!({"enabled": "maybe"}), "enabled"),
        (json!([]), "coordinator_config"),
        (
            json!({"checkpoints": [{"type": "periodic", "interval_seconds": 0}]}),
            "interval",
        ),
        (json!({"checkpoints": [{"type": "often"}]}), "often"),
        (with(event("../up", seen("x"), json!([]))), "../up"),
        (with(json!({"event_id": "e"})), "trigger"),
        (
            with(event(
                "e",
                json!({"type": "and", "triggers": []}),
                json!([]),
            )),
            "triggers",
        ),
        (
            with(event(
                "e",
                json!({"type": "tool_call_count", "selector": {}, "count": 0}),
                json!([]),
            )),
            "nonzero",
        ),
        (
            with(event(
                "e",
                json!({"type": "tool_call_seen", "selector": {"argument_conditions": [exists]}}),
                json!([]),
            )),
            "path",
        ),
        (
            with(event(
                "e",
                seen("x"),
                json!([{"type": "call_mcp_tool", "action_id": "a"}]),
            )),
            "actor_id",
        ),
        (
            json!({"events": [event("e", seen("x"), json!([])), event("e", seen("y"), json!([]))]}),
            "twice",
        ),
    ] {
        let (status, answer) = apply(&env, wrong.clone()).await;
        assert_eq!(status, 422, "{wrong} {answer}");
        assert_eq!(
            answer["detail"][0]["loc"][1], "coordinator_config",
            "{wrong} {answer}"
        );
        assert!(answer.to_string().contains(word), "{wrong} {answer}");
    }
    assert_eq!(
        env.get("/apps").await.json::<Value>().await.unwrap()["configuration"],
        Value::Null
    );
}

#[tokio::test]
async fn a_directory_that_is_a_link_is_refused_and_a_second_try_works() {
    let env = Env::start().await;
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), state(&env)).unwrap();
    let config = json!({"enabled": true, "run_id": "r"});
    let (status, answer) = apply(&env, config.clone()).await;
    assert_eq!(status, 500);
    assert!(
        answer["detail"].as_str().unwrap().contains(".coordinator"),
        "{answer}"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    // The servers serve already.
    let session = env.mcp_session("/mcp/").await;
    std::fs::remove_file(state(&env)).unwrap();
    let (status, answer) = apply(&env, config.clone()).await;
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer["duration_ms"].as_f64().unwrap() > 0.0,
        "it has started"
    );
    call(&env, &session, "echo", json!({})).await;
    assert_eq!(calls(&env).len(), 1);
    // The same again restarts nothing.
    let (_, answer) = apply(&env, config).await;
    assert_eq!(answer["duration_ms"], 0.0);
    assert!(env.log().contains("the coordinator does not start"));
    call(&env, &session, "echo", json!({})).await;
    assert_eq!(calls(&env)[1]["sequence"], 2);
}

#[tokio::test]
async fn the_record_goes_on_when_a_snapshot_is_put_over_it() {
    let env = Env::start().await;
    applied(&env, json!({"enabled": true, "run_id": "r"})).await;
    let session = env.mcp_session("/mcp/").await;
    call(&env, &session, "echo", json!({"n": 1})).await;
    let line = br#"{"sequence":40,"actor_id":"a","tool_name":"t","arguments":null,"result_summary":null,"error":"e","timestamp":"2026-01-01T00:00:00Z"}
no line
"#;
    let record = "checkpoint_observations/mcp_calls.jsonl";
    let archive = tar_gz(&[(&format!(".coordinator/{record}"), line)]);
    let (status, answer) = env.populate("?subsystem=.apps_data", archive).await;
    assert_eq!(status, 200, "{answer}");
    call(&env, &session, "echo", json!({"n": 2})).await;
    let text = std::fs::read_to_string(state(&env).join(record)).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.ends_with('\n') && text.contains(r#"{"n":2}"#),
        "{text}"
    );
    // A new start counts on from the largest number that can be read.
    applied(&env, json!({"enabled": true, "run_id": "r2"})).await;
    call(&env, &session, "echo", json!({"n": 3})).await;
    let text = std::fs::read_to_string(state(&env).join(record)).unwrap();
    assert!(
        text.lines().last().unwrap().contains(r#""sequence":41"#),
        "{text}"
    );
}
