//! What changed on the machine since a moment (`spec/environment.md` §16).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use support::{Env, members, noise, until};

/// An environment whose machine is a folder.
async fn with_machine(machine: &Path) -> Env {
    for folder in ["etc", "usr/bin", "tmp", "proc", "var/cache/apt", "var/tmp"] {
        std::fs::create_dir_all(machine.join(folder)).unwrap();
    }
    std::fs::write(machine.join("etc/old"), "old").unwrap();
    Env::start_with(|command| {
        command
            .env("ROOTFS_ROOT", machine)
            .env("ROOTFS_MARKER", machine.join("run/own/marker"));
    })
    .await
}

async fn answer(env: &Env, path: &str, body: &str) -> (u16, Value) {
    let response = env.post(path, body.to_owned()).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// The clock of the disk ticks every few milliseconds.
async fn next_tick() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

#[tokio::test]
async fn what_changed_since_the_baseline_comes_as_a_layer() {
    let machine = tempfile::tempdir().unwrap();
    let env = with_machine(machine.path()).await;
    let at = |path: &str| machine.path().join(path);

    let (status, refused) = answer(&env, "/data/rootfs/layer", "").await;
    assert_eq!(status, 400);
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("/data/rootfs/baseline")
    );

    next_tick().await;
    let (status, marked) = answer(&env, "/data/rootfs/baseline", "").await;
    assert_eq!(status, 200);
    let marker = at("run/own/marker");
    assert_eq!(marked["marker_path"], marker.to_str().unwrap());
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let age = now.as_secs_f64() - marked["marked_at"].as_f64().unwrap();
    assert!((0.0..30.0).contains(&age), "{age}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&marker), mode(&at("run/own"))), (0o600, 0o700));

    next_tick().await;
    for path in [
        "etc/new",
        "tmp/x",
        "proc/x",
        "var/cache/apt/x",
        "var/tmp/x",
        "var/x",
    ] {
        std::fs::write(at(path), path).unwrap();
    }
    symlink("/etc/new", at("usr/bin/link")).unwrap();
    let response = env.post("/data/rootfs/layer", "").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/gzip");
    let layer = members(&response.bytes().await.unwrap());
    let names: Vec<&str> = layer.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "etc/",
            "etc/new",
            "usr/bin/",
            "usr/bin/link",
            "var/",
            "var/x"
        ]
    );
    assert_eq!(layer["etc/new"], b"etc/new");
    let counted = r#"archipelago_moved_files_total{direction="layer",peer="client"} 6"#;
    let metrics = env.get("/metrics").await.text().await.unwrap();
    assert!(metrics.contains(counted), "{metrics}");

    // A second baseline moves the moment on.
    next_tick().await;
    answer(&env, "/data/rootfs/baseline", "").await;
    next_tick().await;
    std::fs::write(at("etc/later"), "").unwrap();
    let response = env.post("/data/rootfs/layer", "").await;
    let layer = members(&response.bytes().await.unwrap());
    let names: Vec<&str> = layer.keys().map(String::as_str).collect();
    assert_eq!(names, ["etc/", "etc/later"]);
    assert_eq!(env.get("/data/rootfs/layer").await.status(), 405);
}

#[tokio::test]
async fn a_marker_that_is_a_link_is_not_followed() {
    let machine = tempfile::tempdir().unwrap();
    let env = with_machine(machine.path()).await;
    let marker = machine.path().join("run/own/marker");
    let elsewhere = machine.path().join("elsewhere");
    std::fs::create_dir_all(marker.parent().unwrap()).unwrap();
    symlink(&elsewhere, &marker).unwrap();
    let (status, told) = answer(&env, "/data/rootfs/baseline", "").await;
    assert_eq!(status, 500);
    assert!(
        told["detail"]
            .as_str()
            .unwrap()
            .contains(marker.to_str().unwrap()),
        "{told}"
    );
    assert!(!elsewhere.exists());
    assert_eq!(answer(&env, "/data/rootfs/layer", "").await.0, 400);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_packing() {
    let machine = tempfile::tempdir().unwrap();
    let env = with_machine(machine.path()).await;
    answer(&env, "/data/rootfs/baseline", "").await;
    next_tick().await;
    let large = machine.path().join("usr/large");
    std::fs::write(&large, noise(64 << 20)).unwrap();
    let has_open = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", env.id())).unwrap();
        open.flatten()
            .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|path| path == large))
    };
    let mut response = env.post("/data/rootfs/layer", "").await;
    response.chunk().await.unwrap().unwrap();
    until("the file is being packed", has_open).await;
    drop(response);
    until("the packing has ended", || !has_open()).await;
}

#[tokio::test]
async fn a_capture_asks_for_a_name_and_a_baseline() {
    let machine = tempfile::tempdir().unwrap();
    let env = with_machine(machine.path()).await;
    let path = "/data/rootfs/capture";
    assert_eq!(answer(&env, path, "").await.0, 422);
    assert_eq!(answer(&env, path, "{}").await.0, 422);
    let (status, told) = answer(&env, path, &json!({"snapshot_id": "../x"}).to_string()).await;
    assert_eq!(
        (status, &told["detail"]),
        (400, &json!("Invalid snapshot_id"))
    );
    let (status, told) = answer(&env, path, &json!({"snapshot_id": "x"}).to_string()).await;
    assert_eq!(status, 400);
    assert!(
        told["detail"].as_str().unwrap().contains("baseline"),
        "{told}"
    );
}
