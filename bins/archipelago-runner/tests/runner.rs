//! The runner as scripts of the reference use it: flags, files, exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod bench;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bench::{Bench, end, stderr};
use serde_json::{Value, json};
use testkit::openai::{OpenAiStub, Script, Turn};

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_run_writes_the_references_keys_and_ends_with_0() {
    let bench = Bench::new([
        Turn::calls("echo", json!({"text": "hi"})),
        Turn::says("It is said."),
    ])
    .await;
    let done = end(bench.runner()).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(done.stdout, b"", "results are in the file");
    let run = bench.trajectory();
    for key in [
        "messages",
        "output",
        "status",
        "time_elapsed",
        "usage",
        "final_answer",
    ] {
        assert!(run.get(key).is_some(), "no `{key}`");
    }
    assert_eq!(run["status"], "completed");
    assert_eq!(run["final_answer"], "It is said.");
    assert_eq!(run["messages"][3]["content"], "It is said.");
    assert_eq!(run["usage"]["call_log"].as_array().unwrap().len(), 2);
    assert_eq!(bench.model.refusals(), [""; 0]);
    assert!(stderr(&done).contains("echo"), "{}", stderr(&done));
}

/// Everything that is known before the run is told before it: exit code 2, or the reference's 1.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_input_is_refused_before_anything_is_sent() {
    let bench = Bench::new([]).await;
    std::fs::write(bench.output(), "of an earlier run").unwrap();
    bench.write(
        "unknown.json",
        &json!({"agent_config_id": "nobody", "agent_name": "x", "agent_config_values": {}}),
    );
    std::fs::write(bench.path("broken.json"), "{").unwrap();
    let cases: [(&str, &[&str], &[&str]); 6] = [
        (
            "unknown agent",
            &["--agent-config", "unknown.json"],
            &["unknown.json", "nobody", "loop_agent"],
        ),
        (
            "missing file",
            &["--initial-messages", "none.json"],
            &["initial messages `none.json`"],
        ),
        (
            "broken file",
            &["--custom-args", "broken.json"],
            &["broken.json`, line 1"],
        ),
        (
            "not an array",
            &["--initial-messages", "agent.json"],
            &["agent.json", "expected a sequence"],
        ),
        (
            "no provider",
            &["--orchestrator-model", "stub"],
            &["stub", "provider/model"],
        ),
        (
            "no key",
            &["--orchestrator-model", "groq/x"],
            &["GROQ_API_KEY"],
        ),
    ];
    for (case, flags, expected) in cases {
        let replaced = |codes: bool| {
            let mut command = bench.runner();
            // The last one of a flag given twice would be refused, so replace it.
            let mut args: Vec<String> = command
                .get_args()
                .map(|argument| argument.to_str().unwrap().to_owned())
                .collect();
            match args.iter().position(|argument| argument == flags[0]) {
                Some(at) => args[at + 1] = flags[1].to_owned(),
                None => args.extend(flags.iter().map(|&flag| flag.to_owned())),
            }
            if codes {
                args.push("--reference-exit-codes".to_owned());
            }
            let mut fresh = Command::new(command.get_program());
            fresh
                .env_clear()
                .current_dir(bench.folder.path())
                .args(args);
            fresh.env("OPENAI_API_KEY", "sk-x");
            command = fresh;
            command
        };
        let done = end(replaced(false)).await;
        assert_eq!(done.status.code(), Some(2), "{case}: {}", stderr(&done));
        for part in expected {
            assert!(
                stderr(&done).contains(part),
                "{case}: no {part:?} in {}",
                stderr(&done)
            );
        }
        let done = end(replaced(true)).await;
        assert_eq!(done.status.code(), Some(1), "{case}: {}", stderr(&done));
    }
    assert!(
        !bench.output().exists(),
        "the output of an earlier run is still there"
    );
    assert_eq!(bench.model.requests(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_be_reached_is_infrastructure() {
    let bench = Bench::new([]).await;
    // A port that was free a moment ago, and is closed now.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-runner"));
    for argument in bench.runner().get_args() {
        let is_url = argument.to_str() == Some(bench.gateway.url.as_str());
        if is_url {
            command.arg(format!("http://127.0.0.1:{port}/mcp/"));
        } else {
            command.arg(argument);
        }
    }
    command
        .env_clear()
        .env("OPENAI_API_KEY", "sk-x")
        .current_dir(bench.folder.path());
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(3), "{}", stderr(&done));
    let run = bench.trajectory();
    assert_eq!(run["status"], "error");
    assert_eq!(run["error"]["owner"], "infrastructure");
    assert_eq!(run["messages"][0]["content"], "Say it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_ends_the_run_at_once() {
    let bench = Bench::new([Turn::says("never said")]).await;
    let mut command = bench.runner();
    command.env("OPENAI_API_KEY", "sk-wrong-0123456789");
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    assert_eq!(bench.trajectory()["status"], "error");
    assert_eq!(
        bench.model.requests().len(),
        1,
        "repeated what cannot succeed"
    );
    assert!(
        !stderr(&done).contains("sk-wrong-0123456789"),
        "the key is told"
    );
}

fn wait(child: &mut Child) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the runner does not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ctrl-C and SIGTERM alike: status `cancelled`, the messages so far, and the events on disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_the_run_with_what_there_is() {
    for (signal, reference_codes, expected) in [("INT", false, 130), ("TERM", true, 0)] {
        let bench = Bench::new([
            Turn::calls("echo", json!({"text": "hi"})),
            Turn::says("too late").after_ms(100_000),
        ])
        .await;
        let mut command = bench.runner();
        command
            .args(["--events", "events.jsonl"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if reference_codes {
            command.arg("--reference-exit-codes");
        }
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while bench.model.requests().len() < 2 {
            assert!(
                Instant::now() < deadline,
                "the second request does not come"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let sent = Command::new("kill")
            .args([format!("-{signal}"), child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        let code = tokio::task::spawn_blocking(move || wait(&mut child))
            .await
            .unwrap();
        assert_eq!(code, expected, "{signal}");
        let run = bench.trajectory();
        assert_eq!(run["status"], "cancelled");
        assert_eq!(
            run["messages"].as_array().unwrap().len(),
            3,
            "user, call, result"
        );
        let events = std::fs::read_to_string(bench.path("events.jsonl")).unwrap();
        let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        assert_eq!(last["type"], "run_ended");
    }
}

/// A kill -9 in the middle of a model call, and the same command line with `--continue`.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_run_goes_on_where_it_was() {
    let bench = Bench::new([
        Turn::calls("echo", json!({"text": "hi"})),
        Turn::says("too late").after_ms(100_000),
        Turn::says("It is said."),
        Turn::calls("echo", json!({"text": "more"})),
        Turn::says("It is said again."),
    ])
    .await;
    let started = || {
        let mut command = bench.runner();
        command.args(["--events", "events.jsonl", "--continue"]);
        command
    };
    // Nothing to go on with yet: it begins.
    let mut child = started()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while bench.model.requests().len() < 2 {
        assert!(Instant::now() < deadline, "no second request");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!bench.output().exists());

    let done = end(started()).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let run = bench.trajectory();
    assert_eq!(run["final_answer"], "It is said.");
    assert_eq!(run["messages"].as_array().unwrap().len(), 4);
    let calls = |method: &str| {
        let seen = bench.gateway.seen();
        seen.iter()
            .filter(|request| request.method == method)
            .count()
    };
    assert_eq!(calls("tools/call"), 1, "an answered call was repeated");

    // Complete: nothing is asked, the trajectory is the same.
    let done = end(started()).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(bench.trajectory()["messages"], run["messages"]);
    assert_eq!(bench.model.requests().len(), 3);

    // A further question.
    std::fs::rename(bench.output(), bench.path("parent.json")).unwrap();
    bench.write(
        "messages.json",
        &json!([{"role": "user", "content": "Say it again."}]),
    );
    let mut next = bench.runner();
    next.args(["--parent-trajectory", "parent.json"]);
    let done = end(next).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let run = bench.trajectory();
    let said = run["messages"].as_array().unwrap();
    assert_eq!(said.len(), 8);
    assert_eq!(said[3]["content"], "It is said.");
    assert_eq!(said[4]["content"], "Say it again.");
    assert_eq!(run["final_answer"], "It is said again.");
    assert_eq!(bench.model.refusals(), [""; 0]);
}

/// The gateway's token comes from the environment, and the actor id wins over it.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_gateway_come_from_the_environment() {
    let bench = Bench::new([Turn::says("done"), Turn::says("done")]).await;
    let mut command = bench.runner();
    command.env("MCP_GATEWAY_AUTH_TOKEN", "a-token");
    assert_eq!(end(command).await.status.code(), Some(0));
    let mut command = bench.runner();
    command
        .env("MCP_GATEWAY_AUTH_TOKEN", "a-token")
        .env("MCP_GATEWAY_ACTOR_ID", "an-actor");
    assert_eq!(end(command).await.status.code(), Some(0));
    let seen: Vec<String> = bench
        .gateway
        .seen()
        .iter()
        .filter(|request| request.method == "initialize")
        .map(|request| {
            request
                .headers
                .get("authorization")
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(seen, ["Bearer a-token", "Bearer an-actor"]);
}

#[test]
fn help_says_where_it_differs() {
    let help = Command::new(env!("CARGO_BIN_EXE_archipelago-runner"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for flag in [
        "--trajectory-id",
        "--initial-messages",
        "--mcp-gateway-url",
        "--mcp-gateway-auth-token",
        "--mcp-gateway-actor-id",
        "--agent-config",
        "--orchestrator-model",
        "--orchestrator-extra-args",
        "--parent-trajectory-output",
        "--custom-args",
        "--task-custom-fields",
        "--inner-agent-config",
        "--output",
        "--blobs",
        "--continue",
        "--parent-trajectory",
        "--reference-exit-codes",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
    assert!(help.contains("The reference ends with 0"), "{help}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_run_is_played_without_a_server_and_a_key() {
    let mut bench = Bench::new([
        Turn::calls("echo", json!({"text": "hi"})),
        Turn::says("It is said."),
    ])
    .await;
    let mut command = bench.runner();
    command.args(["--record", "tape", "--cache", "kept"]);
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let recorded = bench.trajectory();
    let key = bench.model.key().to_owned();
    bench.model = OpenAiStub::start(Script::new([])).await.unwrap();

    let play = |model: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-runner"));
        let given = bench.runner();
        let args = given.get_args().map(|argument| match argument.to_str() {
            Some("openai/stub") => model.into(),
            _ => argument.to_owned(),
        });
        command
            .env_clear()
            .current_dir(bench.folder.path())
            .args(args)
            .stdin(Stdio::null());
        command
    };
    let done = end(play("replay/tape")).await;
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let played = bench.trajectory();
    assert_eq!(played["messages"], recorded["messages"]);
    assert_eq!(played["final_answer"], "It is said.");
    for file in std::fs::read_dir(bench.path("tape")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(&key), "{text}");
    }

    bench.write(
        "messages.json",
        &json!([{"role": "user", "content": "Sing it."}]),
    );
    let done = end(play("replay/tape")).await;
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    let text = stderr(&done);
    assert!(
        text.contains("Sing it.") && text.contains("Say it."),
        "{text}"
    );
    assert_eq!(bench.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_ends_a_run_before_it_is_crossed() {
    let bench = Bench::new([
        Turn::calls("echo", json!({"text": "hi"})).usage(3000, 1000),
        Turn::says("It is said."),
    ])
    .await;
    let mut command = bench.runner();
    // A reply of a model that is not in the table is reckoned with 4,096 tokens.
    command.args(["--max-tokens", "8000"]);
    let done = end(command).await;
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
    assert_eq!(bench.model.requests().len(), 1);
    let run = bench.trajectory();
    assert_eq!(
        (&run["status"], &run["error"]["kind"]),
        (&json!("error"), &json!("budget"))
    );
    let text = stderr(&done);
    assert!(
        text.contains("4000 tokens are spent") && text.contains("limit is 8000"),
        "{text}"
    );
}
