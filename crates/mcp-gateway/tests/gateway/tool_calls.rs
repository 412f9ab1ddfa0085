//! Tool calls that the program around the gateway sees and makes.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_gateway::{TARGET_AGENT, ToolCall, ToolCallObserver};
use serde_json::{Map, Value, json};

use crate::client::tool_call;
use crate::world::{World, config, stub};

#[derive(Default)]
struct Seen(Mutex<Vec<ToolCall>>);

impl Seen {
    fn take(&self) -> Vec<ToolCall> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl ToolCallObserver for Seen {
    fn is_interested(&self) -> bool {
        true
    }

    fn observe(&self, call: ToolCall) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(call);
        async {}.boxed()
    }
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_call_is_seen_with_its_end() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let seen = Arc::new(Seen::default());
    assert!(world.gateway.observe_tool_calls(seen.clone()));
    assert!(!world.gateway.observe_tool_calls(seen.clone()));
    let client = world.client().await;
    client.tool_names().await;
    client.text("a_echo", json!({"text": "x"})).await;
    let [call] = &seen.take()[..] else {
        panic!("only the call is seen");
    };
    assert_eq!(
        (call.actor.as_str(), call.tool.as_str(), &call.arguments),
        (TARGET_AGENT, "a_echo", &json!({"text": "x"}))
    );
    assert!(call.attribution.is_empty());
    assert_eq!(call.outcome.as_ref().unwrap()["content"][0]["text"], "x");

    let said = client
        .post()
        .header("x-agent-id", "a7")
        .header("x-orchestrator-version", "v".repeat(200))
        .body(tool_call(7, "a_echo", &json!({"text": "x"})).to_string());
    assert_eq!(said.send().await.unwrap().status(), 200);
    let long = "v".repeat(128);
    assert_eq!(
        seen.take()[0].attribution,
        [
            ("x-agent-id", "a7".to_owned()),
            ("x-orchestrator-version", long)
        ]
        .into()
    );

    for (tool, right) in [
        ("b_fail", "first\nsecond"),
        ("b_protocol_error", "own error"),
        ("b_none", "Unknown tool: 'b_none'"),
    ] {
        // `_meta.actor_id` of a client is not believed.
        let params = json!({"name": tool, "_meta": {"actor_id": "coordinator"}});
        client.exchange("tools/call", params).await;
        let [call] = &seen.take()[..] else {
            panic!("one call");
        };
        assert_eq!(call.outcome, Err(right.to_owned()));
        assert_eq!(
            (call.actor.as_str(), &call.arguments),
            (TARGET_AGENT, &Value::Null)
        );
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_tools_under_an_actor_of_its_choice() {
    let world = World::new().await;
    let nothing = world.gateway.call_tool("x", "echo", Map::new()).await;
    assert!(nothing.unwrap_err().to_string().contains("no MCP servers"));
    let mut config = config([("a", stub())]);
    config.allowed_tool_names = Some(vec!["echo".to_owned(), "meta".to_owned()]);
    world.gateway.apply(config).await.unwrap();
    let seen = Arc::new(Seen::default());
    world.gateway.observe_tool_calls(seen.clone());
    let call = async |tool: &str, arguments: Value| {
        let called = world
            .gateway
            .call_tool("coordinator", tool, object(arguments));
        called.await.map_err(|error| error.to_string())
    };
    let answer = call("echo", json!({"text": "x"})).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "x");
    let meta = call("meta", json!({})).await.unwrap();
    let meta: Value = serde_json::from_str(meta["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(meta["actor_id"], "coordinator");
    let refused = call("count", json!({})).await.unwrap_err();
    assert!(refused.contains("not in the allowlist"), "{refused}");
    assert_eq!(
        call("nope", json!({})).await.unwrap_err(),
        "Unknown tool: 'nope'"
    );
    let actors: Vec<_> = seen.take().into_iter().map(|call| call.actor).collect();
    assert_eq!(actors, ["coordinator"; 4]);
    world.end().await;
}
