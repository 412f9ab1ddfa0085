//! What is fetched and sent when nothing is wrong with the service, and what is refused.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{S3, call, ended, read};
use crate::support::{self, noise, tar_gz, until};

#[tokio::test]
async fn objects_become_files() {
    let s3 = S3::start().await;
    let large = noise(9 << 20);
    s3.put("w/a.txt", b"a");
    s3.put("w/d/b.txt", b"b");
    s3.put("w/d/..c/..d", b"dots");
    s3.put("w/large.bin", &large);
    // Only the text of the name is alike.
    s3.put("w2/c.txt", b"c");
    let env = s3.env().await;
    let hook = json!({"name": "count", "command": format!("ls {} > {}/seen", env.files().display(), env.apps_data().display())});
    let body = json!({
        "sources": [
            {"url": " s3://worlds/w "},
            {"url": "s3://worlds/w2/c.txt", "subsystem": ".apps_data/one"},
            {"url": "s3://worlds/none/", "subsystem": "filesystem"},
        ],
        "post_populate_hooks": [hook],
    });
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["objects_added"], 5);
    assert_eq!(answer["hook_timings"][0]["name"], "count");
    assert_eq!(read(&env.files().join("a.txt")), b"a");
    assert_eq!(read(&env.files().join("d/b.txt")), b"b");
    assert_eq!(read(&env.files().join("d/..c/..d")), b"dots");
    assert!(read(&env.files().join("large.bin")) == large);
    assert!(!env.files().join("2").exists());
    assert_eq!(read(&env.apps_data().join("one/c.txt")), b"c");
    assert!(env.apps_data().join("seen").exists());
}

#[tokio::test]
async fn many_objects_come_in_several_pages_and_failures_that_pass_are_survived() {
    let s3 = S3::start().await;
    for number in 0..1100 {
        s3.put(&format!("many/{number:04}"), number.to_string().as_bytes());
    }
    let env = s3.env().await;
    s3.faults.fail.store(3, Ordering::SeqCst);
    let body = json!({"sources": [{"url": "s3://worlds/many"}]});
    let (status, answer) = call(&env, "/data/populate/s3", body).await;
    assert_eq!(
        (status, &answer["objects_added"]),
        (200, &json!(1100)),
        "{answer}"
    );
    assert_eq!(read(&env.files().join("1099")), b"1099");
    let later_pages = s3.faults.seen(&["list-type=2", "continuation-token="]);
    assert_eq!(later_pages, 1, "1000 keys are one page");
}

#[tokio::test]
async fn what_cannot_be_fetched_changes_nothing() {
    let s3 = S3::start().await;
    s3.put("good/a.txt", b"a");
    let env = s3.env().await;
    let outside = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), env.files().join("leak")).unwrap();
    s3.put("bad/leak/a.txt", b"a");
    let keys = |id: &str| json!({"access_key_id": id, "secret_access_key": "wrong"});
    let good = json!({"url": "s3://worlds/good"});
    for (right, says, body) in [
        (422, "", json!({"sources": []})),
        (422, "", json!({})),
        (422, "", json!({"sources": [{"url": " "}]})),
        (
            422,
            "",
            json!({"sources": [{"url": "s3://worlds/good", "subsystem": "../etc"}]}),
        ),
        (
            422,
            "",
            json!({"sources": [good], "s3_credentials": {"access_key_id": "a", "secret_access_key": "b", "region": " "}}),
        ),
        (
            400,
            "Expected 's3://bucket/key'",
            json!({"sources": [good, {"url": "http://x/y"}]}),
        ),
        (
            400,
            "Key cannot be empty",
            json!({"sources": [good, {"url": "s3://worlds/"}]}),
        ),
        (
            500,
            "S3 error accessing s3://nowhere/a",
            json!({"sources": [good, {"url": "s3://nowhere/a"}]}),
        ),
        (
            500,
            "S3 error accessing",
            json!({"sources": [good], "s3_credentials": keys("key")}),
        ),
        (
            400,
            "",
            json!({"sources": [good, {"url": "s3://worlds/bad", "subsystem": "filesystem/leak"}]}),
        ),
    ] {
        let (status, answer) = call(&env, "/data/populate/s3", body.clone()).await;
        assert_eq!(status, right, "{body} {answer}");
        let detail = answer["detail"].to_string();
        assert!(detail.contains(says), "{body} {answer}");
        assert!(!detail.contains("wrong"));
        assert!(!env.files().join("a.txt").exists(), "{body}");
    }
    // Through a link to outside nothing is written, wherever the names come from.
    let (status, answer) = call(
        &env,
        "/data/populate/s3",
        json!({"sources": [{"url": "s3://worlds/bad"}]}),
    )
    .await;
    assert_eq!(status, 409, "{answer}");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn the_world_as_objects() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    let large = noise(5 << 20);
    env.populate("", tar_gz(&[("a.txt", b"a"), ("d/.hidden", b"")]))
        .await;
    std::fs::write(env.apps_data().join("large"), &large).unwrap();
    std::os::unix::fs::symlink("a.txt", env.files().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", env.files().join("leak")).unwrap();
    std::fs::write(env.files().join("odd [1]\n#?.txt"), "odd").unwrap();
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"snapshot_id": "one"})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (
            &answer["snapshot_id"],
            &answer["files_uploaded"],
            &answer["total_bytes"]
        ),
        (&json!("one"), &json!(5), &json!(large.len() + 5))
    );
    let object = |key: &str| s3.object("snapshots", &format!("team/one/{key}"));
    assert_eq!(read(&object("filesystem/a.txt")), b"a");
    assert_eq!(read(&object("filesystem/link")), b"a");
    assert_eq!(read(&object("filesystem/odd [1]%0A#?.txt")), b"odd");
    assert_eq!(read(&object("filesystem/d/.hidden")), b"");
    assert!(read(&object(".apps_data/large")) == large);
    assert!(!object("filesystem/leak").exists());
    let combined = read(&s3.object("snapshots", "snapshot_zips/team/one.tar.zst"));
    assert!(combined.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));

    // And back.
    let other = s3.env().await;
    let body = json!({"sources": [
        {"url": "s3://snapshots/team/one/filesystem"},
        {"url": "s3://snapshots/team/one/.apps_data", "subsystem": ".apps_data"},
    ]});
    let (status, answer) = call(&other, "/data/populate/s3", body).await;
    assert_eq!(
        (status, &answer["objects_added"]),
        (200, &json!(5)),
        "{answer}"
    );
    assert!(read(&other.apps_data().join("large")) == large);
}

#[tokio::test]
async fn the_world_as_one_archive_with_an_address_to_fetch_it() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    let content = noise(18 << 20);
    std::fs::write(env.files().join("noise"), &content).unwrap();
    let (status, answer) = call(&env, "/data/snapshot/s3", json!({"format": "tar.gz"})).await;
    assert_eq!(status, 200, "{answer}");
    let id = answer["snapshot_id"].as_str().unwrap();
    assert_eq!(answer["s3_uri"], format!("s3://snapshots/team/{id}.tar.gz"));
    let fetched = env
        .http
        .get(answer["presigned_url"].as_str().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(fetched.status(), 200);
    let archive = fetched.bytes().await.unwrap();
    assert_eq!(answer["size_bytes"], archive.len());
    assert!(support::members(&archive)["filesystem/noise"] == content);
    // 18 MiB that do not compress, in parts of 8 MiB.
    assert_eq!(s3.faults.seen(&["PUT ", "partNumber="]), 3);
    assert_eq!(s3.faults.seen(&["POST ", "uploadId="]), 1);

    for (right, body) in [
        (400, json!({"snapshot_id": "../up"})),
        (400, json!({"snapshot_id": ""})),
        (
            500,
            json!({"pre_snapshot_hooks": [{"name": "no", "command": "exit 3"}]}),
        ),
        (
            500,
            json!({"format": "tar.gz", "s3_credentials": {"access_key_id": "key", "secret_access_key": "no"}}),
        ),
    ] {
        let (status, answer) = call(&env, "/data/snapshot/s3", body.clone()).await;
        assert_eq!(status, right, "{body} {answer}");
    }
    assert_eq!(env.post("/data/snapshot/s3", "").await.status(), 422);
}

#[tokio::test]
async fn jobs_are_asked_about_listed_and_cancelled() {
    let s3 = S3::start().await;
    s3.put("w/a.txt", b"a");
    let env = s3.env().await;
    let body = json!({"sources": [{"url": "s3://worlds/w"}]});
    let (_, started) = call(&env, "/data/populate/s3/start", body.clone()).await;
    let first = started["job_id"].as_str().unwrap().to_owned();
    assert_eq!(first.len(), 32);
    let done = ended(&env, "populate", &first).await;
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(done["result"]["objects_added"], 1);
    assert_eq!(done["progress"], json!({"objects": 1, "bytes": 1}));

    let (_, started) = call(
        &env,
        "/data/snapshot/s3/start",
        json!({"snapshot_id": "a/b"}),
    )
    .await;
    let failed = ended(&env, "snapshot", started["job_id"].as_str().unwrap()).await;
    assert_eq!(
        (&failed["status"], &failed["error"]),
        (&json!("error"), &json!("Invalid snapshot ID"))
    );

    // Everything takes longer than this test.
    s3.faults.delay_ms.store(120_000, Ordering::SeqCst);
    std::fs::remove_file(env.files().join("a.txt")).unwrap();
    let (_, started) = call(&env, "/data/populate/s3/start", body).await;
    let slow = started["job_id"].as_str().unwrap().to_owned();
    let before = s3.faults.requests.load(Ordering::SeqCst);
    until("the job has asked", || {
        s3.faults.requests.load(Ordering::SeqCst) > before - 1
    })
    .await;
    let listed: Value = env
        .get("/data/populate/s3/status")
        .await
        .json()
        .await
        .unwrap();
    let ids: Vec<&str> = listed["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["job_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [first.as_str(), slow.as_str()]);
    assert_eq!(listed["jobs"][1]["status"], "running");
    let path = format!("/data/populate/s3/status/{slow}");
    let cancelled = env.http.delete(env.at(&path)).send().await.unwrap();
    assert_eq!(cancelled.status(), 200);
    let end = ended(&env, "populate", &slow).await;
    assert_eq!(
        (&end["status"], &end["error"]),
        (&json!("error"), &json!("cancelled"))
    );
    assert!(!env.files().join("a.txt").exists());
    assert_eq!(
        std::fs::read_dir(env.home()).unwrap().count(),
        2,
        "no staging is left"
    );
    let unknown = env.get("/data/populate/s3/status/none").await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(
        unknown.json::<Value>().await.unwrap()["detail"],
        "Unknown populate job: none"
    );
    assert_eq!(
        env.post("/data/populate/s3/status/none", "").await.status(),
        405
    );
}

#[tokio::test]
async fn a_service_that_stays_away_is_told() {
    let s3 = S3::start().await;
    let env = s3.env().await;
    env.populate("", tar_gz(&[("a.txt", b"a")])).await;
    s3.faults.fail.store(i64::MAX / 2, Ordering::SeqCst);
    for body in [
        json!({"snapshot_id": "x"}),
        json!({"snapshot_id": "x", "format": "tar.gz"}),
    ] {
        let (_, started) = call(&env, "/data/snapshot/s3/start", body.clone()).await;
        let path = format!(
            "/data/snapshot/s3/status/{}",
            started["job_id"].as_str().unwrap()
        );
        // It is tried again for some seconds, which nobody has to wait for.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let running: Value = env.get(&path).await.json().await.unwrap();
        assert_eq!(running["status"], "running", "{body}");
        env.http.delete(env.at(&path)).send().await.unwrap();
        let end = ended(&env, "snapshot", path.rsplit('/').next().unwrap()).await;
        assert_eq!(end["error"], "cancelled", "{body}");
    }
}
