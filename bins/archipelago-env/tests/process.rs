//! The program: start, stop, exit codes, health check.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::json;
use support::{Env, PATIENCE, descendants, noise, stub_server, until};
use tokio::process::Command;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-env"));
    command
        .stdin(Stdio::null())
        .env_remove("ENV")
        .kill_on_drop(true);
    command
}

async fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .unwrap()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test]
async fn a_port_in_use() {
    let env = Env::start().await;
    let port = env.url.rsplit(':').next().unwrap();
    let home = tempfile::tempdir().unwrap();
    let (code, message) = run(program()
        .env("PORT", port)
        .env("FILESYSTEM_ROOT", home.path().join("f"))
        .env("APPS_DATA_ROOT", home.path().join("a")))
    .await;
    assert_eq!(code, Some(2));
    assert!(
        message.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: ")),
        "{message}"
    );
    assert!(message.contains("in use"), "{message}");
}

#[tokio::test]
async fn settings_that_cannot_be_used() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, message) = run(program()
        .args(["--port", "0", "--filesystem-root"])
        .arg(&file))
    .await;
    assert_eq!(code, Some(2));
    assert!(
        message.contains(file.to_str().unwrap()) && message.contains("`filesystem`"),
        "{message}"
    );
    for (variable, value) in [
        ("ENV", "bogus"),
        ("PORT", "http"),
        ("PORT", "70000"),
        ("FILESYSTEM_ROOT", ""),
        ("APPS_DATA_ROOT", ""),
        ("FILESYSTEM_SUBSYSTEM_NAME", "a/b"),
        ("APPS_DATA_SUBSYSTEM_NAME", ".."),
        ("LIFECYCLE_HOOK_TIMEOUT_SECONDS", "soon"),
        ("LIFECYCLE_HOOK_TIMEOUT_SECONDS", "-1"),
        ("MCP_GATEWAY_SSE_READ_TIMEOUT_SECONDS", "0"),
        ("MCP_START_TIMEOUT_SECONDS", "never"),
        ("GATEWAY_SCHEMA_CLEANUP", "perhaps"),
        ("SNAPSHOT_UPLOAD_TIMEOUT_FLOOR_SECONDS", "none"),
        ("SNAPSHOT_UPLOAD_MIN_THROUGHPUT_MIB_S", "inf"),
        ("SNAPSHOT_UPLOAD_PROGRESS_INTERVAL_SECONDS", "NaN"),
        ("COORDINATOR_ROOT", ""),
        ("ROOTFS_ROOT", ""),
        ("ROOTFS_MARKER", ""),
    ] {
        let (code, message) = run(program().env(variable, value)).await;
        assert_eq!(code, Some(2), "{variable}={value}");
        assert!(message.contains(value), "{message}");
        assert!(message.contains(&format!("`{variable}`")), "{message}");
    }
    // A flag is named by itself.
    let (code, message) = run(program().args(["--hook-timeout", "soon"])).await;
    assert_eq!(code, Some(2));
    assert!(
        message.contains("--hook-timeout") && !message.contains("variable"),
        "{message}"
    );
    // One name for both would mix them.
    let (code, message) = run(program().env("APPS_DATA_SUBSYSTEM_NAME", "filesystem")).await;
    assert_eq!(code, Some(2));
    assert!(message.contains("`filesystem`"), "{message}");
}

#[tokio::test]
async fn variables_without_effect_are_named_at_the_start() {
    let env = Env::with(&[
        ("S3_SECRET_ACCESS_KEY", "very-secret"),
        ("DATADOG_API_KEY", "also-secret"),
        ("DATADOG_LOGGING", "false"),
        ("MODAL_IS_REMOTE", "1"),
    ])
    .await;
    let log = env.log();
    for said in [
        "`S3_SECRET_ACCESS_KEY` has no effect: use `AWS_SECRET_ACCESS_KEY`",
        "`DATADOG_API_KEY` has no effect: numbers are at `GET /metrics`",
        "`MODAL_IS_REMOTE` has no effect",
    ] {
        assert!(log.contains(said), "{said}\n{log}");
    }
    assert!(!log.contains("DATADOG_LOGGING"), "{log}");
    assert!(!log.contains("very-secret") && !log.contains("also-secret"));
}

#[tokio::test]
async fn subsystems_have_the_names_of_the_settings() {
    let env = Env::with(&[
        ("FILESYSTEM_SUBSYSTEM_NAME", "files"),
        ("APPS_DATA_SUBSYSTEM_NAME", "state"),
    ])
    .await;
    for (subsystem, right) in [("files", 200), ("state/x", 200), ("filesystem", 400)] {
        let archive = support::tar_gz(&[("a", b"a")]);
        let query = format!("?subsystem={subsystem}");
        let (status, answer) = env.populate(&query, archive).await;
        assert_eq!(status, right, "{answer}");
    }
    let (status, _) = env.populate("", support::tar_gz(&[("b", b"b")])).await;
    assert_eq!(status, 200, "without a name the first one is meant");
    let members = support::members(&env.snapshot().await);
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(names, ["files/a", "files/b", "state/x/a"]);
}

#[tokio::test]
async fn healthcheck() {
    let mut env = Env::start().await;
    let port = env.url.rsplit(':').next().unwrap().to_owned();
    let (code, message) = run(program().args(["healthcheck", "--port", &port])).await;
    assert_eq!((code, message.as_str()), (Some(0), ""));
    // As in a container that listens on all interfaces.
    let (code, _) = run(program()
        .arg("healthcheck")
        .env("HOST", "0.0.0.0")
        .env("PORT", &port))
    .await;
    assert_eq!(code, Some(0));
    let (code, _) = run(program().args(["healthcheck", "--wait", "600", "--port", &port])).await;
    assert_eq!(code, Some(0));
    env.child.kill().await.unwrap();
    let (code, message) = run(program().args(["healthcheck", "--port", &port])).await;
    assert_eq!(code, Some(1));
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
}

#[tokio::test]
async fn logs_are_lines_for_people_or_json() {
    let env = Env::start().await;
    env.get("/apps").await;
    let seen = |env: &Env| env.log().contains("/apps");
    until("the request is logged", || seen(&env)).await;
    let env = Env::with(&[("ENV", "prod")]).await;
    env.get("/apps").await;
    until("the request is logged", || seen(&env)).await;
    let log = env.log();
    let line = log.lines().find(|line| line.contains("/apps")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["fields"]["status"], 200);
}

/// An environment with a server that does not want to end, a client that does not read its snapshot,
/// and a call that never answers.
async fn busy() -> (
    Env,
    Vec<u32>,
    (reqwest::Response, tokio::task::JoinHandle<()>),
) {
    let env = Env::start().await;
    let mut stubborn = stub_server();
    let script = format!(
        "trap '' TERM; {}; sleep 600",
        stubborn["args"][1].as_str().unwrap()
    );
    stubborn["args"][1] = json!(script);
    let config = json!({"mcpServers": {"one": stub_server(), "stubborn": stubborn}});
    let response = env.post("/apps", config.to_string()).await;
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    // A snapshot that nobody reads.
    std::fs::write(env.files().join("noise"), noise(12 << 20)).unwrap();
    let mut snapshot = env.post("/data/snapshot", "").await;
    snapshot.chunk().await.unwrap();
    let session = env.mcp_session("/mcp/").await;
    let request = env
        .http
        .post(env.at("/mcp/"))
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session)
        .json(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "one_hang", "arguments": {}}}));
    let call = tokio::spawn(async move {
        let _ = request.send().await.map(reqwest::Response::text);
    });
    let id = env.id();
    until("the call hangs in its server", || {
        descendants(id).len() >= 3
    })
    .await;
    (env, descendants(id), (snapshot, call))
}

fn alive(ids: &[u32]) -> bool {
    ids.iter()
        .any(|id| std::path::Path::new(&format!("/proc/{id}")).exists())
}

async fn ends_at(signal: Signal) {
    let (mut env, servers, _open) = busy().await;
    env.signal(signal);
    assert_eq!(env.ended().await, Some(0), "{}", env.log());
    until("the servers are gone", || !alive(&servers)).await;
}

#[tokio::test]
async fn sigterm_ends_it_and_its_servers() {
    ends_at(Signal::SIGTERM).await;
}

#[tokio::test]
async fn sigint_ends_it_and_its_servers() {
    ends_at(Signal::SIGINT).await;
}

#[tokio::test]
async fn closing_its_input_ends_it_and_its_servers() {
    let (mut env, servers, _open) = busy().await;
    drop(env.child.stdin.take());
    assert_eq!(env.ended().await, Some(0));
    until("the servers are gone", || !alive(&servers)).await;
}
