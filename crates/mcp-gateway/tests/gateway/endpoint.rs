//! The transport: sessions, statuses, event streams.

use std::time::Duration;

use mcp_gateway::GatewayOptions;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::client::{Answer, BOTH, Client, events, initialize, message, ping, tool_call};
use crate::world::{World, eventually, options, stub};

/// Sends a request that the client would not send, and returns status, error code and message.
async fn status(request: RequestBuilder) -> (u16, Value, String) {
    let answer = Answer::of(request.send().await.unwrap()).await;
    let message = answer.messages.first().cloned().unwrap_or_default();
    let text = message["error"]["message"].as_str().unwrap_or(&answer.text);
    (
        answer.status.as_u16(),
        message["error"]["code"].clone(),
        text.to_owned(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_says_what_the_reference_says() {
    let world = World::serving([("one", stub())]).await;
    let nobody = Client::open(&world.url).await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let post = nobody
            .http
            .post(&world.url)
            .header("accept", BOTH)
            .json(&initialize(asked, &json!({})));
        let answer = Answer::of(post.send().await.unwrap()).await;
        let session = answer.session.clone().unwrap();
        assert!(session.len() == 32 && session.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let result = &answer.last()["result"];
        assert_eq!(result["protocolVersion"], agreed);
        assert_eq!(result["serverInfo"]["name"], "Gateway");
        assert_eq!(result.get("instructions"), None);
        assert_eq!(
            result["capabilities"]["tools"],
            json!({"listChanged": true})
        );
        assert_eq!(
            result["capabilities"]["prompts"],
            json!({"listChanged": true})
        );
        assert_eq!(result["capabilities"]["logging"], json!({}));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_have_their_status() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let bare = || {
        client
            .http
            .post(&client.url)
            .header("content-type", "application/json")
            .header("accept", BOTH)
    };
    let body = ping(1).to_string();
    let without = status(bare().body(body.clone())).await;
    assert_eq!(
        without,
        (
            400,
            json!(-32600),
            "Bad Request: Missing session ID".to_owned()
        )
    );
    let unknown = status(
        bare()
            .header("mcp-session-id", "0".repeat(32))
            .body(body.clone()),
    )
    .await;
    assert_eq!(
        unknown,
        (404, json!(-32600), "Session not found".to_owned())
    );
    let version = status(
        client
            .post()
            .header("mcp-protocol-version", "1999-01-01")
            .body(body.clone()),
    )
    .await;
    assert_eq!((version.0, version.1), (400, json!(-32600)));
    let accept = client
        .http
        .post(&client.url)
        .header("content-type", "application/json")
        .header("accept", "text/plain");
    assert_eq!(status(accept.body(body.clone())).await.0, 406);
    let kind = client
        .http
        .post(&client.url)
        .header("content-type", "text/plain")
        .header("accept", BOTH);
    assert_eq!(
        status(kind.body(body.clone())).await,
        (400, Value::Null, "Invalid Content-Type header".to_owned())
    );
    let post = |text: &'static str| status(client.post().body(text));
    let cut = post(r#"{"jsonrpc":"2.0","id":1,"#).await;
    assert_eq!((cut.0, cut.1), (400, json!(-32700)));
    for wrong in [
        r#"{"foo":1}"#,
        r#"[{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
        "7",
    ] {
        let (status, code, _) = post(wrong).await;
        assert_eq!((status, code), (400, json!(-32602)), "{wrong}");
    }
    let (status_of_params, code, _) =
        post(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#).await;
    assert_eq!((status_of_params, code), (400, json!(-32602)));
    let put = client
        .http
        .request(Method::PUT, &client.url)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            put.status().as_u16(),
            put.headers()["allow"].to_str().unwrap()
        ),
        (405, "GET, POST, DELETE")
    );
    let below = client
        .http
        .get(format!("{}more", client.url))
        .send()
        .await
        .unwrap();
    assert_eq!(
        (
            below.status().as_u16(),
            below.text().await.unwrap().as_str()
        ),
        (404, "Not Found")
    );
    let error = client
        .request("no/such/method", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32601);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_handshake_opens_a_session() {
    let world = World::serving([("one", stub())]).await;
    let http = reqwest::Client::new();
    let post = |accept: &str| {
        http.post(&world.url)
            .header("content-type", "application/json")
            .header("accept", accept)
    };
    let handshake = initialize("2025-06-18", &json!({}));
    for (refused, right) in [
        (post(BOTH).body(ping(1).to_string()), 400),
        (post("text/plain").body(handshake.to_string()), 406),
        (post(BOTH).body("{"), 400),
        (post(BOTH).body(json!([handshake]).to_string()), 400),
        (
            http.post(&world.url)
                .body(handshake.to_string())
                .header("accept", BOTH),
            400,
        ),
        (http.delete(&world.url), 400),
        (
            http.get(&world.url).header("accept", "text/event-stream"),
            400,
        ),
    ] {
        let answer = Answer::of(refused.send().await.unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.session), (right, None));
    }
    assert_eq!(world.gateway.state().sessions, 0);

    let opened = post(BOTH).body(handshake.to_string()).send().await.unwrap();
    let id = Answer::of(opened).await.session.unwrap();
    let send = async |body: &Value| {
        let post = post(BOTH).header("mcp-session-id", &id);
        Answer::of(post.body(body.to_string()).send().await.unwrap()).await
    };
    // Served before the client has said that it is ready, and a cursor makes no difference.
    let listed = send(&message(1, "tools/list", &json!({"cursor": "none"}))).await;
    assert_eq!(listed.last()["result"]["tools"][0]["name"], "echo");
    assert_eq!(listed.last()["result"].get("nextCursor"), None);
    // A second handshake stays in its session.
    let again = send(&handshake).await;
    assert_eq!(again.session.as_deref(), Some(id.as_str()));
    assert_eq!(again.last()["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(world.gateway.state().sessions, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_origins_of_others_are_refused() {
    let world = World::serving_with(
        GatewayOptions {
            allowed_hosts: vec!["environment".to_owned()],
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = world.client().await;
    let with = |name: &str, value: &str| {
        status(client.post().header(name, value).body(ping(1).to_string()))
    };
    assert_eq!(with("host", "evil.example").await.0, 403);
    assert_eq!(with("origin", "http://evil.example").await.0, 403);
    assert_eq!(with("origin", "null").await.0, 403);
    assert_eq!(with("host", "environment:8080").await.0, 200);
    assert_eq!(with("origin", "http://localhost:3000").await.0, 200);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_come_back_as_they_were() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    for id in [
        json!("a string"),
        json!(0),
        json!(-3),
        json!(9_007_199_254_740_991_u64),
    ] {
        let answer = client.send(&ping(id.clone())).await;
        assert_eq!(
            answer.last(),
            &json!({"jsonrpc": "2.0", "id": id, "result": {}})
        );
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_addresses_and_either_kind_of_answer() {
    let world = World::serving([("one", stub())]).await;
    let mut client = world.client().await;
    client.url = client.url.trim_end_matches('/').to_owned();
    let mut call = tool_call(1, "progress", &json!({"steps": 1}));
    call["params"]["_meta"] = json!({"progressToken": 1});
    for (accept, kind, messages) in [
        ("application/json", "application/json", 1),
        ("text/event-stream", "text/event-stream", 2),
        ("*/*", "text/event-stream", 2),
    ] {
        let post = client
            .http
            .post(&client.url)
            .header("accept", accept)
            .header("mcp-session-id", &client.session)
            .json(&call);
        let answer = Answer::of(post.send().await.unwrap()).await;
        assert_eq!(
            (answer.kind.as_str(), answer.messages.len()),
            (kind, messages),
            "{accept}"
        );
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_call_is_kept_alive_by_comments() {
    let world = World::serving_with(
        GatewayOptions {
            plain_answer_wait: Duration::from_millis(100),
            keep_alive: Duration::from_millis(100),
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = Client::open_as(&world.url, "2025-11-25", &json!({})).await;
    let params = json!({"name": "sleep", "arguments": {"ms": 1000, "label": "s"}});
    let response = client
        .post()
        .body(message(7, "tools/call", &params).to_string())
        .send()
        .await
        .unwrap();
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("cache-control"), "no-cache, no-transform");
    assert_eq!(header("x-accel-buffering"), "no");
    let answer = Answer::of(response).await;
    assert_eq!(answer.kind, "text/event-stream");
    assert!(answer.text.contains("\r\n: ping\r\n"), "{}", answer.text);
    // Clients of this revision get an id to resume from at once; older ones do not expect it.
    assert!(
        answer.text.starts_with("id: ") && answer.text.contains("retry: "),
        "{}",
        answer.text
    );
    let old = world.client().await;
    let params = json!({"name": "sleep", "arguments": {"ms": 300, "label": "s"}});
    let answer = old.exchange("tools/call", params).await;
    assert!(!answer.text.contains("retry: "), "{}", answer.text);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_answer_is_resumed_from_the_last_event() {
    let world = World::serving([("one", stub())]).await;
    let client = Client::open_as(&world.url, "2025-11-25", &json!({})).await;
    let mut call = tool_call(30, "progress", &json!({"steps": 3, "ms": 200}));
    call["params"]["_meta"] = json!({"progressToken": "r"});
    let mut response = client.post().body(call.to_string()).send().await.unwrap();
    let mut text = String::new();
    while events(&text).is_empty() {
        let chunk = response.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let (last, _) = events(&text).pop().unwrap();
    drop(response);
    tokio::time::sleep(Duration::from_millis(900)).await;
    let resume = |last: &str| {
        let get = client
            .http
            .get(&client.url)
            .header("accept", "text/event-stream");
        get.header("mcp-session-id", &client.session)
            .header("last-event-id", last)
            .send()
    };
    let answer = Answer::of(resume(&last).await.unwrap()).await;
    let progress: Vec<&Value> = answer
        .messages
        .iter()
        .map(|one| &one["params"]["progress"])
        .collect();
    assert_eq!(progress, [&json!(2), &json!(3), &Value::Null]);
    assert_eq!(answer.last()["id"], 30);
    assert_eq!(resume("999-1").await.unwrap().status(), 404);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stream_of_its_own_for_each_session() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let get = || {
        let get = client
            .http
            .get(&client.url)
            .header("accept", "text/event-stream");
        get.header("mcp-session-id", &client.session).send()
    };
    let open = get().await.unwrap();
    assert_eq!(open.status(), 200);
    assert_eq!(get().await.unwrap().status(), 409);
    drop(open);
    eventually(
        Duration::from_secs(5),
        "the place is free again",
        async || get().await.unwrap().status() == 200,
    )
    .await;
    let wrong = client
        .http
        .get(&client.url)
        .header("accept", "application/json");
    assert_eq!(
        wrong
            .header("mcp-session-id", &client.session)
            .send()
            .await
            .unwrap()
            .status(),
        406
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_by_delete_and_takes_its_calls_along() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let other = world.client().await;
    let call = client.exchange(
        "tools/call",
        json!({"name": "sleep", "arguments": {"ms": 60_000, "label": "deleted"}}),
    );
    let delete = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let delete = client
            .http
            .delete(&client.url)
            .header("mcp-session-id", &client.session);
        delete.send().await.unwrap().status()
    };
    let (call, deleted) = tokio::join!(call, delete);
    assert_eq!(deleted, 200);
    assert_eq!(call.last()["error"]["code"], 0);
    assert_eq!(client.send(&ping(1)).await.status, 404);
    eventually(Duration::from_secs(5), "the server was told", async || {
        other.text("noticed", json!({})).await == r#"["deleted"]"#
    })
    .await;
    assert_eq!(world.gateway.state().sessions, 1);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sessions_end_but_never_under_a_call() {
    let world = World::serving_with(
        GatewayOptions {
            session_idle: Duration::from_millis(500),
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let idle = world.client().await;
    let busy = world.client().await;
    assert_eq!(
        busy.text("sleep", json!({"ms": 2500, "label": "x"})).await,
        "slept x"
    );
    assert_eq!(idle.send(&ping(1)).await.status, 404);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_and_bodies_have_limits() {
    let world = World::serving_with(
        GatewayOptions {
            max_sessions: 2,
            max_body_bytes: 1000,
            max_calls_per_session: 1,
            ..options()
        },
        [("one", stub())],
    )
    .await;
    let client = world.client().await;
    let _second = world.client().await;
    let third = client
        .http
        .post(&client.url)
        .header("accept", BOTH)
        .json(&initialize("2025-06-18", &json!({})));
    let (code, _, text) = status(third).await;
    assert_eq!(code, 503);
    assert!(text.contains("2 (max_sessions)"), "{text}");
    let sleep = |id: u64| tool_call(id, "sleep", &json!({"ms": 1500}));
    let (first, second) = (sleep(7), sleep(8));
    let (first, second) = tokio::join!(client.send(&first), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        status(client.post().body(second.to_string())).await
    });
    assert_eq!(first.last()["id"], 7);
    assert_eq!(second.0, 400);
    assert!(second.2.contains("max_calls_per_session"), "{}", second.2);
    let (code, _, text) = status(client.post().body(" ".repeat(2000))).await;
    assert_eq!(code, 413);
    assert!(text.contains("1000 bytes (max_body_bytes)"), "{text}");
    world.end().await;
}
