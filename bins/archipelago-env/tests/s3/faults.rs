//! A service that breaks off, refuses and lists what cannot be, temporary keys, and captures.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{S3, TEMPORARY, TOKEN, call, ended, read};
use crate::support::{Env, members, noise, until};

fn temporary(token: Option<&str>) -> Value {
    json!({"access_key_id": TEMPORARY, "secret_access_key": "secret2", "session_token": token})
}

#[tokio::test]
async fn temporary_keys_need_the_token_of_their_session() {
    let s3 = S3::start().await;
    s3.put("w/a.txt", b"a");
    let env = s3.env().await;
    let sources = json!([{"url": "s3://worlds/w"}]);
    for (token, right) in [(None, 500), (Some("stolen"), 500), (Some(TOKEN), 200)] {
        let body = json!({"sources": sources, "s3_credentials": temporary(token)});
        let (status, answer) = call(&env, "/data/populate/s3", body).await;
        assert_eq!(status, right, "{answer}");
        assert!(!answer.to_string().contains("secret2"));
    }
    let body = json!({"format": "tar.gz", "s3_credentials": temporary(Some(TOKEN))});
    let (status, answer) = call(&env, "/data/snapshot/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    // The address carries the token.
    let address = answer["presigned_url"].as_str().unwrap();
    let fetched = env.http.get(address).send().await.unwrap();
    assert_eq!(fetched.status(), 200);
    assert_eq!(
        members(&fetched.bytes().await.unwrap())["filesystem/a.txt"],
        b"a"
    );
    assert!(!env.log().contains("secret2") && !env.log().contains(TOKEN));

    // The same from the variables.
    let env = s3
        .env_with(&[
            ("AWS_ACCESS_KEY_ID", TEMPORARY),
            ("AWS_SECRET_ACCESS_KEY", "secret2"),
            ("AWS_SESSION_TOKEN", TOKEN),
        ])
        .await;
    let (status, answer) = call(&env, "/data/populate/s3", json!({"sources": sources})).await;
    assert_eq!(status, 200, "{answer}");
    // Keys of a request are not mixed with the token of the environment.
    let own = json!({"access_key_id": "key", "secret_access_key": "secret"});
    let body = json!({"sources": sources, "s3_credentials": own});
    let before = s3.faults.requests.load(Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    assert!(s3.faults.requests.load(Ordering::SeqCst) > before);
    assert_eq!(s3.faults.mixed.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_taken_up_again() {
    let s3 = S3::start().await;
    let content = noise(9 << 20);
    s3.put("w/large", &content);
    let env = s3.env().await;
    s3.faults.cut.store(2, Ordering::SeqCst);
    let body = json!({"sources": [{"url": "s3://worlds/w"}]});
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    assert!(read(&env.files().join("large")) == content);
    assert!(s3.faults.seen(&["GET /worlds/w/large"]) > 1);
}

#[tokio::test]
async fn a_body_that_always_breaks_off_changes_nothing() {
    let s3 = S3::start().await;
    s3.put("w/a.txt", b"a");
    s3.put("w/large", &noise(9 << 20));
    let env = s3.env().await;
    s3.faults.cut.store(i64::MAX / 2, Ordering::SeqCst);
    let body = json!({"sources": [{"url": "s3://worlds/w"}]});
    let (_, started) = call(&env, "/data/populate/s3/start", body).await;
    let end = ended(&env, "populate", started["job_id"].as_str().unwrap()).await;
    assert_eq!(end["status"], "error");
    let error = end["error"].as_str().unwrap();
    assert!(
        error.starts_with("Failed to download from s3://worlds/w/large: "),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(env.files()).unwrap().count(), 0);
    assert_eq!(
        std::fs::read_dir(env.home()).unwrap().count(),
        2,
        "no staging is left"
    );
}

#[tokio::test]
async fn an_upload_that_is_refused_fails_the_job_and_leaves_no_parts() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    std::fs::write(env.files().join("large"), noise(40 << 20)).unwrap();
    std::fs::write(env.files().join("small"), "small").unwrap();
    for format in ["tar.gz", "files"] {
        s3.faults.seen.lock().unwrap().clear();
        // The first part gets through.
        s3.faults.puts_before.store(1, Ordering::SeqCst);
        s3.faults.refuse_puts.store(i64::MAX / 2, Ordering::SeqCst);
        let body = json!({"snapshot_id": "x", "format": format});
        let (_, started) = call(&env, "/data/snapshot/s3/start", body).await;
        let end = ended(&env, "snapshot", started["job_id"].as_str().unwrap()).await;
        assert_eq!(end["status"], "error", "{format} {end}");
        let error = end["error"].as_str().unwrap();
        assert!(error.starts_with("Failed to create "), "{error}");
        assert!(error.contains("s3://snapshots/team/x"), "{error}");
        assert_eq!(s3.faults.seen(&["POST ", "uploads"]), 1, "{format}");
        assert_eq!(
            s3.faults.seen(&["DELETE ", "uploadId="]),
            1,
            "{format}: it is given up"
        );
        assert_eq!(
            s3.faults.seen(&["POST ", "uploadId="]),
            0,
            "{format}: it is not completed"
        );
    }
    s3.faults.refuse_puts.store(0, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "x"})).await;
    assert_eq!(status, 200, "{answer}");
    assert!(read(&s3.object("snapshots", "team/x/filesystem/large")) == noise(40 << 20));
}

/// An entry of a listing.
fn object(key: &str, size: u64) -> String {
    format!(
        "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
         <ETag>&quot;x&quot;</ETag><Size>{size}</Size></Contents>"
    )
}

fn listing(keys: &[&str]) -> String {
    let contents: String = keys.iter().map(|key| object(key, 1)).collect();
    list(keys.len(), &contents)
}

/// The answer to a listing with so many objects.
fn list(count: usize, contents: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>worlds</Name><Prefix>w/</Prefix>\
         <KeyCount>{count}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>"
    )
}

#[tokio::test]
async fn marks_of_folders_are_passed_over() {
    let s3 = S3::start().await;
    s3.put("w/a.txt", b"1");
    s3.put("w/d/b.txt", b"2");
    s3.put("w/d/none.txt", b"");
    let env = s3.env().await;
    // As consoles make them: for the folder itself, for one with files, for an empty one.
    let objects = [
        object("w/", 0),
        object("w/a.txt", 1),
        object("w/d/", 0),
        object("w/d/b.txt", 1),
        object("w/d/none.txt", 0),
        object("w/empty/", 0),
    ];
    *s3.faults.listing.lock().unwrap() = Some(list(objects.len(), &objects.concat()));
    let body = json!({"sources": [{"url": "s3://worlds/w"}]});
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(
        (status, &answer["objects_added"]),
        (200, &json!(3)),
        "{answer}"
    );
    assert_eq!(read(&env.files().join("d/b.txt")), b"2");
    assert_eq!(read(&env.files().join("d/none.txt")), b"");
    assert!(!env.files().join("empty").is_file());
}

#[tokio::test]
async fn keys_that_are_no_paths_are_refused_by_name() {
    let s3 = S3::start().await;
    s3.put("w/a.txt", b"a");
    let env = s3.env().await;
    for key in [
        "w//b.txt",
        "w/d//b.txt",
        "w/../b.txt",
        "w/./b.txt",
        "w/d/../../../b.txt",
    ] {
        *s3.faults.listing.lock().unwrap() = Some(listing(&["w/a.txt", key]));
        let body = json!({"sources": [{"url": "s3://worlds/w"}]});
        let (status, answer) = call(&env, "/data/populate/s3", body).await;
        assert_eq!(status, 400, "{key} {answer}");
        let detail = answer["detail"].as_str().unwrap();
        assert!(detail.starts_with("Unsafe path detected"), "{detail}");
        assert!(detail.contains(key), "{key}: {detail}");
        assert_eq!(std::fs::read_dir(env.files()).unwrap().count(), 0);
    }
    *s3.faults.listing.lock().unwrap() = None;
    for url in ["s3://worlds/w//b", "s3://worlds/w/../b"] {
        let body = json!({"sources": [{"url": url}]});
        let (status, answer) = call(&env, "/data/populate/s3", body).await;
        assert_eq!(status, 400, "{url} {answer}");
        assert!(
            answer["detail"].as_str().unwrap().contains("Unsafe path"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn long_uploads_tell_in_the_log_how_far_they_are() {
    let s3 = S3::start().await;
    let env = s3
        .env_with(&[("SNAPSHOT_UPLOAD_PROGRESS_INTERVAL_SECONDS", "0.05")])
        .await;
    std::fs::write(env.files().join("a"), "a").unwrap();
    s3.faults.delay_ms.store(400, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "x"})).await;
    assert_eq!(status, 200, "{answer}");
    until("the progress is logged", || {
        env.log().contains("on the way")
    })
    .await;
    assert!(env.log().contains("team/x"));
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let s3 = S3::start().await;
    let env = s3
        .env_with(&[
            ("SNAPSHOT_UPLOAD_TIMEOUT_FLOOR_SECONDS", "0.2"),
            ("SNAPSHOT_UPLOAD_MIN_THROUGHPUT_MIB_S", "1000"),
        ])
        .await;
    std::fs::write(env.files().join("a"), "a").unwrap();
    s3.faults.delay_ms.store(120_000, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "x"})).await;
    assert_eq!(status, 500);
    let detail = answer["detail"].as_str().unwrap();
    assert!(
        detail.contains("1 file(s) failed after retry: team/x/filesystem/a"),
        "{detail}"
    );
}

#[tokio::test]
async fn a_capture_goes_to_s3_and_one_that_is_too_slow_or_fails_leaves_no_parts() {
    let s3 = S3::start().await;
    let machine = tempfile::tempdir().unwrap();
    std::fs::create_dir(machine.path().join("etc")).unwrap();
    let env = s3.env_on(machine.path()).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    let content = noise(20 << 20);
    std::fs::write(machine.path().join("etc/new"), &content).unwrap();
    let body = json!({"snapshot_id": "one"});
    let (status, answer) = call(&env, "/data/rootfs/capture", body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["s3_uri"],
        "s3://snapshots/team/one/rootfs-layer.tar.gz"
    );
    let layer = read(&s3.object("snapshots", "team/one/rootfs-layer.tar.gz"));
    assert_eq!(answer["size_bytes"], layer.len());
    assert!(answer["duration_s"].as_f64().unwrap() > 0.0);
    assert!(members(&layer)["etc/new"] == content);

    s3.faults.refuse_puts.store(i64::MAX / 2, Ordering::SeqCst);
    s3.faults.puts_before.store(0, Ordering::SeqCst);
    let (status, answer) = call(&env, "/data/rootfs/capture", body).await;
    assert_eq!(status, 500, "{answer}");
    assert!(
        answer["detail"]
            .as_str()
            .unwrap()
            .contains("team/one/rootfs-layer.tar.gz")
    );
    assert_eq!(s3.faults.seen(&["DELETE ", "uploadId="]), 1);
}

/// What is fetched can be changed by whoever shares the group of the world.
#[tokio::test]
async fn files_that_were_fetched_belong_to_the_group_of_the_world() {
    use std::os::unix::fs::PermissionsExt as _;
    let s3 = S3::start().await;
    s3.put("w/d/e/a.txt", b"a");
    let env: Env = s3.env().await;
    let source = |subsystem: &str| json!({"url": "s3://worlds/w", "subsystem": subsystem});
    std::fs::create_dir(env.files().join("nested")).unwrap();
    let body = json!({"sources": [source("filesystem"), source("filesystem/nested/x"), source(".apps_data")]});
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    let mode = |path: std::path::PathBuf| path.metadata().unwrap().permissions().mode() & 0o7777;
    for folder in [
        "d",
        "d/e",
        "nested",
        "nested/x",
        "nested/x/d",
        "nested/x/d/e",
    ] {
        assert_eq!(mode(env.files().join(folder)), 0o2775, "{folder}");
    }
    for file in ["d/e/a.txt", "nested/x/d/e/a.txt"] {
        assert_eq!(mode(env.files().join(file)), 0o664, "{file}");
    }
    assert_eq!(mode(env.apps_data().join("d/e/a.txt")), 0o644);
    assert_eq!(mode(env.apps_data().join("d")), 0o755);
}
