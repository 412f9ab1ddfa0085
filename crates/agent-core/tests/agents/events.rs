//! Events: their order, the log file, and what can be rebuilt from them.

use std::sync::Arc;

use agent_core::{
    Agents, EventLog, Observer, Observers, RunInput, ToolSources, read_events, rebuild, run,
};
use formats::trajectory::{AgentStatus, Trajectory};
use serde_json::json;

use crate::support::model::{Script, calls, text};
use crate::support::server::Server;
use crate::support::{Events, assert_completed, assert_every_call_answered, end};

async fn a_run(server: &Server, observer: Arc<dyn Observer>) -> Trajectory {
    let script = Script::new([
        calls(&[("image", json!({})), ("echo", json!({"text": "x"}))]),
        calls(&[("error", json!({}))]),
        text("done"),
    ]);
    let input = RunInput::new(script.named("anthropic/fake"))
        .agent("loop_agent", json!({"turn_warnings_enabled": true}))
        .user("go")
        .observer(observer)
        .tools(ToolSources::gateway(&server.url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    trajectory
}

#[tokio::test]
async fn events_are_numbered_dated_and_complete() {
    let server = Server::start().await;
    let events = Events::default();
    a_run(&server, Arc::new(events.clone())).await;
    let all = events.all();
    for (index, event) in all.iter().enumerate() {
        assert_eq!(event.seq, index as u64);
        assert!(event.time.ends_with('Z'), "{}", event.time);
    }
    assert!(
        all.windows(2)
            .all(|pair| pair[0].elapsed <= pair[1].elapsed)
    );
    let told: Vec<(Option<u64>, String)> = all
        .iter()
        .map(|event| {
            let kind = serde_json::to_value(event).unwrap()["type"].clone();
            (event.step, kind.as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        (None, "run_started"),
        (None, "configured"),
        (None, "budget"),
        (None, "message"),
        (Some(1), "step_started"),
        (Some(1), "request"),
        (Some(1), "response"),
        (Some(1), "tool_call"),
        (Some(1), "tool_result"),
        (Some(1), "tool_call"),
        (Some(1), "tool_result"),
    ];
    for (index, (step, kind)) in expected.into_iter().enumerate() {
        assert_eq!(told[index], (step, kind.to_owned()), "event {index}");
    }
    let last: Vec<&str> = told
        .iter()
        .rev()
        .take(2)
        .map(|(_, kind)| kind.as_str())
        .collect();
    assert_eq!(last, ["run_ended", "final_answer"]);
}

#[tokio::test]
async fn a_trajectory_can_be_rebuilt_from_the_log() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let log = Arc::new(EventLog::create(&path).unwrap());
    let events = Events::default();
    let both = Observers(vec![log.clone(), Arc::new(events.clone())]);
    let trajectory = a_run(&server, Arc::new(both)).await;
    log.finish().unwrap();
    let read = read_events(&path).unwrap();
    assert_eq!(read, events.all());

    let mut rebuilt = rebuild(&read).unwrap();
    assert!((rebuilt.time_elapsed - trajectory.time_elapsed).abs() < 1.0);
    rebuilt.time_elapsed = trajectory.time_elapsed;
    let usage = rebuilt.usage.as_mut().unwrap();
    usage.insert("accounting_mode".into(), json!("default"));
    assert_eq!(rebuilt, trajectory);
}

#[tokio::test]
async fn a_kill_at_any_event_loses_only_the_step_in_flight() {
    let server = Server::start().await;
    let events = Events::default();
    let trajectory = a_run(&server, Arc::new(events.clone())).await;
    let all = events.all();
    assert_eq!(rebuild(&[]), None);
    let mut shortest = 0;
    for cut in 1..=all.len() {
        let rebuilt = rebuild(&all[..cut]).unwrap();
        assert_every_call_answered(&rebuilt.messages);
        // What was said before is all there, in order.
        let whole = rebuilt
            .messages
            .iter()
            .zip(&trajectory.messages)
            .take_while(|(rebuilt, original)| rebuilt == original)
            .count();
        assert!(whole >= shortest, "event {cut}: {whole} < {shortest}");
        shortest = whole;
        if cut + 1 < all.len() {
            assert_eq!(rebuilt.status, AgentStatus::Error);
            assert_eq!(end(&rebuilt).2, "interrupted");
        }
    }
    assert_eq!(shortest, trajectory.messages.len());
}

#[test]
fn a_half_written_last_line_is_left_out_and_other_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let line =
        r#"{"v":1,"seq":0,"time":"2026-01-01T00:00:00Z","elapsed":0.0,"type":"step_started"}"#;
    std::fs::write(&path, format!("{line}\n{}", &line[..20])).unwrap();
    assert_eq!(read_events(&path).unwrap().len(), 1);
    std::fs::write(&path, format!("{}\n{line}\n", &line[..20])).unwrap();
    let error = read_events(&path).unwrap_err().to_string();
    assert!(error.contains("line 1"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_error_of_the_log_is_surfaced_and_does_not_end_the_run() {
    let server = Server::start().await;
    let log = Arc::new(EventLog::create("/dev/full").unwrap());
    a_run(&server, log.clone()).await;
    assert!(log.finish().is_err());
}
