//! What requests may say: regions, formats, names, and what is wrong with them; and that all of them wait
//! for the coordinator.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::server::{S3, call, read};
use crate::support::{members, stub_server, tar_gz};

/// The address of a snapshot that was put into one archive.
async fn address(env: &crate::support::Env, credentials: Value) -> String {
    let body = json!({"format": "tar.gz", "s3_credentials": credentials});
    let (status, answer) = call(env, "/data/snapshot/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    answer["presigned_url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_region_is_that_of_the_request_else_of_the_settings() {
    let s3 = S3::start().await;
    let plain = s3.env().await;
    let set = s3.env_with(&[("S3_DEFAULT_REGION", "eu-north-7")]).await;
    let keys = |region: Value| json!({"access_key_id": "key", "secret_access_key": "secret", "region": region});
    for (env, credentials, region) in [
        (&plain, Value::Null, "us-west-2"),
        (&set, Value::Null, "eu-north-7"),
        (&set, keys(Value::Null), "eu-north-7"),
        (&set, keys(json!("ap-own-1")), "ap-own-1"),
    ] {
        let address = address(env, credentials).await;
        assert!(
            address.contains(&format!("%2F{region}%2Fs3%2Faws4_request")),
            "{address}"
        );
        assert!(address.contains("X-Amz-Expires=604800"), "{address}");
        assert!(address.starts_with(&s3.url), "by path: {address}");
    }
}

#[tokio::test]
async fn a_snapshot_is_what_was_asked_for() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    let combined = |id: &str| s3.object("snapshots", &format!("snapshot_zips/team/{id}.tar.zst"));
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "none"})).await;
    assert_eq!(
        (status, answer),
        (
            200,
            json!({"snapshot_id": "none", "files_uploaded": 0, "total_bytes": 0, "hook_timings": []})
        )
    );
    assert!(!combined("none").exists());

    env.populate("", tar_gz(&[("a.txt", b"a")])).await;
    let body = json!({"snapshot_id": "alone", "snapshot_zip_enabled": false, "s3_transfer_backend": "s5cmd"});
    let (status, answer) = call(&env, "/data/snapshot/s3", body).await;
    assert_eq!((status, &answer["files_uploaded"]), (200, &json!(1)));
    assert!(!combined("alone").exists());
    // Any other format is one archive, with a name of its own where none is given.
    let hook = json!({"name": "h", "command": "true"});
    let body = json!({"format": "zip", "pre_snapshot_hooks": [hook]});
    let (status, answer) = call(&env, "/data/snapshot/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["hook_timings"][0]["name"], "h");
    let id = answer["snapshot_id"].as_str().unwrap();
    assert!(id.starts_with("snap_") && id.len() == 37, "{id}");
    let archive = read(&s3.object("snapshots", &format!("team/{id}.tar.gz")));
    assert_eq!(members(&archive)["filesystem/a.txt"], b"a");

    // The combined archive comes after the files, and is no reason to fail.
    s3.faults.puts_before.store(1, Ordering::SeqCst);
    s3.faults.refuse_puts.store(i64::MAX / 2, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "half"})).await;
    assert_eq!(status, 200, "{answer}");
    assert!(!combined("half").exists());
    assert!(
        env.log()
            .contains("the combined archive cannot be uploaded")
    );
}

#[tokio::test]
async fn of_many_files_that_failed_some_are_named() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    for number in 0..7 {
        std::fs::write(env.files().join(format!("f{number}")), "x").unwrap();
    }
    s3.faults.puts_before.store(0, Ordering::SeqCst);
    s3.faults.refuse_puts.store(i64::MAX / 2, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "x"})).await;
    assert_eq!(status, 500, "{answer}");
    let detail = answer["detail"].as_str().unwrap();
    let begin = "Failed to create files snapshot x at s3://snapshots/team/x/: 7 file(s) failed after retry: ";
    let rest = detail
        .strip_prefix(begin)
        .unwrap_or_else(|| panic!("{detail}"));
    let (named, _) = rest.split_once(" (and 2 more)").unwrap();
    let mut named: Vec<&str> = named.split(", ").collect();
    named.sort_unstable();
    named.dedup();
    assert_eq!(named.len(), 5, "{detail}");
    assert!(
        named
            .iter()
            .all(|key| key.starts_with("team/x/filesystem/f"))
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_at_once_and_where() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    let good = json!({"url": "s3://worlds/w"});
    let with = |source: Value| json!({"sources": [good, source]});
    let keys = json!({"access_key_id": "k", "secret_access_key": "s", "region": "  "});
    for (body, loc, says, input) in [
        (
            json!({"sources": []}),
            json!(["body"]),
            "At least one source or hook must be provided",
            json!({"sources": []}),
        ),
        (
            with(json!({"url": "  "})),
            json!(["body", "sources", 1, "url"]),
            "url cannot be empty",
            json!("  "),
        ),
        (
            with(json!({"url": "s3://b/k", "subsystem": "etc"})),
            json!(["body", "sources", 1, "subsystem"]),
            "Subsystem must start with 'filesystem', '.apps_data'. Got: 'etc'",
            json!("etc"),
        ),
        (
            json!({"sources": [good], "s3_credentials": keys}),
            json!(["body", "s3_credentials", "region"]),
            "region cannot be empty",
            json!("  "),
        ),
    ] {
        for path in ["/data/populate/s3", "/data/populate/s3/start"] {
            let (status, answer) = call(&env, path, body.clone()).await;
            assert_eq!(status, 422, "{path} {answer}");
            let item = &answer["detail"][0];
            let msg = format!("Value error, {says}");
            assert_eq!(
                (&item["type"], &item["loc"], &item["msg"], &item["input"]),
                (&json!("value_error"), &loc, &json!(msg), &input)
            );
        }
    }
    let missing = json!({"sources": [good, {"subsystem": "filesystem"}]});
    let (status, answer) = call(&env, "/data/populate/s3/start", missing).await;
    assert_eq!(
        (
            status,
            &answer["detail"][0]["type"],
            &answer["detail"][0]["loc"]
        ),
        (
            422,
            &json!("missing"),
            &json!(["body", "sources", 1, "url"])
        )
    );
    for path in [
        "/data/snapshot/s3",
        "/data/snapshot/s3/start",
        "/data/rootfs/capture",
    ] {
        assert_eq!(env.post(path, "").await.status(), 422, "{path}");
    }
    let unknown = env.get("/data/snapshot/s3/status/none").await;
    assert_eq!(unknown.status(), 404);
    let answer: Value = unknown.json().await.unwrap();
    assert_eq!(answer["detail"], "Unknown snapshot job: none");
    assert_eq!(
        s3.faults.requests.load(Ordering::SeqCst),
        0,
        "nobody was asked"
    );
}

#[tokio::test]
async fn snapshots_and_captures_wait_for_the_coordinator() {
    let s3 = S3::start().await;
    let machine = tempfile::tempdir().unwrap();
    let env = s3.env_on(machine.path()).await;
    // Nothing looks at the trigger but what waits.
    for (path, run) in [
        ("/data/snapshot/s3", "one"),
        ("/data/rootfs/capture", "two"),
    ] {
        let coordinator = json!({"enabled": true, "run_id": run, "checkpoints": [], "events": [{
            "event_id": "last",
            "trigger": {"type": "tool_call_seen", "selector": {"actor_id": "target_agent"}},
            "actions": [{"type": "call_mcp_tool", "action_id": "a", "actor_id": "coordinator", "tool_name": "echo"}],
        }]});
        let apps = json!({"mcpServers": {"s": stub_server()}, "coordinator_config": coordinator});
        let (status, answer) = call(&env, "/apps", apps).await;
        assert_eq!(status, 200, "{answer}");
        let session = env.mcp_session("/mcp/").await;
        let body =
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo"}});
        env.mcp("/mcp/", Some(&session), body).await;
        let (status, answer) = call(&env, path, json!({"snapshot_id": run})).await;
        assert_eq!(status, 200, "{answer}");
        let occurrence = env
            .apps_data()
            .join(".coordinator/event_occurrences/last.json");
        let last: Value = serde_json::from_slice(&read(&occurrence)).unwrap();
        assert_eq!(
            (&last["run_id"], &last["status"]),
            (&json!(run), &json!("completed"))
        );
    }
    let sent = s3.object(
        "snapshots",
        "team/one/.apps_data/.coordinator/event_occurrences/last.json",
    );
    let sent: Value = serde_json::from_slice(&read(&sent)).unwrap();
    assert_eq!(sent["status"], "completed");
}
