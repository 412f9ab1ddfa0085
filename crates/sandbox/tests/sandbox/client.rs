//! The client against an environment that checks what it is sent.

use std::time::Duration;

use crate::stub::{SNAPSHOT, Script, SnapshotAnswer, Stub};
use formats::apps::AppsConfig;
use formats::owner::Owner;
use sandbox::{
    ClientError, ClientSettings, EnvironmentClient, Sandbox as _, StartRequest, StopKind,
    UrlSandbox,
};

fn settings() -> ClientSettings {
    ClientSettings {
        snapshot_pause: Duration::from_millis(10),
        ..ClientSettings::default()
    }
}

fn client(stub: &Stub) -> EnvironmentClient {
    EnvironmentClient::new(&stub.url(), settings()).unwrap()
}

fn one_server() -> AppsConfig {
    serde_json::from_str(r#"{"mcpServers": {"bad": {"transport": "stdio", "command": "nope"}}}"#)
        .unwrap()
}

#[tokio::test]
async fn health_is_awaited_and_addresses_are_built() {
    let stub = Stub::start(Script {
        unhealthy: 3,
        ..Script::default()
    })
    .await;
    let client = EnvironmentClient::new(&format!("{}/", stub.url()), settings()).unwrap();
    let refused = client.health().await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Refused { status: 503, .. }),
        "{refused}"
    );
    client
        .wait_until_healthy(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(client.mcp_url(), format!("{}/mcp/", stub.url()));
}

#[tokio::test]
async fn an_address_that_is_none_is_a_mistake_of_the_caller() {
    for url in ["localhost:8080", "ftp://x", "", "http://"] {
        let error = EnvironmentClient::new(url, settings()).unwrap_err();
        assert_eq!(error.owner(), Owner::Configuration, "{url}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("`{url}` is no address")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_archive_is_streamed_as_a_file_part() {
    let stub = Stub::start(Script::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("w.tar.gz");
    // Larger than any buffer on the way.
    let mut bytes = b"\x1f\x8b".to_vec();
    bytes.extend((0..3_000_000_u32).map(|n| (n % 251) as u8));
    std::fs::write(&archive, &bytes).unwrap();

    let populated = client(&stub)
        .populate(".apps_data/mail", &archive)
        .await
        .unwrap();
    assert_eq!(populated.objects_added, 3);
    assert_eq!(populated.subsystem, ".apps_data/mail");
    assert_eq!(populated.extracted_bytes, 3_000_002);
    let sent = stub.script.lock().unwrap().populated.remove(0);
    assert!(sent == (".apps_data/mail".to_owned(), bytes));
}

#[tokio::test]
async fn a_refused_archive_shows_the_reason_and_belongs_to_the_configuration() {
    let stub = Stub::start(Script::default()).await;
    let plain: &[u8] = b"no gzip";
    let error = client(&stub)
        .populate_from("filesystem", plain, None)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`POST /data/populate` was answered with status 400: not a gzip file"
    );
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Configuration, "populate_refused")
    );

    stub.script.lock().unwrap().populate = Some((500, "x".repeat(100_000)));
    let error = client(&stub)
        .populate_from("filesystem", plain, None)
        .await
        .unwrap_err();
    assert_eq!(error.owner(), Owner::Infrastructure);
    assert!(
        error.to_string().len() < 3000,
        "{}",
        error.to_string().len()
    );
    assert!(error.to_string().ends_with("(100000 bytes in all)"));

    let missing = std::path::Path::new("/no/such/world.tar.gz");
    let error = client(&stub)
        .populate("filesystem", missing)
        .await
        .unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
    assert!(
        error.to_string().contains("`/no/such/world.tar.gz`"),
        "{error}"
    );
}

#[tokio::test]
async fn apps_answers_with_the_servers() {
    let stub = Stub::start(Script::default()).await;
    let applied = client(&stub).apps(&one_server()).await.unwrap();
    assert_eq!(applied.servers, ["bad"]);
    let sent = stub.script.lock().unwrap().configured.remove(0);
    assert_eq!(
        sent,
        serde_json::json!({"mcpServers": {"bad": {"transport": "stdio", "command": "nope"}}})
    );
}

#[tokio::test]
async fn a_server_that_cannot_start_is_named_with_its_owner() {
    let not_ready = |reason: &str| {
        let body = serde_json::json!({"detail": {
            "error": "MCP servers not ready: bad", "failed_servers": ["bad"],
            "details": {"bad": {"error": reason, "attempts": 1}}}});
        Some((503, body.to_string()))
    };
    let stub = Stub::start(Script::default()).await;
    for (reason, owner) in [
        (
            "cannot start `nope`: No such file or directory (os error 2)",
            Owner::Configuration,
        ),
        (
            "ended with exit status 1\nModuleNotFoundError: does not exist",
            Owner::Infrastructure,
        ),
        (
            "No tools found after 300s (last error: Timeout)",
            Owner::Infrastructure,
        ),
    ] {
        stub.script.lock().unwrap().apps = not_ready(reason);
        let error = client(&stub).apps(&one_server()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the environment could not start server `bad`: {reason}")
        );
        assert_eq!(
            (error.owner(), error.kind()),
            (owner, "servers_not_ready"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn other_answers_of_apps_keep_their_detail() {
    let stub = Stub::start(Script::default()).await;
    for (status, body, owner, detail) in [
        (
            400,
            r#"{"detail": "server `bad`: no command"}"#,
            Owner::Configuration,
            "no command",
        ),
        (
            422,
            r#"{"detail": [{"loc": ["body", "mcpServers"], "msg": "Field required"}]}"#,
            Owner::Configuration,
            "body.mcpServers: Field required",
        ),
        (
            503,
            "upstream is away",
            Owner::Infrastructure,
            "upstream is away",
        ),
        (
            500,
            r#"{"detail": "swap failed"}"#,
            Owner::Infrastructure,
            "swap failed",
        ),
        (200, "<html>", Owner::Infrastructure, "`<html>`"),
    ] {
        stub.script.lock().unwrap().apps = Some((status, body.to_owned()));
        let error = client(&stub).apps(&one_server()).await.unwrap_err();
        assert_eq!(error.owner(), owner, "{error}");
        assert!(error.to_string().ends_with(detail), "{error}");
    }
}

#[tokio::test]
async fn a_snapshot_is_tried_again_until_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("trial/final_snapshot.tar.gz");
    let stub = Stub::start(Script {
        snapshots: vec![SnapshotAnswer::Fails, SnapshotAnswer::BreaksOff],
        ..Script::default()
    })
    .await;
    let saved = client(&stub).snapshot(&to).await.unwrap();
    assert_eq!((saved.bytes, saved.attempts), (SNAPSHOT.len() as u64, 3));
    assert_eq!(std::fs::read(&to).unwrap(), SNAPSHOT);
    assert_eq!(std::fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_snapshot_that_stays_broken_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("s.tar.gz");
    let stub = Stub::start(Script {
        snapshots: vec![SnapshotAnswer::BreaksOff; 5],
        ..Script::default()
    })
    .await;
    let error = client(&stub).snapshot(&to).await.unwrap_err();
    assert!(matches!(error, ClientError::Lost { .. }), "{error}");
    assert_eq!(stub.script.lock().unwrap().snapshots_asked, 3);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    stub.script.lock().unwrap().snapshots = vec![SnapshotAnswer::Forbidden];
    let error = client(&stub).snapshot(&to).await.unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
    assert_eq!(stub.script.lock().unwrap().snapshots_asked, 4);
}

#[tokio::test]
async fn the_read_limit_of_a_snapshot_is_for_each_part() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("s.tar.gz");
    let pause = Duration::from_millis(300);
    let stub = Stub::start(Script {
        snapshots: vec![SnapshotAnswer::Pauses(pause)],
        ..Script::default()
    })
    .await;
    client(&stub).snapshot(&to).await.unwrap();

    stub.script.lock().unwrap().snapshots = vec![SnapshotAnswer::Stalls];
    let impatient = ClientSettings {
        snapshot_read: pause,
        snapshot_attempts: 1,
        ..settings()
    };
    let client = EnvironmentClient::new(&stub.url(), impatient).unwrap();
    let error = client
        .snapshot(&folder.path().join("t.tar.gz"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`POST /data/snapshot` was not answered within 300ms"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn the_size_of_a_snapshot_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::start(Script::default()).await;
    let small = ClientSettings {
        snapshot_bytes: 10,
        ..settings()
    };
    let client = EnvironmentClient::new(&stub.url(), small).unwrap();
    let error = client.snapshot(&folder.path().join("s")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the reply to `POST /data/snapshot` is larger than the limit of 10 bytes"
    );
}

#[tokio::test]
async fn a_dropped_snapshot_leaves_no_partial_file() {
    let folder = tempfile::tempdir().unwrap();
    let stub = Stub::start(Script {
        snapshots: vec![SnapshotAnswer::Stalls],
        ..Script::default()
    })
    .await;
    let client = client(&stub);
    let to = folder.path().join("s");
    let snapshot = client.snapshot(&to);
    let dropped = tokio::time::timeout(Duration::from_millis(500), snapshot).await;
    assert!(dropped.is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_given_environment_is_checked_and_left_alone() {
    let stub = Stub::start(Script::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let request = || StartRequest::new("t", folder.path().join("environment.log"));
    let running = UrlSandbox::new(stub.url()).start(request()).await.unwrap();
    assert_eq!(running.base_url(), stub.url());
    let mut config: AppsConfig = serde_json::from_str(
        r#"{"mcpServers": {"a": {"transport": "stdio", "command": "x", "cwd": "/filesystem"}}}"#,
    )
    .unwrap();
    let unchanged = config.clone();
    assert!(running.rewrite(&mut config).is_empty());
    assert_eq!(config, unchanged);
    running.check().await.unwrap();
    let client = running.client();
    assert_eq!(running.stop().await.kind, StopKind::LeftAlone);
    client.health().await.unwrap();

    // Nobody listens at the port of a listener that is gone.
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let mut nobody = UrlSandbox::new(format!("http://{gone}"));
    nobody.ready = Duration::from_millis(200);
    let error = nobody.start(request()).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "environment_lost")
    );
    assert!(
        error.to_string().contains(&format!("http://{gone}")),
        "{error}"
    );
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_early_refusal_of_a_large_archive_is_not_taken_for_a_lost_connection() {
    let stub = Stub::start(Script {
        populate: Some((400, r#"{"detail": "`../x` leaves the world"}"#.to_owned())),
        ..Script::default()
    })
    .await;
    let client = client(&stub);
    for _ in 0..20 {
        // The stub answers without reading it.
        let archive = tokio::io::AsyncReadExt::take(tokio::io::repeat(7), 50_000_000);
        let refused = client.populate_from("filesystem", archive, Some(50_000_000));
        let error = refused.await.unwrap_err();
        assert!(
            error.to_string().ends_with("`../x` leaves the world"),
            "{error}"
        );
    }
}
