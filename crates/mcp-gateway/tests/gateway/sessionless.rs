//! Clients of the revision without sessions (MCP 2026-07-28).

use std::time::Duration;

use formats::apps::{Isolation, ServerConfig};
use serde_json::{Value, json};
use testkit::mcp::StubServer;

use crate::client::{Answer, events};
use crate::sessionless_client::{SessionlessClient, VERSION, envelope};
use crate::world::{World, eventually, servers, stdio, stub};

fn with(capabilities: Value) -> impl Fn(&World) -> SessionlessClient {
    move |world| SessionlessClient::new(&world.url, capabilities.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_without_a_handshake() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({}))(&world);
    let found = client.result("server/discover", json!({})).await;
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(VERSION)) && versions.contains(&json!("2025-11-25")));
    assert_eq!(found["capabilities"]["tools"]["listChanged"], true);
    let info = &found["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(info["name"], "Gateway");
    let tools = client.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["name"], "echo");
    let added = ["resultType", "ttlMs", "cacheScope"].map(|key| tools[key].clone());
    assert_eq!(added, [json!("complete"), json!(0), json!("private")]);
    let params = json!({"name": "echo", "arguments": {"text": "ü"}});
    let answer = client.send("tools/call", params).await;
    assert_eq!(
        (
            answer.status.as_u16(),
            answer.kind.as_str(),
            answer.session.clone()
        ),
        (200, "application/json", None)
    );
    // Nothing but the kind of the result is added to what the server said.
    assert_eq!(
        answer.last()["result"],
        json!({"content": [{"type": "text", "text": "ü"}], "resultType": "complete"})
    );
    let read = client
        .result("resources/read", json!({"uri": "data://info"}))
        .await;
    assert_eq!(read["contents"][0]["text"], "info of the stub");
    let params = json!({"name": "greet", "arguments": {"who": "x"}});
    let prompt = client.result("prompts/get", params).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "hello \"x\"");
    // What is meant for the gateway does not reach the server.
    let meta = json!({"own": [0]});
    let params = json!({"name": "meta", "arguments": {}, "_meta": meta});
    let seen = client.result("tools/call", params).await;
    assert_eq!(seen["content"][0]["text"], meta.to_string());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_say_what_clients_go_by() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({}))(&world);
    let of = |answer: Answer| {
        let error = answer.last()["error"].clone();
        (
            answer.status.as_u16(),
            error["code"].as_i64().unwrap(),
            error,
        )
    };
    for method in [
        "ping",
        "initialize",
        "logging/setLevel",
        "resources/subscribe",
        "no/such",
    ] {
        let (status, code, _) = of(client.send(method, json!({})).await);
        assert_eq!((status, code), (404, -32601), "{method}");
    }
    for missing in ["protocolVersion", "clientCapabilities"] {
        let mut params = envelope(&json!({}));
        let meta = params["_meta"].as_object_mut().unwrap();
        meta.remove(&format!("io.modelcontextprotocol/{missing}"));
        let (status, code, error) = of(client.send_raw("tools/list", &params, &[]).await);
        assert_eq!((status, code), (400, -32602));
        assert!(
            error["message"].as_str().unwrap().contains(missing),
            "{error}"
        );
    }
    let params = envelope(&json!({}));
    for headers in [
        &[("mcp-method", "prompts/list")][..],
        &[("mcp-protocol-version", "2025-11-25")][..],
        &[("mcp-method", "")][..],
    ] {
        let (status, code, _) = of(client.send_raw("tools/list", &params, headers).await);
        assert_eq!((status, code), (400, -32020), "{headers:?}");
    }
    let mut named = params.clone();
    named["name"] = json!("echo");
    let (status, code, _) = of(client
        .send_raw("tools/call", &named, &[("mcp-name", "other")])
        .await);
    assert_eq!((status, code), (400, -32020));
    let mut future = params;
    future["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2999-01-01");
    let headers = [("mcp-protocol-version", "2999-01-01")];
    let (status, code, error) = of(client.send_raw("tools/list", &future, &headers).await);
    assert_eq!((status, code), (400, -32022));
    assert_eq!(error["data"]["requested"], "2999-01-01");
    assert!(
        error["data"]["supported"]
            .as_array()
            .unwrap()
            .contains(&json!(VERSION))
    );
    let unknown = json!({"name": "nobody", "arguments": {}});
    let (status, code, _) = of(client.send("tools/call", unknown).await);
    assert_eq!((status, code), (400, -32602));
    let nowhere = json!({"uri": "data://nowhere"});
    let (_, code, error) = of(client.send("resources/read", nowhere).await);
    assert_eq!(
        (code, &error["data"]["uri"]),
        (-32602, &json!("data://nowhere"))
    );
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let request = client.http.request(method, &client.url);
        let response = request
            .header("mcp-protocol-version", VERSION)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"POST".parse().unwrap())
        );
    }
    let (status, text) = client.notify("notifications/initialized").await;
    assert_eq!((status, text.as_str()), (202, ""));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_sessions_are_needed_clients_fall_back() {
    let world = World::new().await;
    let isolated = ServerConfig {
        isolation: Isolation::Session,
        ..stdio(&stub())
    };
    world
        .gateway
        .apply(servers([("own", isolated)]))
        .await
        .unwrap();
    // The answer of a server that knows nothing of this revision: all clients go on from it.
    let client = with(json!({}))(&world);
    let answer = client.send("server/discover", json!({})).await;
    let error = &answer.last()["error"];
    assert_eq!(
        (answer.status.as_u16(), &error["code"], &error["message"]),
        (
            400,
            &json!(-32600),
            &json!("Bad Request: Missing session ID")
        )
    );
    world
        .client()
        .await
        .text("echo", json!({"text": "x"}))
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_logs_come_on_the_answer() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({}))(&world);
    let params = json!({"name": "progress", "arguments": {"steps": 3, "ms": 10}, "_meta": {"progressToken": 0}});
    let answer = client.send("tools/call", params).await;
    assert_eq!(
        (answer.kind.as_str(), answer.messages.len()),
        ("text/event-stream", 4)
    );
    assert_eq!(answer.messages[0]["params"]["progressToken"], 0);
    assert!(
        !answer.text.contains("id: "),
        "nothing can be resumed: {}",
        answer.text
    );
    let logged = async |wanted: Option<&str>, level: &str| {
        let mut params = json!({"name": "log", "arguments": {"level": level}});
        if let Some(wanted) = wanted {
            params["_meta"] = json!({"io.modelcontextprotocol/logLevel": wanted});
        }
        client.send("tools/call", params).await.messages.len() - 1
    };
    assert_eq!(logged(None, "emergency").await, 0);
    assert_eq!(logged(Some("info"), "debug").await, 0);
    assert_eq!(logged(Some("info"), "error").await, 1);
    let level = json!({"name": "log_level", "arguments": {}});
    let level = client.result("tools/call", level).await;
    assert_eq!(level["content"][0]["text"], "info");
    world.end().await;
}

/// The first round of a call of `ask_all`.
async fn asked(client: &SessionlessClient, requests: &Value) -> (Value, Value) {
    let call = json!({"name": "ask_all", "arguments": {"requests": requests}});
    let first = client.result("tools/call", call.clone()).await;
    assert_eq!(first["resultType"], "input_required", "{first}");
    (call, first)
}

fn again(call: &Value, state: &Value, responses: Value) -> Value {
    let mut call = call.clone();
    call["requestState"] = state.clone();
    call["inputResponses"] = responses;
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_asks_is_answered_in_rounds() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({"sampling": {}, "roots": {}}))(&world);
    let sampling = json!({"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5, "x": [0]}});
    let roots = json!({"method": "roots/list", "params": {}});
    let form = json!({"method": "elicitation/create", "params": {}});
    let (call, first) = asked(&client, &json!([sampling, roots, form])).await;
    // The client did not say that it could be asked with forms: the server heard so at once.
    let requests = first["inputRequests"].as_object().unwrap();
    let mut names: Vec<&String> = requests.keys().collect();
    names.sort_by_key(|name| requests[*name]["method"].as_str());
    assert_eq!(requests[names[1]], sampling);
    assert_eq!(requests[names[0]], roots);
    assert_eq!(names.len(), 2);
    // A part of the answers: the rest is asked for again, under another state.
    let sample = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "4"}, "x": 1.0});
    let part = json!({names[1]: sample, "unknown": {}});
    let second = client
        .result("tools/call", again(&call, &first["requestState"], part))
        .await;
    assert_eq!(second["resultType"], "input_required", "{second}");
    assert_eq!(second["inputRequests"], json!({names[0]: roots}));
    assert_ne!(second["requestState"], first["requestState"]);
    let listed = json!({"roots": [{"uri": "file:///röot"}]});
    let rest = again(&call, &second["requestState"], json!({names[0]: listed}));
    let last = client.result("tools/call", rest).await;
    assert_eq!(last["resultType"], "complete");
    let heard: Value = serde_json::from_str(last["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(heard[0]["result"], sample);
    assert_eq!(heard[1]["result"], listed);
    assert_eq!(heard[2]["error"]["code"], -32601);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_is_of_one_call_and_once() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({"roots": {}}))(&world);
    let roots = json!([{"method": "roots/list", "params": {}}]);
    let (call, first) = asked(&client, &roots).await;
    let state = first["requestState"].as_str().unwrap().to_owned();
    let name = first["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let code = async |params: Value| {
        let answer = client.send("tools/call", params).await;
        (
            answer.status.as_u16(),
            answer.last()["error"]["code"].clone(),
        )
    };
    let responses = json!({&name: {"roots": []}});
    let refused = (400, json!(-32602));
    let tampered = json!(format!("{state}x"));
    assert_eq!(
        code(again(&call, &tampered, responses.clone())).await,
        refused
    );
    let other = json!({"name": "echo", "arguments": {"text": "x"}});
    assert_eq!(
        code(again(&other, &json!(state), responses.clone())).await,
        refused
    );
    // A broken answer does not cost the call.
    assert_eq!(
        code(again(&call, &json!(state), json!({&name: 7}))).await,
        refused
    );
    let last = client
        .result("tools/call", again(&call, &json!(state), responses.clone()))
        .await;
    assert_eq!(last["resultType"], "complete");
    assert_eq!(code(again(&call, &json!(state), responses)).await, refused);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_holds_up_nobody_and_ends_in_time() {
    let world = World::serving_with(
        mcp_gateway::GatewayOptions {
            client_answer_timeout: Duration::from_millis(1500),
            max_waiting_calls: 1,
            ..crate::world::options()
        },
        [("one", stub())],
    )
    .await;
    let client = with(json!({"roots": {}}))(&world);
    let roots = json!([{"method": "roots/list", "params": {}}]);
    let (call, first) = asked(&client, &roots).await;
    let echo = json!({"name": "echo", "arguments": {"text": "x"}});
    assert_eq!(
        client.result("tools/call", echo).await["content"][0]["text"],
        "x"
    );
    let answer = client.send("tools/call", call.clone()).await;
    let message = answer.last()["error"]["message"].as_str().unwrap();
    assert!(message.contains("max_waiting_calls"), "{message}");
    // The state is of no use after the limit.
    let state = first["requestState"].clone();
    eventually(
        Duration::from_secs(5),
        "the call was given up",
        async || {
            let answer = client.send("tools/call", call.clone()).await;
            answer.last()["result"]["resultType"] == "input_required"
        },
    )
    .await;
    let late = client
        .send("tools/call", again(&call, &state, json!({})))
        .await;
    assert_eq!(late.last()["error"]["code"], -32602);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_capability_that_a_call_needed_is_named() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({"roots": {}}))(&world);
    let answer = client
        .send("tools/call", json!({"name": "need", "arguments": {}}))
        .await;
    let error = &answer.last()["error"];
    assert_eq!(
        (answer.status.as_u16(), &error["code"]),
        (400, &json!(-32021))
    );
    assert_eq!(
        error["data"],
        json!({"requiredCapabilities": {"sampling": {}}})
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_are_asked_at_once_get_their_own_questions() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({"sampling": {}}))(&world);
    // The first call shows that the tool asks.
    let answer = |number: usize| json!({"content": number});
    let whole = async |client: &SessionlessClient, number: usize| {
        let call = json!({"name": "ask", "arguments": {"method": "sampling/createMessage", "params": {"n": number}}});
        let first = client.result("tools/call", call.clone()).await;
        let requests = first["inputRequests"]
            .as_object()
            .unwrap_or_else(|| panic!("{first}"));
        let (name, request) = requests.iter().next().unwrap();
        assert_eq!(request["params"]["n"], number);
        let back = again(&call, &first["requestState"], json!({name: answer(number)}));
        let last = client.result("tools/call", back).await;
        let heard: Value =
            serde_json::from_str(last["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(heard["result"], answer(number));
    };
    whole(&client, 0).await;
    let all = (1..=8).map(|number| {
        let client = with(json!({"sampling": {}}))(&world);
        async move { whole(&client, number).await }
    });
    futures::future::join_all(all).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_cancels_its_call() {
    let world = World::serving([("one", stub())]).await;
    let client = with(json!({}))(&world);
    let params = json!({"name": "sleep", "arguments": {"ms": 20_000, "label": "left"}});
    let call = client.send("tools/call", params);
    assert!(
        tokio::time::timeout(Duration::from_millis(400), call)
            .await
            .is_err()
    );
    eventually(Duration::from_secs(5), "the server was told", async || {
        let noticed = json!({"name": "noticed", "arguments": {}});
        client.result("tools/call", noticed).await["content"][0]["text"] == r#"["left"]"#
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn announcements_come_on_a_stream_of_their_own() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let client = with(json!({}))(&world);
    let filter = json!({"notifications": {
        "toolsListChanged": true, "resourceSubscriptions": ["data://a/info", "other://nowhere"]}});
    let mut stream = client
        .open("subscriptions/listen", filter, "my-stream")
        .await;
    let mut text = String::new();
    let mut heard = async |count: usize| {
        while events(&text).len() < count {
            let chunk = tokio::time::timeout(Duration::from_secs(5), stream.chunk());
            text.push_str(std::str::from_utf8(&chunk.await.unwrap().unwrap().unwrap()).unwrap());
        }
        let (_, data) = events(&text).pop().unwrap();
        serde_json::from_str::<Value>(&data).unwrap()
    };
    let meta = json!({"io.modelcontextprotocol/subscriptionId": "my-stream"});
    assert_eq!(
        heard(1).await,
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["data://a/info"]},
            "_meta": meta}})
    );
    let call = async |name: &str, arguments: Value| {
        client
            .result("tools/call", json!({"name": name, "arguments": arguments}))
            .await["content"][0]["text"]
            .clone()
    };
    call("a_add_tool", json!({"name": "late"})).await;
    assert_eq!(
        heard(2).await,
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}})
    );
    call("a_touch", json!({"uri": "data://info"})).await;
    assert_eq!(
        heard(3).await,
        json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
            "params": {"uri": "data://a/info", "_meta": meta}})
    );
    // A second stream asks for something else, and the end of the first ends its subscription.
    drop(stream);
    eventually(Duration::from_secs(5), "the server was told", async || {
        call("a_subscriptions", json!({})).await == "[]"
    })
    .await;
    let filter = json!({"notifications": {"promptsListChanged": true}});
    let mut narrow = client.open("subscriptions/listen", filter, "narrow").await;
    call("a_add_tool", json!({"name": "later"})).await;
    world.gateway.shutdown().await;
    let mut text = String::new();
    while let Some(chunk) = narrow.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let all: Vec<Value> = events(&text)
        .iter()
        .map(|(_, data)| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(all.len(), 2, "{text}");
    assert_eq!(all[1]["id"], "narrow");
    assert_eq!(all[1]["result"]["resultType"], "complete");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_a_schema_repeats_in_headers_have_to_agree() {
    let tool = json!({"name": "regional", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}}}});
    let world = World::serving([(
        "one",
        StubServer {
            raw_tool: Some(tool.to_string()),
            ..stub()
        },
    )])
    .await;
    let client = with(json!({}))(&world);
    let mut params = envelope(&json!({}));
    params["name"] = json!("regional");
    params["arguments"] = json!({"region": "süd"});
    let name = ("mcp-name", "regional");
    let status = async |headers: &[(&str, &str)]| {
        client
            .send_raw("tools/call", &params, headers)
            .await
            .status
            .as_u16()
    };
    assert_eq!(status(&[name]).await, 400);
    assert_eq!(status(&[name, ("mcp-param-region", "nord")]).await, 400);
    assert_eq!(
        status(&[name, ("mcp-param-region", "=?base64?c8O8ZA==?=")]).await,
        200
    );
    world.end().await;
}
