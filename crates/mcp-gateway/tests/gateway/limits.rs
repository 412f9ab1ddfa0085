//! Each limit that has no place elsewhere, crossed once.

use std::time::{Duration, Instant};

use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use mcp_gateway::GatewayOptions;
use serde_json::{Value, json};
use testkit::mcp::{HttpStub, StubServer};

use crate::client::{Client, events, tool_call};
use crate::world::{World, config, options, remote, servers, stub};

/// The text of a tool's result that is an error.
async fn failure(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.tool(tool, arguments).await.unwrap();
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_only_so_many_calls_and_others_wait_for_so_long() {
    let world = World::serving_with(
        GatewayOptions {
            max_calls_per_server: 1,
            call_timeout: Duration::from_millis(900),
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = world.client().await;
    let after = |ms: u64, tool: &'static str, arguments: Value| {
        let client = &client;
        async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            failure(client, tool, arguments).await
        }
    };
    // The first is given up after 0.9 s, the second begins then, and the third has waited long enough.
    let (first, second, third) = tokio::join!(
        after(0, "sleep", json!({"ms": 60_000})),
        after(150, "sleep", json!({"ms": 60_000})),
        after(300, "echo", json!({"text": "x"})),
    );
    for slow in [first, second] {
        assert!(slow.contains("0.9 s (call_timeout)"), "{slow}");
    }
    let right = "was busy with 1 calls for 0.9 s (max_calls_per_server, call_timeout)";
    assert!(third.contains(right), "{third}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_only_so_many_pages() {
    let world = World::with(GatewayOptions {
        max_list_pages: 5,
        ..options()
    })
    .await;
    let paged = StubServer {
        page_size: Some(1),
        ..stub()
    };
    let error = world
        .gateway
        .apply(config([("one", paged)]))
        .await
        .unwrap_err();
    let right = "`tools/list` has more than 5 pages (max_list_pages)";
    assert!(error.to_string().contains(right), "{error}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_answer_is_kept_only_for_a_while() {
    let world = World::serving_with(
        GatewayOptions {
            resume_window: Duration::from_millis(300),
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = Client::open_as(&world.url, "2025-11-25", &json!({})).await;
    let mut call = tool_call(1, "progress", &json!({"steps": 1}));
    call["params"]["_meta"] = json!({"progressToken": 1});
    let answer = client.send(&call).await;
    let (first, _) = events(&answer.text).swap_remove(0);
    let resume = || {
        let get = client.http.get(&client.url);
        get.header("accept", "text/event-stream")
            .header("mcp-session-id", &client.session)
            .header("last-event-id", &first)
            .send()
    };
    assert_eq!(resume().await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_millis(500)).await;
    client.text("echo", json!({"text": "x"})).await;
    let late = resume().await.unwrap();
    assert_eq!(late.status(), 404);
    let text = late.text().await.unwrap();
    assert!(text.contains("no longer kept (resume_window)"), "{text}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_may_be_silent_only_for_so_long() {
    let server = HttpStub::start(stub(), true).await;
    let world = World::with(GatewayOptions {
        http_read_timeout: Duration::from_secs(1),
        ..options()
    })
    .await;
    let one = servers([("one", remote(&server.url))]);
    world.gateway.apply(one).await.unwrap();
    let client = world.client().await;
    assert_eq!(
        failure(&client, "sleep", json!({"ms": 60_000})).await,
        "Error calling tool 'sleep': Upstream request timed out, please retry"
    );
    assert_eq!(client.text("echo", json!({"text": "x"})).await, "x");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_has_only_so_long_to_take_a_connection() {
    let place = testkit::Unreachable::open().await.unwrap();
    let world = World::with(GatewayOptions {
        http_connect_timeout: Duration::from_millis(300),
        reach_timeout: Duration::from_secs(1),
        ..options()
    })
    .await;
    let one = servers([("away", remote(&format!("http://{}/mcp", place.address())))]);
    let started = Instant::now();
    let refused = world.gateway.apply(one).await.unwrap_err().to_string();
    // Without the limit the first attempt would last as long as the start may: minutes.
    assert!(started.elapsed() < Duration::from_secs(20), "{refused}");
    let told = "`away`: cannot connect to server `away`";
    assert!(
        refused.contains(told) && refused.contains("tcp connect error"),
        "{refused}"
    );
    world.end().await;
}

/// An MCP server that answers calls with 429.
async fn overloaded(request: Request) -> Response {
    if request.method() != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let body: Bytes = to_bytes(request.into_body(), 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "overloaded", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        "tools/call" => return (StatusCode::TOO_MANY_REQUESTS, "slow down").into_response(),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_too_much_to_do_says_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(overloaded);
    tokio::spawn(async move { axum::serve(listener, app).await });
    let world = World::configured(servers([("one", remote(&url))])).await;
    let client = world.client().await;
    assert_eq!(
        failure(&client, "t", json!({})).await,
        "Error calling tool 't': Rate limited by upstream API, please retry later"
    );
    world.end().await;
}
