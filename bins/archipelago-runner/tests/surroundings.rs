//! What scripts around the runner give it and look for: empty flags, variables, the log file, parts beside
//! the trajectory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod bench;

use std::process::Command;

use bench::{Bench, end, stderr};
use serde_json::{Value, json};
use testkit::openai::Turn;

/// Flags that scripts of the reference give with nothing in them.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_path_counts_as_not_given() {
    let bench = Bench::new([Turn::says("done")]).await;
    let mut command = bench.runner();
    for flag in [
        "--orchestrator-extra-args",
        "--parent-trajectory-output",
        "--custom-args",
        "--task-custom-fields",
        "--inner-agent-config",
        "--events",
        "--parent-trajectory",
    ] {
        command.args([flag, ""]);
    }
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(bench.trajectory()["status"], "completed");
}

/// `FILE_LOGGING`: the records of the reference, appended.
#[tokio::test(flavor = "multi_thread")]
async fn the_log_file_tells_the_run_in_records_of_the_reference() {
    let bench = Bench::new([
        Turn::fails(500).header("retry-after-ms", "5"),
        Turn::says("First a try.")
            .and_calls("echo", json!({"text": "hi"}))
            .and_calls("fail", json!({})),
        Turn::says("It is said."),
    ])
    .await;
    bench.write(
        "agent.json",
        &json!({"agent_config_id": "loop_agent", "agent_name": "Loop",
            "agent_config_values": {"turn_warnings_enabled": true, "max_steps": 5}}),
    );
    std::fs::create_dir(bench.path("logs")).unwrap();
    std::fs::write(bench.path("logs/run.log"), "{\"earlier\": 1}\n").unwrap();
    let mut command = bench.runner();
    command
        .env("FILE_LOGGING", "Yes")
        .env("FILE_LOG_PATH", "logs/run.log");
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let text = std::fs::read_to_string(bench.path("logs/run.log")).unwrap();
    let records: Vec<Value> = text
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<String> = records
        .iter()
        .map(|record| {
            let kind = record["extra"]["message_type"].as_str().unwrap_or("-");
            format!("{} {kind}", record["level"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "INFO -",
            "INFO configure",
            "INFO configure",
            "INFO configure",
            "INFO turn_warning",
            "INFO step",
            "INFO llm_retry_summary",
            "INFO response",
            "INFO tool_call",
            "INFO tool_result",
            "INFO tool_call",
            "ERROR tool_result",
            "INFO turn_warning",
            "INFO step",
            "INFO final_answer",
            "INFO -"
        ]
    );
    for record in &records {
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["timestamp", "level", "message", "extra"]);
        assert_eq!(record["extra"]["trajectory_id"], "t1");
    }
    assert_eq!(records[2]["message"], "User: Say it.");
    assert_eq!(records[4]["extra"]["step"], 1);
    assert_eq!(records[4]["extra"]["remaining_turns"], 5);
    assert_eq!(records[6]["extra"]["retries_used"], 1);
    assert_eq!(records[8]["extra"]["payload"], r#"{"text":"hi"}"#);
    assert_eq!(
        records[9]["extra"]["payload"],
        json!([{"type": "text", "text": "hi"}])
    );
    assert_eq!(records[9]["extra"]["ref"], records[8]["extra"]["ref"]);
    assert_eq!(records[14]["message"], "It is said.");

    let mut command = bench.runner();
    command.env("FILE_LOGGING", "1");
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(
        stderr(&done).contains("`FILE_LOG_PATH` names no file"),
        "{}",
        stderr(&done)
    );
}

/// A parent whose long texts lie beside it is read whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_with_parts_beside_it_is_read_whole() {
    let long = "one of many words ".repeat(2000);
    let bench = Bench::new([
        Turn::calls("echo", json!({"text": long})),
        Turn::says("Read."),
        Turn::says("Read again."),
    ])
    .await;
    std::fs::create_dir(bench.path("first")).unwrap();
    let with_output = |command: Command, output: &str| {
        let mut fresh = Command::new(command.get_program());
        let mut arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let place = arguments
            .iter()
            .position(|argument| argument == "--output")
            .unwrap();
        arguments[place + 1] = output.into();
        fresh
            .args(arguments)
            .env_clear()
            .env("OPENAI_BASE_URL", bench.model.base_url())
            .env("OPENAI_API_KEY", bench.model.key())
            .current_dir(bench.folder.path());
        fresh
    };
    let mut first = with_output(bench.runner(), "first/trajectory.json");
    first.arg("--blobs");
    let done = end(first).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let written = std::fs::read_to_string(bench.path("first/trajectory.json")).unwrap();
    // The text is once in the arguments of the call, and not in its result.
    assert_eq!(written.matches("one of many words").count(), 2000 + 11);
    assert_eq!(
        std::fs::read_dir(bench.path("first/blobs"))
            .unwrap()
            .count(),
        1
    );

    let mut second = with_output(bench.runner(), "second.json");
    second.args(["--parent-trajectory", "first/trajectory.json"]);
    let done = end(second).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let asked = bench.model.requests()[2].body.to_string();
    assert_eq!(asked.matches("one of many words").count(), 4000);
    assert!(!asked.contains("kept in the file"));
    assert_eq!(bench.model.refusals(), [""; 0]);
}

/// `AGENT_TIMEOUT_SECONDS` ends a run and keeps its history; `ENV` other than `local` makes the account
/// one event per line.
#[tokio::test(flavor = "multi_thread")]
async fn the_outer_limit_and_the_account_come_from_the_environment() {
    let bench = Bench::new([
        Turn::calls("echo", json!({"text": "kept"})),
        Turn::says("too late").after_ms(100_000),
    ])
    .await;
    let mut command = bench.runner();
    command.env("AGENT_TIMEOUT_SECONDS", "5").env("ENV", "prod");
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(3), "{}", stderr(&done));
    let run = bench.trajectory();
    assert_eq!(
        (&run["status"], &run["error"]["kind"]),
        (&json!("error"), &json!("outer_limit"))
    );
    assert_eq!(run["messages"][2]["content"][0]["text"], "kept");
    let told: Vec<Value> = stderr(&done)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let ended = told
        .iter()
        .find(|event| event["type"] == "run_ended")
        .unwrap();
    assert_eq!(ended["status"], "error");

    for wrong in ["0", "soon", "-1", "NaN"] {
        let mut command = bench.runner();
        command.env("AGENT_TIMEOUT_SECONDS", wrong);
        let done = end(command).await;
        assert_eq!(done.status.code(), Some(2), "{wrong}");
        let expected =
            format!("`AGENT_TIMEOUT_SECONDS` must be a positive number of seconds, got `{wrong}`");
        assert!(stderr(&done).contains(&expected), "{}", stderr(&done));
    }
}
