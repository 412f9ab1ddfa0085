//! What a server says reaches the client unchanged, and the other way round.

use serde_json::{Value, json};
use testkit::mcp::StubServer;

use crate::world::{World, stub};

/// The `content` tool's result as the stub writes it.
const CONTENT_START: &str = r#"{"x-first":"kept in its place","content":[{"type":"text","text":"#;

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_content_passes_unchanged() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let client = world.client().await;
    let answer = client
        .exchange("tools/call", json!({"name": "a_content", "arguments": {}}))
        .await;
    let result = &answer.last()["result"];
    let kinds: Vec<&str> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "text",
            "image",
            "audio",
            "resource",
            "resource",
            "resource_link",
            "x-new-kind"
        ]
    );
    assert_eq!(result["content"][0]["text"], "ü \u{0} \u{2028} 🔧");
    assert_eq!(result["content"][0]["x-unknown"], json!([1]));
    assert_eq!(result["content"][6]["value"], json!({"z": 1, "a": null}));
    assert_eq!(result["_meta"], json!({"example.com/k": "v"}));
    // Order of keys, forms of numbers and nulls are those of the server.
    assert!(answer.text.contains(CONTENT_START), "{}", answer.text);
    let structured = r#""structuredContent":{"n":1.0,"big":18446744073709551615,"null":null}"#;
    assert!(answer.text.contains(structured), "{}", answer.text);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_tools_pass_whole() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    assert_eq!(
        client.tool("fail", json!({})).await.unwrap(),
        json!({
            "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}],
            "structuredContent": {"why": "asked to"}, "isError": true, "_meta": {"k": 1},
        })
    );
    assert_eq!(
        client.tool("protocol_error", json!({})).await.unwrap_err(),
        json!({"code": -32050, "message": "own error", "data": {"detail": [1, 2]}})
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_entry_keeps_its_schema() {
    let raw = r##"{"name":"odd","title":"T","x-own":{"b":1,"a":2.50},"inputSchema":{"type":"object","$defs":{"K":{"enum":["a",1,null]}},"properties":{"k":{"$ref":"#/$defs/K","default":1e3}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x":0},"icons":[{"src":"data:,"}],"_meta":{"m":[]},"execution":{"taskSupport":"optional"}}"##;
    let with_raw = StubServer {
        raw_tool: Some(raw.to_owned()),
        ..stub()
    };
    let world = World::serving([("a", with_raw), ("b", stub())]).await;
    let client = world.client().await;
    let result = client.request("tools/list", json!({})).await.unwrap();
    let tool = result["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "a_odd")
        .unwrap();
    let mut expected: Value = serde_json::from_str(raw).unwrap();
    expected["name"] = json!("a_odd");
    assert_eq!(tool.to_string(), expected.to_string());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pages_of_a_list_are_one() {
    let extra: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    let paged = StubServer {
        page_size: Some(7),
        extra_tools: extra.clone(),
        ..stub()
    };
    let world = World::serving([("one", paged)]).await;
    let client = world.client().await;
    let names = client.tool_names().await;
    assert_eq!(names[names.len() - 50..], extra);
    assert_eq!(client.text("t49", json!({})).await, "t49");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reaches_the_server_as_it_is_but_for_the_actor() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let meta = json!({"example.com/trace": "abc", "actor_id": "coordinator", "n": 0});
    let params = json!({"name": "meta", "arguments": {}, "_meta": meta});
    let result = client.request("tools/call", params).await.unwrap();
    let seen: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(seen, json!({"example.com/trace": "abc", "n": 0}));
    // Arguments may be absent or null.
    for params in [
        json!({"name": "count"}),
        json!({"name": "count", "arguments": null}),
    ] {
        client.request("tools/call", params).await.unwrap();
    }
    assert_eq!(client.text("count", json!({})).await, "3");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_one_server_keep_their_addresses() {
    let world = World::serving([("one", stub())]).await;
    let client = world.client().await;
    let list = client.request("resources/list", json!({})).await.unwrap();
    assert_eq!(
        list,
        json!({"resources": [{"uri": "data://info", "name": "info", "mimeType": "text/plain", "x-own": 1}]})
    );
    let templates = client
        .request("resources/templates/list", json!({}))
        .await
        .unwrap();
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "data://item/{id}"
    );
    let read = client
        .request("resources/read", json!({"uri": "data://item/7"}))
        .await
        .unwrap();
    assert_eq!(
        read["contents"],
        json!([{"uri": "data://item/7", "mimeType": "text/plain", "text": "item 7"}])
    );
    let error = client
        .request("resources/read", json!({"uri": "data://no"}))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        json!({"code": -32002, "message": "no such resource", "data": {"uri": "data://no"}})
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_of_several_servers_name_their_server() {
    let world = World::serving([("alpha", stub()), ("b b", stub())]).await;
    let client = world.client().await;
    let list = client.request("resources/list", json!({})).await.unwrap();
    let uris: Vec<&Value> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["uri"])
        .collect();
    assert_eq!(uris, ["data://alpha/info", "data://b b/info"]);
    let templates = client
        .request("resources/templates/list", json!({}))
        .await
        .unwrap();
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        "data://alpha/item/{id}"
    );
    for uri in ["data://alpha/info", "data://b b/item/3"] {
        let read = client
            .request("resources/read", json!({"uri": uri}))
            .await
            .unwrap();
        assert_eq!(read["contents"][0]["uri"], uri);
    }
    let error = client
        .request("resources/read", json!({"uri": "test://no/such/resource"}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32002);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_and_completion_find_their_server() {
    let world = World::serving([("a", stub()), ("b", stub())]).await;
    let client = world.client().await;
    let list = client.request("prompts/list", json!({})).await.unwrap();
    assert_eq!(list["prompts"][1]["name"], "b_greet");
    let params = json!({"name": "b_greet", "arguments": {"who": "you"}});
    let prompt = client.request("prompts/get", params).await.unwrap();
    assert_eq!(prompt["messages"][0]["content"]["text"], "hello \"you\"");
    let error = client
        .request("prompts/get", json!({"name": "c_greet"}))
        .await
        .unwrap_err();
    assert_eq!(error["code"], -32602);
    let complete = async |reference: Value| {
        let params = json!({"ref": reference, "argument": {"name": "who", "value": "y"}});
        let result = client.request("completion/complete", params).await.unwrap();
        serde_json::from_str::<Value>(result["completion"]["values"][0].as_str().unwrap()).unwrap()
    };
    assert_eq!(
        complete(json!({"type": "ref/prompt", "name": "a_greet"})).await,
        json!({"type": "ref/prompt", "name": "greet"})
    );
    assert_eq!(
        complete(json!({"type": "ref/resource", "uri": "data://b/item/{id}"})).await,
        json!({"type": "ref/resource", "uri": "data://item/{id}"})
    );
    world.end().await;
}
