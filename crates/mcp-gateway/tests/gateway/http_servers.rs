//! Servers behind the gateway that are reached over HTTP.

use std::time::{Duration, Instant};

use mcp_gateway::{GatewayOptions, ServerPhase};
use serde_json::json;
use testkit::mcp::HttpStub;

use crate::client::{Client, message};
use crate::world::{World, eventually, options, remote, servers, stdio, stub};

#[tokio::test(flavor = "multi_thread")]
async fn one_handshake_and_state_that_lasts() {
    for as_events in [true, false] {
        let server = HttpStub::start(stub(), as_events).await;
        let world = World::configured(servers([("one", remote(&server.url))])).await;
        let client = world.client().await;
        for number in 1..=100 {
            assert_eq!(client.text("count", json!({})).await, number.to_string());
        }
        assert_eq!(server.sessions_opened(), 1);
        world.end().await;
        assert_eq!(server.sessions_deleted(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_process_and_with_everything_that_it_sends() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::configured(servers([
        ("web", remote(&server.url)),
        ("local", stdio(&stub())),
    ]))
    .await;
    let client = Client::open_as(&world.url, "2025-11-25", &json!({})).await;
    assert_eq!(client.text("local_echo", json!({"text": "l"})).await, "l");
    let params =
        json!({"name": "web_progress", "arguments": {"steps": 3}, "_meta": {"progressToken": 0}});
    let answer = client.exchange("tools/call", params).await;
    assert_eq!(answer.messages.len(), 4);
    assert_eq!(answer.messages[0]["params"]["progressToken"], 0);
    let text = client
        .text("web_ask", json!({"method": "roots/list", "params": {}}))
        .await;
    assert!(text.contains("-32601"), "{text}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configured_headers_win_and_credentials_of_clients_stay_out() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::new().await;
    let mut with_headers = remote(&server.url);
    with_headers.headers = Some([("X-Own".to_owned(), "configured".to_owned())].into());
    world
        .gateway
        .apply(servers([("one", with_headers)]))
        .await
        .unwrap();
    let client = world.client().await;
    for method in ["tools/call", "resources/read"] {
        let params = json!({"name": "echo", "uri": "data://info", "arguments": {"text": "x"}});
        let message = message(method, method, &params);
        let post = client
            .post()
            .bearer_auth("secret")
            .header("x-own", "client")
            .header("x-agent-id", "a7");
        let response = post.body(message.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
    let seen = server.seen();
    for one in &seen {
        assert!(
            one.headers.values().all(|value| !value.contains("secret")),
            "{one:?}"
        );
    }
    let of = |method: &str| {
        &seen
            .iter()
            .find(|one| one.method == method)
            .unwrap()
            .headers
    };
    assert_eq!(of("tools/call")["authorization"], "Bearer target_agent");
    assert_eq!(of("tools/call")["x-own"], "configured");
    assert_eq!(of("tools/call")["x-agent-id"], "a7");
    assert_eq!(of("tools/call")["mcp-protocol-version"], "2025-11-25");
    assert_eq!(of("resources/read").get("authorization"), None);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bearer_token_of_the_configuration_is_used() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::new().await;
    let mut with_token = remote(&server.url);
    with_token.auth = Some(json!("t0ken"));
    world
        .gateway
        .apply(servers([("one", with_token)]))
        .await
        .unwrap();
    world
        .client()
        .await
        .text("echo", json!({"text": "x"}))
        .await;
    for one in server.seen() {
        assert_eq!(
            one.headers["authorization"], "Bearer t0ken",
            "{}",
            one.method
        );
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_session_is_opened_again() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::configured(servers([("one", remote(&server.url))])).await;
    let client = world.client().await;
    client.text("count", json!({})).await;
    server.forget_sessions();
    assert_eq!(client.text("count", json!({})).await, "1");
    assert_eq!(client.text("count", json!({})).await, "2");
    assert_eq!(server.sessions_opened(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_is_named() {
    let world = World::with(GatewayOptions {
        start_timeout: Duration::from_millis(1500),
        ..options()
    })
    .await;
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp?key=s3cret", unused.local_addr().unwrap());
    drop(unused);
    let error = world
        .gateway
        .apply(servers([("away", remote(&url))]))
        .await
        .unwrap_err();
    let detail = error.detail();
    let reason = detail["details"]["away"]["error"].as_str().unwrap();
    assert!(
        reason.contains("cannot connect to server `away`"),
        "{reason}"
    );
    assert!(!reason.contains("s3cret"), "{reason}");
    assert!(
        detail["details"]["away"]["attempts"].as_u64().unwrap() >= 2,
        "{detail}"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_served_is_checked_but_not_listed() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::with(GatewayOptions {
        start_timeout: Duration::from_millis(500),
        ..options()
    })
    .await;
    let mut unserved = remote(&server.url);
    unserved.serve_mcp_tools = false;
    let both = servers([("rest", unserved.clone()), ("one", remote(&server.url))]);
    let applied = world.gateway.apply(both).await.unwrap();
    assert_eq!(applied.servers, ["rest", "one"]);
    assert_eq!(
        (server.sessions_opened(), server.sessions_deleted()),
        (2, 1)
    );
    // Only one server serves, so its names are unchanged.
    assert_eq!(world.client().await.tool_names().await[0], "echo");
    assert_eq!(
        world.gateway.state().servers[0].state,
        ServerPhase::NotServed
    );
    unserved.url = Some(format!("{}-wrong", server.url));
    let error = world
        .gateway
        .apply(servers([("rest", unserved)]))
        .await
        .unwrap_err();
    let reason = &error.detail()["details"]["rest"]["error"];
    assert!(reason.as_str().unwrap().contains("HTTP 404"), "{reason}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_reaches_the_server() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::with(GatewayOptions {
        call_timeout: Duration::from_millis(500),
        ..options()
    })
    .await;
    world
        .gateway
        .apply(servers([("one", remote(&server.url))]))
        .await
        .unwrap();
    let client = world.client().await;
    let start = Instant::now();
    let result = client
        .tool("sleep", json!({"ms": 60_000, "label": "late"}))
        .await
        .unwrap();
    assert_eq!(result["isError"], true);
    assert!(start.elapsed() < Duration::from_secs(8));
    eventually(Duration::from_secs(5), "the server noticed", async || {
        client.text("noticed", json!({})).await == r#"["late"]"#
    })
    .await;
    world.end().await;
}
