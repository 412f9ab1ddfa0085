//! Many calls at once, long ones, cancelled ones, large ones.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_gateway::GatewayOptions;
use serde_json::json;
use testkit::mcp::StubServer;

use crate::client::tool_call;
use crate::world::{World, config, eventually, options, stub};

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_delays_no_other() {
    let world = World::serving([("one", stub()), ("two", stub())]).await;
    let client = Arc::new(world.client().await);
    let slow = client.clone();
    let slow = tokio::spawn(async move {
        slow.text("one_sleep", json!({"ms": 3000, "label": "s"}))
            .await
    });
    let start = Instant::now();
    for server in ["one", "two"] {
        for _ in 0..10 {
            client
                .text(&format!("{server}_echo"), json!({"text": "x"}))
                .await;
        }
    }
    assert!(
        !slow.is_finished(),
        "20 quick calls took {:?}",
        start.elapsed()
    );
    assert_eq!(slow.await.unwrap(), "slept s");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_list_delays_only_up_to_its_limit() {
    let world = World::with(GatewayOptions {
        list_timeout: Duration::from_secs(3),
        ..options()
    })
    .await;
    let slow = StubServer {
        list_delay_ms: 1200,
        ..stub()
    };
    world
        .gateway
        .apply(config([("slow", slow), ("quick", stub())]))
        .await
        .unwrap();
    let client = world.client().await;
    let start = Instant::now();
    assert_eq!(client.text("quick_echo", json!({"text": "x"})).await, "x");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    world.end().await;

    let world = World::with(GatewayOptions {
        list_timeout: Duration::from_millis(500),
        ..options()
    })
    .await;
    let error = world
        .gateway
        .apply(config([(
            "slow",
            StubServer {
                list_delay_ms: 60_000,
                ..stub()
            },
        )]))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("0.5 s (list_timeout)"),
        "{error}"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_run_at_once_and_each_gets_its_own_answer() {
    let world = World::serving([("one", stub())]).await;
    let mut callers = Vec::new();
    for caller in 0..4 {
        let client = world.client().await;
        callers.push(tokio::spawn(async move {
            let calls = (0..16).map(|call| {
                let label = format!("{caller}-{call}");
                let client = &client;
                async move {
                    let text = client
                        .text("sleep", json!({"ms": 300, "label": label}))
                        .await;
                    assert_eq!(text, format!("slept {label}"));
                }
            });
            futures::future::join_all(calls).await;
        }));
    }
    let start = Instant::now();
    for caller in callers {
        caller.await.unwrap();
    }
    // One after another they would need 19 s.
    assert!(
        start.elapsed() < Duration::from_secs(9),
        "{:?}",
        start.elapsed()
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_here_and_at_the_server() {
    let world = World::serving([("one", stub())]).await;
    let client = Arc::new(world.client().await);
    let caller = client.clone();
    let call = tokio::spawn(async move {
        let arguments = json!({"ms": 60_000, "label": "given-up"});
        caller.send(&tool_call("c", "sleep", &arguments)).await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}});
    assert_eq!(client.send(&notice).await.status, 202);
    let answer = call.await.unwrap();
    assert_eq!(
        answer.last(),
        &json!({"jsonrpc": "2.0", "id": "c", "error": {"code": 0, "message": "Request cancelled"}})
    );
    eventually(Duration::from_secs(5), "the server noticed", async || {
        client.text("noticed", json!({})).await == r#"["given-up"]"#
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_does_not_cancel_its_call() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let message = tool_call(1, "sleep", &json!({"ms": 700, "label": "alone"}));
    let send = client.post().body(message.to_string()).send();
    assert!(
        tokio::time::timeout(Duration::from_millis(200), send)
            .await
            .is_err()
    );
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(client.text("noticed", json!({})).await, "[]");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_given_up() {
    let world = World::serving_with(
        GatewayOptions {
            call_timeout: Duration::from_millis(400),
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = world.client().await;
    let result = client
        .tool("sleep", json!({"ms": 60_000, "label": "late"}))
        .await
        .unwrap();
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("0.4 s (call_timeout)"), "{text}");
    eventually(Duration::from_secs(5), "the server was told", async || {
        client.text("noticed", json!({})).await == r#"["late"]"#
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_comes_whole() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let bytes = 20 * 1024 * 1024;
    let text = client.text("big", json!({"bytes": bytes})).await;
    assert_eq!(text.len(), bytes);
    // And a large argument.
    let text = "y".repeat(6 * 1024 * 1024);
    assert_eq!(client.text("echo", json!({"text": text})).await, text);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_above_a_limit_is_an_error_that_names_it() {
    for (limits, name) in [
        (
            GatewayOptions {
                max_message_bytes: 100_000,
                ..options()
            },
            "100000 (max_message_bytes)",
        ),
        (
            GatewayOptions {
                max_result_bytes: 100_000,
                ..options()
            },
            "100000 (max_result_bytes)",
        ),
    ] {
        let world = World::with(limits).await;
        world
            .gateway
            .apply(config([("one", stub())]))
            .await
            .unwrap();
        let client = Arc::new(world.client().await);
        let other = client.clone();
        let other =
            tokio::spawn(
                async move { other.text("sleep", json!({"ms": 800, "label": "o"})).await },
            );
        let result = client.tool("big", json!({"bytes": 200_000})).await.unwrap();
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(name), "{text}");
        // The connection and other calls go on.
        assert_eq!(client.text("echo", json!({"text": "after"})).await, "after");
        assert_eq!(other.await.unwrap(), "slept o");
        world.end().await;
    }
}
