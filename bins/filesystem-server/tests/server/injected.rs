//! Calls that fail on purpose.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::served::{Served, folder, only_text, program};

/// A server whose private data lie beside its world.
async fn served() -> Served {
    let folder = folder();
    let mut command = program();
    command
        .env("STATE_LOCATION", folder.path().join("state"))
        .arg("--root")
        .arg(folder.path().join("world"));
    let served = Served::started(folder, command).await;
    served.put("a.txt", "a");
    served.put("secret/b.txt", "b");
    served
}

fn put_rules(state: &Path, rules: &str) {
    fs::create_dir_all(state.join(".config")).unwrap();
    fs::write(state.join(".config/injected_errors.json"), rules).unwrap();
}

fn rules_of(served: &Served, rules: &Value) {
    put_rules(&served.folder.path().join("state"), &rules.to_string());
}

/// What a call ends with: `None` where it works.
async fn failure(served: &Served, tool: &'static str, arguments: Value) -> Option<String> {
    let result = served.call(tool, arguments).await;
    let failed = result.is_error == Some(true);
    failed.then(|| {
        assert_eq!(result.structured_content, None);
        only_text(&result)
    })
}

async fn read(served: &Served, path: &str) -> Option<String> {
    failure(served, "read_text_file", json!({"file_path": path})).await
}

#[tokio::test]
async fn rules_decide_in_their_order_from_the_moment_they_are_there() {
    let served = served().await;
    assert_eq!(read(&served, "/secret/b.txt").await, None);
    rules_of(
        &served,
        &json!({"seed": 1, "unknown": 1, "error_rules": [
            // Decides, and never fails: what follows is not asked.
            {"error_type": "timeout", "tool": "read_text_file", "paths": ["/a.*"], "probability": 0},
            {"error_type": "permission_denied", "tool": "read_*", "paths": ["/none", "/secret/*"],
             "message": "Permission denied", "metadata": {"x": 1}},
            {"error_type": "server_error", "tool": "list_files", "max_occurrences": 2},
            {"error_type": "rate_limit", "tool": "list_files", "max_occurrences": 1, "message": "Slow down"},
            {"error_type": "malformed_response", "message": "never", "probability": 0.0},
        ]}),
    );
    let denied = Some("Internal error: Permission denied".to_owned());
    assert_eq!(read(&served, "/secret/b.txt").await, denied);
    assert_eq!(read(&served, "/secret/b.txt").await, denied);
    assert_eq!(read(&served, "/a.txt").await, None);
    let mut listed = Vec::new();
    for _ in 0..4 {
        listed.push(failure(&served, "list_files", json!({})).await);
    }
    let error = Some("Internal error: Error".to_owned());
    let slow = Some("Internal error: Slow down".to_owned());
    assert_eq!(listed, [error.clone(), error, slow, None]);
    // It was read once.
    rules_of(&served, &json!({"error_rules": []}));
    assert_eq!(read(&served, "/secret/b.txt").await, denied);
}

#[tokio::test]
async fn a_seed_makes_the_same_calls_fail_and_about_as_many_as_it_says() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let served = served().await;
        rules_of(
            &served,
            &json!({"seed": -7, "error_rules": [{"error_type": "timeout", "tool": "*", "probability": 0.5}]}),
        );
        let mut failed = Vec::new();
        for _ in 0..60 {
            failed.push(read(&served, "/a.txt").await.is_some());
        }
        let count = failed.iter().filter(|failed| **failed).count();
        assert!((10..=50).contains(&count), "{count} of 60");
        runs.push(failed);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn rules_that_cannot_be_used_let_every_call_through() {
    for wrong in [
        "{",
        "[]",
        r#"{"error_rules": [{"error_type": "earthquake"}]}"#,
        r#"{"error_rules": [{"error_type": "timeout", "probability": 2}]}"#,
        r#"{"error_rules": [{"tool": "*"}]}"#,
    ] {
        let served = served().await;
        put_rules(&served.folder.path().join("state"), wrong);
        assert_eq!(read(&served, "/a.txt").await, None, "{wrong}");
    }
}

#[tokio::test]
async fn without_a_place_of_their_own_they_lie_among_the_data_of_applications() {
    let folder = folder();
    let mut command = program();
    command
        .env("APPS_DATA_ROOT", folder.path().join("data"))
        .env("STATE_LOCATION", "")
        .arg("--root")
        .arg(folder.path().join("world"));
    put_rules(
        &folder.path().join("data/filesystem-server"),
        r#"{"error_rules": [{"error_type": "timeout", "message": "Timed out"}]}"#,
    );
    let served = Served::started(folder, command).await;
    assert_eq!(
        read(&served, "/a.txt").await.as_deref(),
        Some("Internal error: Timed out")
    );
}
