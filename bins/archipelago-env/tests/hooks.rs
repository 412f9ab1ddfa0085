//! Lifecycle hooks: what they get, how they end, what they leave.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::multipart::Form;
use serde_json::{Value, json};
use support::{Env, file_part, tar_gz, until};

/// A snapshot with these hooks: its status, the timings of its header, and its body where that is JSON.
async fn snapshot(env: &Env, hooks: Value) -> (u16, Value, Value) {
    let body = json!({"pre_snapshot_hooks": hooks}).to_string();
    let request = env.http.post(env.at("/data/snapshot"));
    let request = request.bearer_auth("hush-hush").body(body);
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let timings = response.headers().get("x-hook-timings").map(|value| {
        let text = value.to_str().unwrap();
        serde_json::from_str(text).unwrap()
    });
    let body = response.bytes().await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    (status, timings.unwrap_or_default(), body)
}

#[tokio::test]
async fn a_hook_has_the_variables_of_the_environment_but_for_its_secrets() {
    let env = Env::with(&[
        ("ENV_AUTH_TOKEN", "hush-hush"),
        ("MODAL_IDENTITY_TOKEN", "very-secret"),
        ("OF_THE_ENVIRONMENT", "kept"),
        ("OF_BOTH", "old"),
    ])
    .await;
    let out = env.files().join("variables");
    let script = format!("env > {}; cat", out.display());
    let variables = json!({"OF_THE_HOOK": "a b", "OF_BOTH": "new"});
    let hooks = json!([{"name": "look", "command": script, "env": variables, "unknown": 1}]);
    let (status, _, answer) = snapshot(&env, hooks).await;
    assert_eq!(status, 200, "{answer}");
    let text = std::fs::read_to_string(out).unwrap();
    for line in ["OF_THE_ENVIRONMENT=kept", "OF_THE_HOOK=a b", "OF_BOTH=new"] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
    assert!(!text.contains("hush-hush") && !text.contains("very-secret"));
}

#[tokio::test]
async fn hooks_run_side_by_side_and_are_told_in_their_order() {
    let env = Env::start().await;
    let files = env.files();
    // Each waits for what only the other does.
    let meet = |own: &str, other: &str| {
        format!(
            "touch {0}/{own}; until [ -e {0}/{other} ]; do sleep 0.02; done",
            files.display()
        )
    };
    let hooks = json!([
        {"name": "größe 🔧", "command": meet("a", "b"), "timeout_seconds": 30},
        {"name": "b", "command": meet("b", "a"), "timeout_seconds": 30},
    ]);
    let (status, timings, answer) = snapshot(&env, hooks).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(timings[0]["name"], "größe 🔧");
    assert_eq!(timings[1]["name"], "b");
    assert!(timings[1]["duration_s"].as_f64().unwrap() < 30.0);
}

#[tokio::test]
async fn a_hook_without_a_limit_has_that_of_the_settings() {
    let env = Env::with(&[("LIFECYCLE_HOOK_TIMEOUT_SECONDS", "1")]).await;
    let hooks = json!([{"name": "slow", "command": "sleep 600", "timeout_seconds": null}]);
    let (status, _, answer) = snapshot(&env, hooks).await;
    assert_eq!(
        (status, &answer["detail"]),
        (500, &json!("Lifecycle hook 'slow' timed out after 1s"))
    );
    let hooks = json!([{"name": "odd", "command": "true", "timeout_seconds": -1}]);
    let (status, _, answer) = snapshot(&env, hooks).await;
    assert_eq!(
        (status, &answer["detail"]),
        (
            500,
            &json!("Lifecycle hook 'odd' has an impossible time limit")
        )
    );
}

/// The process whose id a hook has written.
fn daemon(env: &Env, file: &str) -> Pid {
    let text = std::fs::read_to_string(env.files().join(file)).unwrap();
    Pid::from_raw(text.trim().parse().unwrap())
}

#[tokio::test]
async fn a_hook_ends_with_its_process_and_may_leave_another_one() {
    let env = Env::start().await;
    let leave = |file: &str, redirect: &str| {
        format!(
            "sleep 600 {redirect} & echo $! > {}/{file}",
            env.files().display()
        )
    };
    let quiet = json!([{"name": "quiet", "command": leave("quiet", ">/dev/null 2>&1")}]);
    let started = Instant::now();
    let (status, timings, answer) = snapshot(&env, quiet).await;
    assert_eq!(status, 200, "{answer}");
    assert!(started.elapsed() < Duration::from_secs(5), "{timings}");
    // One that keeps the pipes costs the time for which they are still read, and no more.
    let loud = json!([{"name": "loud", "command": leave("loud", "")}]);
    let started = Instant::now();
    let (status, timings, answer) = snapshot(&env, loud).await;
    assert_eq!(status, 200, "{answer}");
    let took = started.elapsed();
    assert!(
        (Duration::from_secs(5)..Duration::from_secs(20)).contains(&took),
        "{took:?}"
    );
    assert!(
        timings[0]["duration_s"].as_f64().unwrap() < 5.0,
        "{timings}"
    );
    for file in ["quiet", "loud"] {
        let left = daemon(&env, file);
        kill(left, Signal::SIGKILL).expect("it is still there");
    }
}

#[tokio::test]
async fn output_is_logged_and_a_failure_takes_back_nothing() {
    let env = Env::start().await;
    let hooks =
        json!([{"name": "bad", "command": "echo first; echo second >&2; echo third >&2; exit 7"}]);
    let form = Form::new()
        .text("post_populate_hooks", hooks.to_string())
        .part("archive", file_part(tar_gz(&[("kept.txt", b"kept")])));
    let (status, answer) = env.populate_form("", form).await;
    assert_eq!(
        (status.as_u16(), &answer["detail"]),
        (
            500,
            &json!("Lifecycle hook 'bad' failed with exit code 7: second\nthird")
        )
    );
    assert_eq!(
        std::fs::read(env.files().join("kept.txt")).unwrap(),
        b"kept"
    );
    for word in ["first", "second", "third"] {
        until(word, || env.log().contains(word)).await;
    }
    // They are looked at before the subsystem, and that before the archive.
    let form = |hooks: &str| {
        Form::new()
            .text("post_populate_hooks", hooks.to_owned())
            .part("archive", file_part(b"no archive".to_vec()))
    };
    for (query, hooks, says) in [
        (
            "?subsystem=nope",
            "[1]",
            "Invalid post_populate_hooks JSON: ",
        ),
        ("?subsystem=nope", "[]", "Subsystem must start with "),
        ("", "", "not a gzip file"),
    ] {
        let (status, answer) = env.populate_form(query, form(hooks)).await;
        assert_eq!(status, 400, "{answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{detail}");
    }
}
