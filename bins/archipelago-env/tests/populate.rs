//! `POST /data/populate` (`spec/environment.md` §11, §12; `spec/pitfalls.md` A12).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::os::unix::fs::symlink;

use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use support::{Env, append, archive, file_part, golden, noise, tar_gz, tree, until};
use tar::EntryType;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn the_world_of_the_reference() {
    let Some(zip) = golden("simple_task/original_snapshot.zip") else {
        return;
    };
    let right: Value = {
        let path = golden("reference-run/env/populate_response.json").unwrap();
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    // As the reference's own script converts it: the prefix goes, folders stay.
    let mut zip = zip::ZipArchive::new(std::fs::File::open(zip).unwrap()).unwrap();
    let world = archive(|tar| {
        for index in 0..zip.len() {
            let mut member = zip.by_index(index).unwrap();
            let name = member
                .name()
                .unwrap()
                .strip_prefix("filesystem/")
                .unwrap()
                .to_owned();
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut member, &mut content).unwrap();
            match name.as_str() {
                "" => {}
                folder if folder.ends_with('/') => {
                    append(tar, EntryType::Directory, folder, "", b"");
                }
                file => append(tar, EntryType::Regular, file, "", &content),
            }
        }
    });
    let env = Env::start().await;
    let (status, body) = env.populate("?subsystem=filesystem", world).await;
    assert_eq!((status.as_u16(), &body), (200, &right));

    let snapshot = support::members(&env.snapshot().await);
    let golden_members: Value = {
        let path = golden("reference-run/env/snapshot_members.json").unwrap();
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    // Without the coordinator's own records, which come with a later issue.
    let mut names: Vec<(String, u64)> = golden_members
        .as_array()
        .unwrap()
        .iter()
        .map(|member| {
            (
                member["name"].as_str().unwrap().to_owned(),
                member["size"].as_u64().unwrap(),
            )
        })
        .filter(|(name, _)| !name.contains(".coordinator"))
        .collect();
    names.sort();
    let got: Vec<(String, u64)> = snapshot
        .into_iter()
        .map(|(name, content)| (name, content.len() as u64))
        .collect();
    assert_eq!(got, names);
}

#[tokio::test]
async fn files_arrive_in_either_subsystem_and_below() {
    let env = Env::start().await;
    let (status, body) = env
        .populate("", tar_gz(&[("a.txt", b"alpha"), ("d/b.txt", b"b")]))
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        body,
        json!({"objects_added": 2, "subsystem": "filesystem", "extracted_bytes": 6, "hook_timings": []})
    );
    assert_eq!(std::fs::read(env.files().join("d/b.txt")).unwrap(), b"b");
    let (status, body) = env
        .populate("?subsystem=.apps_data%2Fmail", tar_gz(&[("box", b"m")]))
        .await;
    assert_eq!(
        (status.as_u16(), &body["subsystem"]),
        (200, &json!(".apps_data/mail"))
    );
    assert_eq!(
        std::fs::read(env.apps_data().join("mail/box")).unwrap(),
        b"m"
    );
    // Again: the same path is replaced, the rest stays.
    env.populate("?subsystem=filesystem/", tar_gz(&[("a.txt", b"new")]))
        .await;
    assert_eq!(std::fs::read(env.files().join("a.txt")).unwrap(), b"new");
    assert!(env.files().join("d/b.txt").exists());
    // A form field of that name is ignored; an empty archive is fine.
    let form = Form::new()
        .text("subsystem", "nope")
        .part("archive", file_part(tar_gz(&[])));
    let (status, body) = env.populate_form("", form).await;
    assert_eq!((status.as_u16(), &body["objects_added"]), (200, &json!(0)));
}

#[tokio::test]
async fn subsystems_that_break_a_rule() {
    let env = Env::start().await;
    for (query, detail) in [
        ("?subsystem=", "Subsystem name cannot be empty"),
        (
            "?subsystem=%2Ffilesystem",
            "Subsystem name cannot start with '/'",
        ),
        (
            "?subsystem=filesystem/../x",
            "Subsystem name cannot contain '..' (path traversal not allowed)",
        ),
        (
            "?subsystem=filesystem%5Cx",
            "Subsystem name cannot contain '\\' (use '/' for nested paths)",
        ),
        (
            "?subsystem=nope",
            "Subsystem must start with 'filesystem', '.apps_data'. Got: 'nope'",
        ),
        (
            "?subsystem=%20filesystem",
            "Subsystem must start with 'filesystem', '.apps_data'. Got: ' filesystem'",
        ),
    ] {
        let (status, body) = env.populate(query, tar_gz(&[("a", b"a")])).await;
        assert_eq!(
            (status.as_u16(), body),
            (400, json!({"detail": detail})),
            "{query}"
        );
    }
    assert!(tree(&env.files()).is_empty());
}

#[tokio::test]
async fn a_planted_link_does_not_lead_out_of_the_root() {
    let env = Env::start().await;
    let outside = env.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, env.files().join("x")).unwrap();
    symlink("../outside", env.files().join("y")).unwrap();
    for query in [
        "?subsystem=filesystem/x",
        "?subsystem=filesystem/y",
        "?subsystem=filesystem/y/deeper",
    ] {
        let (status, body) = env.populate(query, tar_gz(&[("pwned", b"p")])).await;
        assert_eq!(status, 400, "{body}");
    }
    assert!(tree(&outside).is_empty());
}

#[tokio::test]
async fn forms_of_the_wrong_shape() {
    let env = Env::start().await;
    let missing = json!({"detail": [
        {"type": "missing", "loc": ["body", "archive"], "msg": "Field required", "input": null}]});
    let raw = env.http.post(env.at("/data/populate")).body(tar_gz(&[]));
    let response = raw.send().await.unwrap();
    assert_eq!(response.status(), 422);
    assert_eq!(response.json::<Value>().await.unwrap(), missing);
    let (status, body) = env
        .populate_form("?subsystem=nope", Form::new().text("other", "x"))
        .await;
    assert_eq!((status.as_u16(), body), (422, missing));
    let (status, body) = env
        .populate_form("", Form::new().text("archive", "text"))
        .await;
    assert_eq!(status, 422);
    assert_eq!(body["detail"][0]["type"], "value_error");
    assert_eq!(body["detail"][0]["loc"], json!(["body", "archive"]));
}

#[tokio::test]
async fn a_bad_archive_changes_nothing() {
    let env = Env::start().await;
    env.populate("", tar_gz(&[("ok.txt", b"old"), ("keep/this", b"kept")]))
        .await;
    let before = tree(env.home());

    let bad = |name: &str, fill: &dyn Fn(&mut support::Tar)| {
        let archive = archive(|tar| {
            append(tar, EntryType::Regular, "ok.txt", "", b"new");
            fill(tar);
            append(tar, EntryType::Regular, "after.txt", "", b"after");
        });
        (name.to_owned(), archive)
    };
    let sound = tar_gz(&[("ok.txt", &[7; 300_000])]);
    let cases = [
        bad("`leak` is a link to an absolute path", &|tar| {
            append(tar, EntryType::Symlink, "leak", "/etc/passwd", b"");
        }),
        bad("`d/../../x` has `..` in its name", &|tar| {
            append(tar, EntryType::Symlink, "d", ".", b"");
            append(tar, EntryType::Regular, "d/../../x", "", b"x");
        }),
        bad("`h` is a link that leads outside", &|tar| {
            append(tar, EntryType::Link, "h", "../x", b"");
        }),
        bad("`null` is a special file", &|tar| {
            append(tar, EntryType::Char, "null", "", b"");
        }),
        bad("`/abs.txt` has an absolute path", &|tar| {
            append(tar, EntryType::Regular, "/abs.txt", "", b"x");
        }),
        (
            "ended before its end-of-stream marker".to_owned(),
            sound[..sound.len() / 2].to_vec(),
        ),
        ("not a gzip file".to_owned(), b"PK\x03\x04".to_vec()),
        ("empty file".to_owned(), Vec::new()),
    ];
    for (reason, archive) in cases {
        let (status, body) = env.populate("", archive).await;
        assert_eq!(status, 400, "{reason}: {body}");
        let detail = body["detail"].as_str().unwrap();
        assert!(detail.contains(&reason), "{detail}");
        assert_eq!(tree(env.home()), before, "{reason}");
    }
    let (status, body) = env
        .populate("", tar_gz(&[("a", b"a"), ("keep", b"no directory")]))
        .await;
    assert_eq!(status, 409);
    assert!(
        body["detail"]
            .as_str()
            .unwrap()
            .starts_with("`keep` is a file"),
        "{body}"
    );
    assert_eq!(tree(env.home()), before);
    // A link inside stays a link.
    let good = archive(|tar| append(tar, EntryType::Symlink, "latest", "ok.txt", b""));
    assert_eq!(env.populate("", good).await.0, 200);
    assert_eq!(
        std::fs::read_link(env.files().join("latest"))
            .unwrap()
            .to_str(),
        Some("ok.txt")
    );
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_is_still_sending() {
    let env = Env::start().await;
    // The first member is refused; 32 MB that do not compress follow.
    let noise = noise(32 << 20);
    let archive = archive(|tar| {
        append(tar, EntryType::Symlink, "leak", "/etc/passwd", b"");
        append(tar, EntryType::Regular, "noise", "", &noise);
    });
    let (status, body) = env.populate("", archive).await;
    assert_eq!(status, 400);
    assert!(
        body["detail"].as_str().unwrap().contains("`leak`"),
        "{body}"
    );
}

/// The beginning of a populate request whose body never ends.
async fn begin_upload(env: &Env, archive: &[u8]) -> tokio::net::TcpStream {
    let address = env.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /data/populate HTTP/1.1\r\nHost: {address}\r\nContent-Type: multipart/form-data; boundary=B\r\n\
         Content-Length: 99999999\r\n\r\n--B\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"w\"\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(archive).await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_no_trace() {
    let env = Env::start().await;
    env.populate("", tar_gz(&[("ok.txt", b"old")])).await;
    let before = tree(env.home());
    // A whole archive, but not the whole form.
    let stream = begin_upload(&env, &tar_gz(&[("ok.txt", b"new"), ("more.txt", b"more")])).await;
    let home = env.home().to_owned();
    until("the upload is being unpacked", || {
        std::fs::read_dir(&home).unwrap().count() > 2
    })
    .await;
    // Meanwhile the environment answers.
    assert_eq!(env.get("/health").await.status(), 200);
    drop(stream);
    until("the upload is cleaned up", || {
        std::fs::read_dir(&home).unwrap().count() == 2
    })
    .await;
    assert_eq!(tree(env.home()), before);
}

#[tokio::test]
async fn health_answers_while_much_is_unpacked() {
    let env = Env::start().await;
    let world = archive(|tar| {
        for index in 0..3000 {
            append(
                tar,
                EntryType::Regular,
                &format!("d{}/f{index}", index % 50),
                "",
                &[b'x'; 2000],
            );
        }
        append(tar, EntryType::Regular, "big", "", &vec![0; 64 << 20]);
    });
    let populating = env.populate("", world);
    tokio::pin!(populating);
    let mut answers = 0;
    let (status, body) = loop {
        tokio::select! {
            done = &mut populating => break done,
            health = env.get("/health") => {
                assert_eq!(health.status(), 200);
                answers += 1;
            }
        }
    };
    assert_eq!(
        (status.as_u16(), &body["objects_added"]),
        (200, &json!(3001))
    );
    assert!(answers > 0);
}

#[tokio::test]
async fn hooks_run_when_the_data_is_in_place() {
    let env = Env::start().await;
    let populate = async |hooks: Value| {
        let form = Form::new()
            .text("post_populate_hooks", hooks.to_string())
            .part("archive", file_part(tar_gz(&[("in.txt", b"in")])));
        env.populate_form("", form).await
    };
    let out = env.files().join("out.txt");
    let (status, body) = populate(json!([
        {"name": "copy", "command": "cat \"$FROM\" > \"$TO\"",
         "env": {"FROM": env.files().join("in.txt"), "TO": out}},
        {"name": "nothing", "command": "true"},
    ]))
    .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body["hook_timings"][0]["name"], "copy");
    assert!(body["hook_timings"][1]["duration_s"].is_number());
    assert_eq!(std::fs::read(&out).unwrap(), b"in");

    let (status, body) =
        populate(json!([{"name": "bad", "command": "echo why >&2; exit 3"}])).await;
    assert_eq!(status, 500);
    assert_eq!(
        body["detail"],
        "Lifecycle hook 'bad' failed with exit code 3: why"
    );
    let (_, body) = populate(json!([{"name": "quiet", "command": "kill -9 $$"}])).await;
    assert_eq!(
        body["detail"],
        "Lifecycle hook 'quiet' failed with exit code -9: No error output"
    );
    let (_, body) = populate(json!([
        {"name": "a", "command": "exit 1"}, {"name": "b", "command": "exit 2"}, {"name": "c", "command": "true"}]))
    .await;
    assert_eq!(
        body["detail"],
        "2 lifecycle hooks failed:\n  - RuntimeError: Lifecycle hook 'a' failed with exit code 1: No error output\
         \n  - RuntimeError: Lifecycle hook 'b' failed with exit code 2: No error output"
    );
    // The shell and what it started are ended together.
    let (status, body) =
        populate(json!([{"name": "slow", "command": "sleep 600; true", "timeout_seconds": 1}]))
            .await;
    assert_eq!(status, 500);
    assert_eq!(body["detail"], "Lifecycle hook 'slow' timed out after 1s");
    let id = env.id();
    until("the hook is gone", || support::descendants(id).is_empty()).await;

    let form = Form::new()
        .part("archive", file_part(tar_gz(&[("never.txt", b"x")])))
        .part("post_populate_hooks", Part::text("{not json"));
    let (status, body) = env.populate_form("", form).await;
    assert_eq!(status, 400);
    assert!(
        body["detail"]
            .as_str()
            .unwrap()
            .starts_with("Invalid post_populate_hooks JSON: "),
        "{body}"
    );
    assert!(!env.files().join("never.txt").exists());
}

#[tokio::test]
async fn a_form_that_breaks_off_is_answered() {
    let env = Env::start().await;
    let address = env.url.strip_prefix("http://").unwrap();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let body =
        "--B\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"w\"\r\n\r\nhalf";
    let head = format!(
        "POST /data/populate HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: multipart/form-data; \
         boundary=B\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("the form cannot be read"), "{answer}");
}
