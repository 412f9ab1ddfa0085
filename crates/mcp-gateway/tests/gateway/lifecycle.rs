//! Starting, failing, dying and coming back.

use std::time::{Duration, Instant};

use formats::apps::{AppsConfig, Isolation, OnFailure, ServerConfig};
use formats::owner::Owner;
use mcp_gateway::{ApplyError, ServerPhase};
use serde_json::json;
use testkit::mcp::{HttpStub, StubServer};

use crate::client::Client;
use crate::processes::{marked, stubs};
use crate::world::{World, config, eventually, options, program, servers, stdio, stub};

/// Applies a configuration with one bad server beside a good one and returns what is said of it.
async fn refused(bad: ServerConfig) -> (ApplyError, Duration) {
    let world = World::serving([("old", stub())]).await;
    let client = world.client().await;
    let start = Instant::now();
    let error = world
        .gateway
        .apply(servers([("ok", stdio(&stub())), ("bad", bad)]))
        .await
        .unwrap_err();
    let took = start.elapsed();
    // The previous configuration keeps serving, also the sessions that were open.
    assert_eq!(client.text("echo", json!({"text": "old"})).await, "old");
    assert_eq!(client.text("count", json!({})).await, "1");
    world.end().await;
    (error, took)
}

fn reason(error: &ApplyError) -> String {
    assert_eq!((error.status(), error.owner()), (503, Owner::Configuration));
    let detail = error.detail();
    assert_eq!(detail["failed_servers"], json!(["bad"]));
    assert_eq!(detail["error"], "MCP servers not ready: bad");
    assert_eq!(detail["details"]["bad"]["attempts"], 1);
    detail["details"]["bad"]["error"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_does_not_exist_is_named_at_once() {
    let (error, took) = refused(program("no-such-binary", &[])).await;
    let reason = reason(&error);
    assert!(reason.contains("no-such-binary"), "{reason}");
    assert!(reason.contains("No such file or directory"), "{reason}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_does_not_exist_is_named() {
    let bad = ServerConfig {
        cwd: Some("/no/such/directory".to_owned()),
        ..stdio(&stub())
    };
    let reason = reason(&refused(bad).await.0);
    assert_eq!(
        reason,
        "working directory `/no/such/directory` does not exist"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_exits_tells_its_status_and_last_words() {
    let bad = StubServer {
        exit_at_start: Some(7),
        stderr: Some("the key is missing\n\u{1b}[31mgiving up".to_owned()),
        ..stub()
    };
    let reason = reason(&refused(stdio(&bad)).await.0);
    assert!(reason.contains("exit status: 7"), "{reason}");
    assert!(
        reason.contains("the key is missing\n[31mgiving up"),
        "{reason}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_silent_is_given_up_at_the_limit() {
    let world = World::with(mcp_gateway::GatewayOptions {
        start_timeout: Duration::from_millis(700),
        ..options()
    })
    .await;
    let silent = StubServer {
        silent: true,
        stderr: Some("loading a model".to_owned()),
        ..marked("silent-server")
    };
    let error = world
        .gateway
        .apply(config([("bad", silent)]))
        .await
        .unwrap_err();
    let reason = reason(&error);
    assert!(reason.contains("0.7 s (start_timeout)"), "{reason}");
    assert!(reason.contains("loading a model"), "{reason}");
    assert_eq!(stubs("silent-server"), Vec::<u32>::new());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_configuration_leaves_nothing_running() {
    let world = World::new().await;
    let good = marked("good-beside-bad");
    let error = world
        .gateway
        .apply(servers([
            ("ok", stdio(&good)),
            ("bad", program("false", &[])),
        ]))
        .await
        .unwrap_err();
    assert!(reason(&error).contains("exit status: 1"));
    assert_eq!(stubs("good-beside-bad"), Vec::<u32>::new());
    // Without any configuration there is nothing at the address.
    let response = reqwest::get(&world.url).await.unwrap();
    assert_eq!(response.status(), 404);
    assert_eq!(response.text().await.unwrap(), r#"{"detail":"Not Found"}"#);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_fail_is_left_out_and_shown() {
    let world = World::new().await;
    let skipped = ServerConfig {
        on_failure: OnFailure::Skip,
        ..program("no-such-binary", &[])
    };
    let both = servers([("ok", stdio(&stub())), ("bad", skipped)]);
    world.gateway.apply(both.clone()).await.unwrap();
    let client = world.client().await;
    assert!(
        client
            .tool_names()
            .await
            .iter()
            .all(|name| name.starts_with("ok_"))
    );
    let state = world.gateway.state();
    assert_eq!(state.servers[0].state, ServerPhase::Ready);
    assert_eq!(state.servers[1].state, ServerPhase::Failed);
    assert!(
        state.servers[1]
            .error
            .as_ref()
            .unwrap()
            .contains("no-such-binary")
    );
    // The same configuration again tries it again.
    assert!(world.gateway.apply(both).await.unwrap().duration_ms > 0.0);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tools_is_ready() {
    let world = World::serving([(
        "one",
        StubServer {
            no_tools: true,
            ..stub()
        },
    )])
    .await;
    assert_eq!(
        world.client().await.tool_names().await,
        Vec::<String>::new()
    );
    assert_eq!(world.gateway.state().servers[0].tools, Some(0));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_servers_at_all_are_an_empty_endpoint() {
    let world = World::new().await;
    let applied = world.gateway.apply(AppsConfig::default()).await.unwrap();
    assert_eq!(applied.servers, Vec::<String>::new());
    assert_eq!(
        world.client().await.tool_names().await,
        Vec::<String>::new()
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_cannot_work_are_invalid() {
    let world = World::new().await;
    let mut oauth = crate::world::remote("http://localhost/");
    oauth.auth = Some(json!("oauth"));
    let cases = [
        (
            ServerConfig {
                command: None,
                ..program("x", &[])
            },
            "needs a `command`",
        ),
        (
            ServerConfig {
                transport: "rest".to_owned(),
                ..program("x", &[])
            },
            "`rest`",
        ),
        (
            ServerConfig {
                transport: "sse".to_owned(),
                ..program("x", &[])
            },
            "a `sse` server needs a `url`",
        ),
        (
            ServerConfig {
                transport: "http".to_owned(),
                ..program("x", &[])
            },
            "needs a `url`",
        ),
        (
            crate::world::remote("not an address"),
            "not a valid address",
        ),
        (oauth, "`auth` is `oauth`: it is a bearer token"),
    ];
    for (server, words) in cases {
        let error = world
            .gateway
            .apply(servers([("x", server)]))
            .await
            .unwrap_err();
        assert_eq!(error.status(), 400);
        let detail = error.detail();
        let text = detail.as_str().unwrap();
        assert!(
            text.contains("server `x`") && text.contains(words),
            "{text}"
        );
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_transport_says_which_entries_count() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::new().await;
    let process = ServerConfig {
        url: Some("http://127.0.0.1:1/nobody".to_owned()),
        headers: Some([("not a header".to_owned(), "x".to_owned())].into()),
        ..stdio(&stub())
    };
    let reached = ServerConfig {
        transport: "streamable-http".to_owned(),
        command: Some("no-such-binary".to_owned()),
        cwd: Some("/no/such/directory".to_owned()),
        ..crate::world::remote(&server.url)
    };
    let both = servers([("process", process), ("reached", reached)]);
    world.gateway.apply(both).await.unwrap();
    let client = world.client().await;
    for name in ["process_echo", "reached_echo"] {
        assert_eq!(client.text(name, json!({"text": name})).await, name);
    }
    let state = world.gateway.state();
    assert!(state.servers[0].process_id.is_some() && state.servers[1].process_id.is_none());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_start_side_by_side() {
    let world = World::new().await;
    let slow = StubServer {
        start_delay_ms: 1500,
        ..stub()
    };
    let start = Instant::now();
    world
        .gateway
        .apply(config([
            ("a", slow.clone()),
            ("b", slow.clone()),
            ("c", slow.clone()),
            ("d", slow),
        ]))
        .await
        .unwrap();
    // One after another they would need 6 s.
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn state_lasts_over_a_hundred_calls_and_all_sessions() {
    let world = World::serving([("one", stub()), ("two", stub())]).await;
    let first = world.client().await;
    for number in 1..=99 {
        assert_eq!(first.text("one_count", json!({})).await, number.to_string());
    }
    let second = world.client().await;
    assert_eq!(second.text("one_count", json!({})).await, "100");
    assert_eq!(second.text("two_count", json!({})).await, "1");
    assert_eq!(world.gateway.state().servers[0].starts, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_isolated_server_is_each_sessions_own() {
    let world = World::new().await;
    let isolated = ServerConfig {
        isolation: Isolation::Session,
        ..stdio(&marked("isolated-server"))
    };
    let both = servers([("own", isolated), ("all", stdio(&stub()))]);
    world.gateway.apply(both).await.unwrap();
    let (first, second) = (world.client().await, world.client().await);
    for number in 1..=2 {
        for client in [&first, &second] {
            assert_eq!(
                client.text("own_count", json!({})).await,
                number.to_string()
            );
        }
    }
    first.text("all_count", json!({})).await;
    assert_eq!(second.text("all_count", json!({})).await, "2");
    first.text("own_add_tool", json!({"name": "private"})).await;
    assert!(first.tool_names().await.contains(&"own_private".to_owned()));
    assert!(
        !second
            .tool_names()
            .await
            .contains(&"own_private".to_owned())
    );
    // One for each session, beside the one that is asked for lists.
    assert_eq!(stubs("isolated-server").len(), 3);
    let shown = world.gateway.state().servers[0].sessions.clone();
    let of = |client: &Client| {
        let id = &client.session[..8];
        let one = shown.iter().find(|one| one.session == id).unwrap();
        (one.state, one.starts, one.process_id.unwrap())
    };
    assert_eq!((of(&first).0, of(&first).1), (ServerPhase::Ready, 1));
    assert_ne!(of(&first).2, of(&second).2);
    assert!(world.gateway.state().servers[1].sessions.is_empty());
    let text = serde_json::to_string(&world.gateway.state()).unwrap();
    assert!(!text.contains(&first.session), "the id is a secret: {text}");
    first.end_session().await;
    let limit = Duration::from_secs(5);
    eventually(limit, "it ends with its session", async || {
        stubs("isolated-server").len() == 2
    })
    .await;
    world.gateway.apply(AppsConfig::default()).await.unwrap();
    eventually(limit, "all end", async || {
        stubs("isolated-server").is_empty()
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_fails_its_call_and_comes_back() {
    let world = World::serving([("one", stub()), ("two", stub())]).await;
    let client = world.client().await;
    client.text("two_count", json!({})).await;
    let slow = client.tool("one_sleep", json!({"ms": 20_000}));
    let crash = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        client
            .tool("one_crash", json!({"text": "out of memory", "code": 9}))
            .await
    };
    let (slow, crash) = tokio::join!(slow, crash);
    for result in [slow.unwrap(), crash.unwrap()] {
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("server `one` exited (exit status: 9)"),
            "{text}"
        );
        assert!(text.contains("out of memory"), "{text}");
    }
    let state = &world.gateway.state().servers[0];
    assert_eq!(state.state, ServerPhase::Stopped);
    assert!(state.error.as_ref().unwrap().contains("exit status: 9"));
    // Another life begins; the neighbour did not notice.
    assert_eq!(client.text("one_count", json!({})).await, "1");
    assert_eq!(client.text("two_count", json!({})).await, "2");
    assert_eq!(world.gateway.state().servers[0].starts, 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_come_back_is_not_tried_all_the_time() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("works");
    std::fs::write(&flag, "").unwrap();
    let direct = stdio(&stub());
    let mut args = vec![
        "-c",
        r#"test -e "$FLAG" || { echo "no flag" >&2; exit 4; }; exec "$0" "$@""#,
        direct.command.as_deref().unwrap(),
    ];
    args.extend(direct.args.iter().flatten().map(String::as_str));
    let mut server = program("sh", &args);
    let mut env = direct.env.clone().unwrap();
    env.insert("FLAG".to_owned(), flag.to_str().unwrap().to_owned());
    server.env = Some(env);
    world
        .gateway
        .apply(servers([("one", server)]))
        .await
        .unwrap();
    let client = world.client().await;
    std::fs::remove_file(&flag).unwrap();
    client.tool("crash", json!({"code": 1})).await.unwrap();
    for _ in 0..5 {
        let result = client.tool("echo", json!({"text": "x"})).await.unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("exit status: 4") && text.contains("no flag"),
            "{text}"
        );
    }
    let starts = world.gateway.state().servers[0].starts;
    assert!(
        starts < 6,
        "{starts} starts for 5 calls: no wait between them"
    );
    std::fs::write(&flag, "").unwrap();
    eventually(Duration::from_secs(8), "it comes back", async || {
        client.tool("echo", json!({"text": "x"})).await.unwrap()["isError"] != true
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_the_documented_environment_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let mut options = options();
    options.environment = [
        ("FILESYSTEM_ROOT".to_owned(), "/world".to_owned()),
        ("APPS_DATA_ROOT".to_owned(), "/data".to_owned()),
    ]
    .into();
    let world = World::with(options).await;
    let mut server = stdio(&stub());
    server.cwd = Some(folder.to_str().unwrap().to_owned());
    let env = server.env.get_or_insert_default();
    env.insert("APPS_DATA_ROOT".to_owned(), "/own".to_owned());
    env.insert("OWN".to_owned(), "$HOME".to_owned());
    world
        .gateway
        .apply(servers([("one", server)]))
        .await
        .unwrap();
    let text = world.client().await.text("environment", json!({})).await;
    let seen: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(seen["directory"], folder.to_str().unwrap());
    let variables = seen["variables"].as_object().unwrap();
    assert_eq!(variables["FILESYSTEM_ROOT"], "/world");
    assert_eq!(variables["APPS_DATA_ROOT"], "/own");
    assert_eq!(variables["OWN"], "$HOME");
    for name in variables.keys() {
        let known = [
            "HOME",
            "LOGNAME",
            "PATH",
            "SHELL",
            "TERM",
            "USER",
            "FILESYSTEM_ROOT",
            "APPS_DATA_ROOT",
            "OWN",
            "TESTKIT_MCP_STUB",
        ];
        assert!(
            known.contains(&name.as_str()),
            "`{name}` reached the server"
        );
    }
    world.end().await;
}
