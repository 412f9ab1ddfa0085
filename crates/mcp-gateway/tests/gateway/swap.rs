//! Replacing one configuration by another under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use formats::apps::AppsConfig;
use mcp_gateway::GatewayOptions;
use serde_json::json;
use testkit::mcp::StubServer;

use crate::client::ping;
use crate::processes::{gone, marked, stubs};
use crate::world::{World, config, eventually, options, stub};

#[tokio::test(flavor = "multi_thread")]
async fn the_same_configuration_changes_nothing() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    client.text("count", json!({})).await;
    let again = world
        .gateway
        .apply(config([("one", stub())]))
        .await
        .unwrap();
    assert_eq!(again.servers, ["one"]);
    assert!(again.duration_ms.to_bits() == 0, "{}", again.duration_ms);
    assert_eq!(client.text("count", json!({})).await, "2");
    // Neither does the same in another order.
    let two = |names: [&'static str; 2]| config(names.map(|name| (name, stub())));
    let first = world.gateway.apply(two(["one", "two"])).await.unwrap();
    assert!(first.duration_ms > 0.0);
    let turned = world.gateway.apply(two(["two", "one"])).await.unwrap();
    assert_eq!(turned.servers, ["two", "one"]);
    assert!(turned.duration_ms.to_bits() == 0, "{}", turned.duration_ms);
    world
        .gateway
        .apply(config([("one", stub())]))
        .await
        .unwrap();
    // An empty list of allowed names means the same for calls, but is another configuration.
    let other = AppsConfig {
        allowed_tool_names: Some(vec![]),
        ..config([("one", stub())])
    };
    assert!(world.gateway.apply(other).await.unwrap().duration_ms > 0.0);
    assert_eq!(client.text("count", json!({})).await, "1");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_configurations_at_once_are_applied_once() {
    let world = World::new().await;
    let mark = "applied-once";
    let apply = || world.gateway.apply(config([("one", marked(mark))]));
    let (a, b, c) = tokio::join!(apply(), apply(), apply());
    let unchanged = [a, b, c]
        .into_iter()
        .filter(|result| result.as_ref().unwrap().duration_ms == 0.0)
        .count();
    assert_eq!(unchanged, 2);
    assert_eq!(stubs(mark).len(), 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_configurations_change() {
    let version = |name: &str| StubServer {
        extra_tools: vec![name.to_owned()],
        ..stub()
    };
    let world = World::serving([("one", version("v0"))]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicUsize::new(0));
    let mut callers = Vec::new();
    for _ in 0..8 {
        let client = world.client().await;
        let (stop, calls) = (stop.clone(), calls.clone());
        callers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let text = calls.fetch_add(1, Ordering::Relaxed).to_string();
                assert_eq!(client.text("echo", json!({"text": text})).await, text);
            }
        }));
    }
    for number in 1..=5 {
        let next = version(&format!("v{number}"));
        world.gateway.apply(config([("one", next)])).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(calls.load(Ordering::Relaxed) > 8);
    let names = world.client().await.tool_names().await;
    assert!(names.contains(&"v5".to_owned()) && !names.contains(&"v4".to_owned()));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_finishes_on_its_old_server() {
    let world = World::serving([("one", marked("drained"))]).await;
    let client = Arc::new(world.client().await);
    let caller = client.clone();
    let call = tokio::spawn(async move {
        caller
            .text("sleep", json!({"ms": 1500, "label": "x"}))
            .await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    world
        .gateway
        .apply(config([("two", stub())]))
        .await
        .unwrap();
    assert_eq!(client.text("echo", json!({"text": "new"})).await, "new");
    assert_eq!(stubs("drained").len(), 1, "it still works");
    assert_eq!(call.await.unwrap(), "slept x");
    gone("drained").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_outlasts_the_drain_is_answered() {
    let world = World::serving_with(
        GatewayOptions {
            drain_timeout: Duration::from_millis(300),
            ..options()
        },
        [("one", marked("cut-off"))],
    )
    .await;
    let client = Arc::new(world.client().await);
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.tool("sleep", json!({"ms": 60_000})).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    world
        .gateway
        .apply(config([("two", stub())]))
        .await
        .unwrap();
    let result = call.await.unwrap().unwrap();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("configuration") && text.contains("replaced"),
        "{text}"
    );
    gone("cut-off").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_does_not_stop_its_swap() {
    let world = World::serving([("one", stub())]).await;
    let slow = StubServer {
        start_delay_ms: 800,
        extra_tools: vec!["late".to_owned()],
        ..stub()
    };
    let apply = world.gateway.apply(config([("one", slow)]));
    assert!(
        tokio::time::timeout(Duration::from_millis(200), apply)
            .await
            .is_err()
    );
    let client = world.client().await;
    eventually(Duration::from_secs(8), "the swap is done", async || {
        client.tool_names().await.contains(&"late".to_owned())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_another_swap_has_a_limit() {
    let world = World::with(GatewayOptions {
        apply_queue_timeout: Duration::from_millis(200),
        ..options()
    })
    .await;
    let slow = StubServer {
        start_delay_ms: 1500,
        ..stub()
    };
    let (first, second) = tokio::join!(world.gateway.apply(config([("one", slow)])), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.gateway.apply(config([("two", stub())])).await
    });
    first.unwrap();
    let error = second.unwrap_err();
    assert_eq!(error.status(), 503);
    assert!(error.to_string().contains("apply_queue_timeout"), "{error}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_a_swap_in_progress() {
    let world = World::new().await;
    let never_ready = StubServer {
        silent: true,
        ..marked("half-started")
    };
    let apply = world.gateway.apply(config([
        ("one", never_ready),
        ("two", marked("half-started")),
    ]));
    let shutdown = async {
        let limit = Duration::from_secs(8);
        eventually(limit, "they start", async || {
            stubs("half-started").len() == 2
        })
        .await;
        world.gateway.shutdown().await;
        assert_eq!(stubs("half-started"), Vec::<u32>::new());
    };
    let (applied, ()) = tokio::join!(apply, shutdown);
    assert_eq!(
        applied.unwrap_err().to_string(),
        "the gateway was shut down"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_shutdown_nothing_is_applied_or_served() {
    let world = World::serving([("one", marked("shut-down"))]).await;
    let client = world.client().await;
    world.gateway.shutdown().await;
    assert_eq!(stubs("shut-down"), Vec::<u32>::new());
    assert_eq!(client.send(&ping(1)).await.status, 404);
    let error = world
        .gateway
        .apply(config([("one", stub())]))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "the gateway was shut down");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_takes_no_longer_than_it_may() {
    let stubborn = StubServer {
        ignore_eof: true,
        ..marked("stubborn-shutdown")
    };
    let world = World::serving_with(
        GatewayOptions {
            stop_grace: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(20),
            ..options()
        },
        [("one", stubborn)],
    )
    .await;
    let client = Arc::new(world.client().await);
    let caller = client.clone();
    let call = tokio::spawn(async move {
        let arguments = json!({"ms": 15_000, "label": "x"});
        caller.tool("sleep", arguments).await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let started = Instant::now();
    world
        .gateway
        .shutdown_within(Duration::from_millis(700))
        .await;
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    gone("stubborn-shutdown").await;
    let result = call.await.unwrap();
    assert!(result.is_err() || result.unwrap()["isError"] == true);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_shown() {
    let world = World::new().await;
    let mut server = crate::world::stdio(&stub());
    server
        .env
        .get_or_insert_default()
        .insert("KEY".to_owned(), "s3cret".to_owned());
    world
        .gateway
        .apply(crate::world::servers([("one", server)]))
        .await
        .unwrap();
    let shown = serde_json::to_string(&world.gateway.state()).unwrap();
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(shown.contains(r#""KEY":"[redacted]""#), "{shown}");
    world.end().await;
}
