//! `POST /data/snapshot` (`spec/environment.md` §14).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use support::{Env, golden, members, noise, tar_gz, until};

#[tokio::test]
async fn headers_and_members() {
    let env = Env::start().await;
    env.populate("", tar_gz(&[("b.txt", b"b"), ("a/.hidden", b"h")]))
        .await;
    env.populate("?subsystem=.apps_data", tar_gz(&[("db", b"d")]))
        .await;
    symlink("b.txt", env.files().join("link")).unwrap();
    symlink("/etc/passwd", env.files().join("leak")).unwrap();
    std::fs::create_dir(env.files().join("empty")).unwrap();
    for body in [
        "",
        "null",
        "{}",
        r#"{"pre_snapshot_hooks": []}"#,
        r#"{"unknown": 1}"#,
    ] {
        let response = env.post("/data/snapshot", body).await;
        assert_eq!(response.status(), 200, "{body}");
        let headers = response.headers();
        assert_eq!(headers["content-type"], "application/gzip");
        assert_eq!(headers["transfer-encoding"], "chunked");
        assert!(!headers.contains_key("x-hook-timings"));
        let disposition = headers["content-disposition"].to_str().unwrap();
        let id = disposition
            .strip_prefix("attachment; filename=\"snap_")
            .and_then(|rest| rest.strip_suffix(".tar.gz\""))
            .unwrap();
        assert!(
            id.len() == 32
                && id
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
            "{id}"
        );
        let archive = response.bytes().await.unwrap();
        let right: BTreeMap<String, Vec<u8>> = [
            ("filesystem/a/.hidden", "h"),
            ("filesystem/b.txt", "b"),
            ("filesystem/link", "b"),
            (".apps_data/db", "d"),
        ]
        .into_iter()
        .map(|(name, content)| (name.to_owned(), content.as_bytes().to_vec()))
        .collect();
        assert_eq!(members(&archive), right);
    }
    // The same world, the same bytes.
    assert_eq!(env.snapshot().await, env.snapshot().await);
    let with = env
        .post("/data/snapshot?empty_directories=true", "")
        .await
        .bytes()
        .await
        .unwrap();
    assert!(members(&with).contains_key("filesystem/empty/"));
}

#[tokio::test]
async fn the_headers_of_the_reference() {
    let Some(path) = golden("reference-run/env/snapshot_response_headers.txt") else {
        return;
    };
    let env = Env::start().await;
    let response = env.post("/data/snapshot", "").await;
    for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
        let Some((name, right)) = line.split_once(": ") else {
            continue;
        };
        let got = response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap());
        match name {
            "server" | "date" => {}
            "content-disposition" => assert_eq!(got.map(str::len), Some(right.len())),
            _ => assert_eq!(got, Some(right), "{name}"),
        }
    }
}

#[tokio::test]
async fn bodies_and_queries_that_are_wrong() {
    let env = Env::start().await;
    for (path, body) in [
        ("/data/snapshot", "{"),
        ("/data/snapshot", "[]"),
        ("/data/snapshot", r#"{"pre_snapshot_hooks": 1}"#),
        ("/data/snapshot?format=rar", ""),
        ("/data/snapshot?empty_directories=perhaps", ""),
        ("/data/snapshot?reproducible=1", ""),
    ] {
        let response = env.post(path, body).await;
        assert_eq!(response.status(), 422, "{path} {body}");
        assert!(response.json::<Value>().await.unwrap()["detail"][0]["loc"].is_array());
    }
}

#[tokio::test]
async fn hooks_run_before_the_archive_is_made() {
    let env = Env::start().await;
    let dump = env.files().join("dump.sql");
    let hooks = json!({"pre_snapshot_hooks": [{"name": "dump", "command": "echo rows > \"$TO\"", "env": {"TO": dump}}]});
    let response = env.post("/data/snapshot", hooks.to_string()).await;
    let timings: Value =
        serde_json::from_str(response.headers()["x-hook-timings"].to_str().unwrap()).unwrap();
    assert_eq!(timings[0]["name"], "dump");
    let archive = members(&response.bytes().await.unwrap());
    assert_eq!(archive["filesystem/dump.sql"], b"rows\n");

    let hooks = json!({"pre_snapshot_hooks": [{"name": "no", "command": "exit 1"}]});
    let response = env.post("/data/snapshot", hooks.to_string()).await;
    assert_eq!(response.status(), 500);
    assert_eq!(
        response.json::<Value>().await.unwrap()["detail"],
        "Lifecycle hook 'no' failed with exit code 1: No error output"
    );
}

/// Whether the process has a file below `folder` open.
fn has_open(id: u32, folder: &std::path::Path) -> bool {
    std::fs::read_dir(format!("/proc/{id}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|target| target.starts_with(folder))
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_packing() {
    let env = Env::start().await;
    // More than every buffer on the way holds, so that the packer has to wait for its client.
    let noise = noise(24 << 20);
    std::fs::write(env.files().join("noise"), noise).unwrap();
    let (id, files) = (env.id(), env.files());
    for _ in 0..3 {
        let mut response = env.post("/data/snapshot", "").await;
        assert!(response.chunk().await.unwrap().is_some());
        assert!(has_open(id, &files), "the packer is at work");
        drop(response);
        until("the packer lets go", || !has_open(id, &files)).await;
    }
    assert_eq!(env.get("/health").await.status(), 200);
}

#[tokio::test]
async fn a_failure_in_the_middle_breaks_the_transfer() {
    // A root that is no directory any more cannot be read.
    let env = Env::start().await;
    env.populate("", tar_gz(&[("a", b"a")])).await;
    std::fs::remove_dir(env.apps_data()).unwrap();
    std::fs::write(env.apps_data(), "no directory").unwrap();
    // Whether the answer has begun by then is a matter of luck; it never ends well.
    let request = env.http.post(env.at("/data/snapshot"));
    if let Ok(response) = request.send().await {
        assert!(
            response.bytes().await.is_err(),
            "a broken archive must not look complete"
        );
    }
    assert_eq!(env.get("/health").await.status(), 200);
}

#[tokio::test]
async fn every_format_is_the_same_world() {
    let env = Env::start().await;
    env.populate("", tar_gz(&[("b.txt", b"b"), ("a/.hidden", b"h")]))
        .await;
    std::fs::create_dir(env.files().join("empty")).unwrap();
    let get = async |query: &str| {
        let response = env.post(&format!("/data/snapshot{query}"), "").await;
        assert_eq!(response.status(), 200, "{query}");
        let headers = response.headers();
        let kind = headers["content-type"].to_str().unwrap().to_owned();
        let name = headers["content-disposition"].to_str().unwrap().to_owned();
        (kind, name, response.bytes().await.unwrap())
    };
    let (kind, name, zip) = get("?format=zip").await;
    assert_eq!(kind, "application/zip");
    assert!(name.ends_with(".zip\""), "{name}");
    let mut zip_read = zip::ZipArchive::new(std::io::Cursor::new(&zip)).unwrap();
    let names: Vec<String> = zip_read
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "filesystem/a/.hidden",
            "filesystem/b.txt",
            "filesystem/empty/"
        ]
    );
    let mut content = String::new();
    std::io::Read::read_to_string(
        &mut zip_read.by_name("filesystem/b.txt").unwrap(),
        &mut content,
    )
    .unwrap();
    assert_eq!(content, "b");
    assert_eq!(get("?format=zip&reproducible=true").await.2, zip);

    let (kind, name, zst) = get("?format=tar.zst").await;
    assert_eq!(kind, "application/zstd");
    assert!(name.ends_with(".tar.zst\""), "{name}");
    assert!(zst.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    // What a snapshot is, populate takes back: the same paths below another root.
    let (status, body) = env
        .populate("?subsystem=filesystem/copy", zst.to_vec())
        .await;
    assert_eq!((status.as_u16(), &body["objects_added"]), (200, &json!(3)));
    assert!(env.files().join("copy/filesystem/empty").is_dir());
    let unordered = get("?reproducible=false").await.2;
    assert!(members(&unordered).contains_key("filesystem/b.txt"));
}
