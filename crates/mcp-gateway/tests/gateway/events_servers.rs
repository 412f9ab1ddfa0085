//! Servers of the first revision over HTTP: an event stream, and an address for messages.

use std::time::Duration;

use formats::apps::ServerConfig;
use mcp_gateway::GatewayOptions;
use serde_json::json;
use testkit::mcp::EventsStub;

use crate::world::{World, eventually, options, remote, servers, stub};

fn events(url: &str) -> ServerConfig {
    ServerConfig {
        transport: "sse".to_owned(),
        ..remote(url)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_an_event_stream_serves_as_any_other() {
    let server = EventsStub::start(stub()).await;
    let world = World::new().await;
    let mut with_token = events(&server.url);
    with_token.auth = Some(json!("t0ken"));
    world
        .gateway
        .apply(servers([("old", with_token)]))
        .await
        .unwrap();
    let client = world.client().await;
    for number in 1..=50 {
        assert_eq!(client.text("count", json!({})).await, number.to_string());
    }
    assert_eq!(server.streams_opened(), 1);
    let params =
        json!({"name": "progress", "arguments": {"steps": 3}, "_meta": {"progressToken": "p"}});
    let answer = client.exchange("tools/call", params).await;
    assert_eq!(answer.messages.len(), 4, "{answer:?}");
    let text = client
        .text("ask", json!({"method": "roots/list", "params": {}}))
        .await;
    assert!(text.contains("-32601"), "{text}");
    let sent = server.authorizations();
    // The caller's identity is the agent's; a configured token wins.
    assert!(sent.iter().all(|one| one == "Bearer t0ken"), "{sent:?}");
    assert_eq!(world.gateway.state().servers[0].transport, "sse");
    world.end().await;
    eventually(Duration::from_secs(5), "the stream is closed", async || {
        server.streams_open() == 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_stream_ends_its_calls_and_the_next_call_opens_another() {
    let server = EventsStub::start(stub()).await;
    let world = World::configured(servers([("old", events(&server.url))])).await;
    let client = world.client().await;
    client.text("count", json!({})).await;
    let (result, ()) = tokio::join!(
        client.tool("sleep", json!({"ms": 10_000, "label": "x"})),
        async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            server.close_streams();
        }
    );
    let text = result.unwrap()["content"][0]["text"].to_string();
    assert!(text.contains("`old` closed its event stream"), "{text}");
    assert_eq!(client.text("count", json!({})).await, "1");
    assert_eq!(server.streams_opened(), 2);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_go_to_no_other_origin() {
    let other = EventsStub::start(stub()).await;
    let address = other.url.replace("/sse", "/messages?session_id=s1");
    let server = EventsStub::naming(stub(), Some(&address)).await;
    let world = World::with(GatewayOptions {
        start_timeout: Duration::from_millis(800),
        ..options()
    })
    .await;
    let mut with_token = events(&server.url);
    with_token.auth = Some(json!("t0ken"));
    let error = world
        .gateway
        .apply(servers([("old", with_token)]))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("another origin"), "{error}");
    assert_eq!(other.authorizations(), Vec::<String>::new());
    world.end().await;
}
