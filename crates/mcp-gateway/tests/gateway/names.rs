//! Served names, clashes and the list of allowed tools (A5).

use formats::apps::AppsConfig;
use mcp_gateway::GatewayOptions;
use serde_json::json;
use testkit::mcp::StubServer;

use crate::world::{World, config, options, stub};

fn with_tools(names: &[&str]) -> StubServer {
    StubServer {
        extra_tools: names.iter().map(|name| (*name).to_owned()).collect(),
        ..stub()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_keeps_its_names_and_several_get_a_prefix() {
    let odd = ["rec.details/list", "rec_details_list", "wörter_工具_🔧"];
    let world = World::serving([("one", with_tools(&odd))]).await;
    let client = world.client().await;
    let names = client.tool_names().await;
    assert_eq!(names[0], "echo");
    assert_eq!(names[names.len() - 3..], odd);
    for name in odd {
        assert_eq!(client.text(name, json!({})).await, name);
    }
    world
        .gateway
        .apply(config([("b b/", with_tools(&odd)), ("a", stub())]))
        .await
        .unwrap();
    let names = client.tool_names().await;
    assert_eq!(names[0], "b b/_echo");
    assert_eq!(names.last().unwrap(), "a_log_level");
    assert_eq!(client.text("b b/_wörter_工具_🔧", json!({})).await, odd[2]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_could_mean_two_servers_are_refused() {
    let world = World::serving([("old", stub())]).await;
    let clash = config([
        ("api", with_tools(&["v2_list"])),
        ("api_v2", with_tools(&["list"])),
    ]);
    let error = world.gateway.apply(clash).await.unwrap_err();
    assert_eq!(error.status(), 400);
    let text = error.to_string();
    for word in ["`api`", "`api_v2`", "`api_v2_list`", "`v2_list`", "`list`"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(
        world
            .client()
            .await
            .text("echo", json!({"text": "old"}))
            .await,
        "old"
    );
    // Prefixes of each other are fine as long as every name leads to one server.
    world
        .gateway
        .apply(config([
            ("api", with_tools(&["v2_get"])),
            ("api_v2", with_tools(&["list"])),
        ]))
        .await
        .unwrap();
    let client = world.client().await;
    assert_eq!(client.text("api_v2_get", json!({})).await, "v2_get");
    assert_eq!(client.text("api_v2_list", json!({})).await, "list");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_a_protocol_error() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let client = world.client().await;
    for name in ["echo", "a_", "c_echo", "a_ech", ""] {
        let error = client.tool(name, json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{name}: {error}");
        assert_eq!(error["message"], format!("Unknown tool: '{name}'"));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_are_rewritten_only_on_request() {
    let raw = r##"{"name":"odd","inputSchema":{"type":"object","$defs":{"K":{"enum":["a",1]}},"properties":{"k":{"$ref":"#/$defs/K"}}}}"##;
    let odd = StubServer {
        raw_tool: Some(raw.to_owned()),
        ..stub()
    };
    for (schema_cleanup, expected) in [
        (
            false,
            serde_json::from_str::<serde_json::Value>(raw).unwrap()["inputSchema"].clone(),
        ),
        (true, json!({"type": "object", "properties": {"k": {}}})),
    ] {
        let world = World::serving_with(
            GatewayOptions {
                schema_cleanup,
                ..options()
            },
            [("one", odd.clone())],
        )
        .await;
        let list = world
            .client()
            .await
            .request("tools/list", json!({}))
            .await
            .unwrap();
        let tool = list["tools"].as_array().unwrap().last().unwrap();
        assert_eq!(tool["inputSchema"], expected);
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_tools_are_listed_and_called() {
    let world = World::new().await;
    let stubs = config([("a", with_tools(&["mark_echo"])), ("b", stub())]);
    let allowing = |names: &[&str]| AppsConfig {
        allowed_tool_names: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..stubs.clone()
    };
    world
        .gateway
        .apply(allowing(&["echo", "b_count", "matches_nothing"]))
        .await
        .unwrap();
    let client = world.client().await;
    assert_eq!(client.tool_names().await, ["a_echo", "b_echo", "b_count"]);
    assert_eq!(client.text("b_count", json!({})).await, "1");
    for refused in ["a_mark_echo", "a_count"] {
        let result = client.tool(refused, json!({})).await.unwrap();
        assert_eq!(
            result,
            json!({"isError": true, "content": [{"type": "text", "text":
                format!("Tool '{refused}' is not in the allowlist (3 tools allowed)")}]})
        );
    }
    world.gateway.apply(allowing(&[])).await.unwrap();
    assert_eq!(client.text("a_mark_echo", json!({})).await, "mark_echo");
    world.end().await;
}
