//! What servers send besides answers, and to whom it goes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Client, events, tool_call};
use crate::world::{World, stub};

#[tokio::test(flavor = "multi_thread")]
async fn progress_comes_before_the_result_under_the_clients_own_token() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    for token in [json!("tök"), json!(0), json!(42)] {
        let params = json!({
            "name": "progress", "arguments": {"steps": 3, "ms": 10}, "_meta": {"progressToken": token},
        });
        let answer = client.exchange("tools/call", params).await;
        assert_eq!(answer.kind, "text/event-stream");
        let (result, notices) = answer.messages.split_last().unwrap();
        assert_eq!(result["result"]["content"][0]["text"], "false");
        for (step, notice) in (1..).zip(notices) {
            assert_eq!(
                notice,
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params":
                    {"progressToken": token, "progress": step, "total": 3, "x-own": true}})
            );
        }
        assert_eq!(notices.len(), 3);
    }
    // Who does not ask gets none, and the server is not asked either.
    let params = json!({"name": "progress", "arguments": {"steps": 3}});
    let answer = client.exchange("tools/call", params).await;
    assert_eq!(answer.kind, "application/json");
    assert_eq!(answer.last()["result"]["content"][0]["text"], "true");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_come_at_the_level_of_the_session() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let logged = async |level: &str| {
        let params = json!({"name": "log", "arguments": {"level": level}});
        client.exchange("tools/call", params).await.messages.len() - 1
    };
    assert_eq!(logged("debug").await, 1);
    assert_eq!(
        client
            .request("logging/setLevel", json!({"level": "error"}))
            .await,
        Ok(json!({}))
    );
    assert_eq!((logged("info").await, logged("error").await), (0, 1));
    assert_eq!(client.text("log_level", json!({})).await, "error");
    // The server is asked for the weakest level that anybody wants.
    let other = world.client().await;
    other
        .request("logging/setLevel", json!({"level": "info"}))
        .await
        .unwrap();
    assert_eq!(client.text("log_level", json!({})).await, "info");
    assert_eq!(logged("info").await, 0);
    let error = client
        .request("logging/setLevel", json!({"level": "loud"}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    world.end().await;
}

/// What the server got to hear when it asked.
async fn asked(client: &Client, method: &str, params: Value) -> Value {
    let text = client
        .text("ask", json!({"method": method, "params": params}))
        .await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_a_client_cannot_answer_are_refused_at_once() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    for method in [
        "sampling/createMessage",
        "elicitation/create",
        "roots/list",
        "no/such",
    ] {
        let answer = asked(&client, method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    assert_eq!(asked(&client, "ping", json!({})).await["result"], json!({}));
    world.end().await;
}

/// Calls `ask` and answers what arrives on the stream with `text`; returns the tool's text.
async fn ask_and_answer(client: &Client, method: &str, params: &Value, reply: &Value) -> Value {
    let call = tool_call("ask", "ask", &json!({"method": method, "params": params}));
    let mut response = client.post().body(call.to_string()).send().await.unwrap();
    let mut text = String::new();
    let mut answered = false;
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        let first = events(&text).into_iter().next();
        let Some((_, data)) = first.filter(|_| !answered) else {
            continue;
        };
        answered = true;
        let request: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(
            (&request["method"], &request["params"]),
            (&json!(method), params)
        );
        let reply = json!({"jsonrpc": "2.0", "id": request["id"], "result": reply});
        assert_eq!(client.send(&reply).await.status, 202);
    }
    let (_, last) = events(&text).pop().unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    serde_json::from_str(last["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_reach_the_client_whose_call_it_is() {
    let world = World::serving([("one", stub())]).await;
    let capabilities = json!({"sampling": {}, "roots": {}, "elicitation": {"form": {}}});
    let client = Client::open_as(&world.url, "2025-11-25", &capabilities).await;
    let params = json!({"messages": [], "maxTokens": 5, "x-own": [0]});
    let reply = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "4"}, "x": 1.0});
    let heard = ask_and_answer(&client, "sampling/createMessage", &params, &reply).await;
    assert_eq!(heard["result"], reply);
    let roots = json!({"roots": [{"uri": "file:///röot"}]});
    let heard = ask_and_answer(&client, "roots/list", &json!({}), &roots).await;
    assert_eq!(heard["result"], roots);
    let by_url = asked(
        &client,
        "elicitation/create",
        json!({"mode": "url", "url": "http://x/"}),
    )
    .await;
    assert_eq!(by_url["error"]["code"], -32601);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_could_be_of_two_clients_goes_to_neither() {
    let world = World::serving([("one", stub())]).await;
    let capabilities = json!({"sampling": {}});
    let first = Client::open_as(&world.url, "2025-11-25", &capabilities).await;
    let second = Arc::new(Client::open_as(&world.url, "2025-11-25", &capabilities).await);
    let busy = second.clone();
    let busy = tokio::spawn(async move {
        busy.exchange(
            "tools/call",
            json!({"name": "sleep", "arguments": {"ms": 1500, "label": "b"}}),
        )
        .await
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = asked(&first, "sampling/createMessage", json!({})).await;
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("attributed"),
        "{answer}"
    );
    // A log line of an unknown call is dropped for the same reason.
    first.text("log", json!({"level": "error"})).await;
    let answer = busy.await.unwrap();
    assert_eq!(answer.messages.len(), 1, "{answer:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_reach_everybody_and_updates_those_who_subscribed() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let client = world.client().await;
    let subscribed = world.client().await;
    assert_eq!(
        subscribed
            .request("resources/subscribe", json!({"uri": "data://a/info"}))
            .await,
        Ok(json!({}))
    );
    client.text("a_add_tool", json!({"name": "late"})).await;
    client.text("a_touch", json!({"uri": "data://info"})).await;
    let notices = async |client: &Client, count: usize| {
        let request = client
            .http
            .get(&client.url)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &client.session);
        let mut response = request.send().await.unwrap();
        let mut text = String::new();
        while events(&text).len() < count {
            let chunk = tokio::time::timeout(Duration::from_secs(5), response.chunk());
            text.push_str(std::str::from_utf8(&chunk.await.unwrap().unwrap().unwrap()).unwrap());
        }
        events(&text)
            .into_iter()
            .map(|(_, data)| serde_json::from_str::<Value>(&data).unwrap())
            .collect::<Vec<_>>()
    };
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(notices(&client, 1).await, std::slice::from_ref(&changed));
    let updated = json!({"jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": {"uri": "data://a/info"}});
    assert_eq!(notices(&subscribed, 2).await, [changed, updated]);
    // The new tool is called without another list.
    assert_eq!(client.text("a_late", json!({})).await, "late");
    assert!(client.tool_names().await.contains(&"a_late".to_owned()));
    world.end().await;
}
