//! Programs and libraries of other people, as clients and as servers.

use std::path::PathBuf;
use std::process::Command;

use formats::apps::{Isolation, ServerConfig};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};

use crate::client::Client;
use crate::world::{World, program, remote, servers, stdio, stub};

fn shared() -> PathBuf {
    std::env::var_os("ARCHIPELAGO_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    )
}

/// A Python with the official SDK, from `ARCHIPELAGO_PYTHON` or the path.
fn python_with_mcp() -> Option<String> {
    let python = std::env::var("ARCHIPELAGO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python)
        .args(["-c", "import mcp"])
        .output()
        .is_ok_and(|output| output.status.success());
    testkit::available(&format!("a `{python}` with `mcp`"), found).then_some(python)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_as_client() {
    let world = World::serving([("one", stub())]).await;
    let transport = StreamableHttpClientTransport::from_uri(world.url.clone());
    let client = ().serve(transport).await.unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools[0].name, "echo");
    let arguments = json!({"text": "hello"}).as_object().unwrap().clone();
    let call = CallToolRequestParams::new("echo").with_arguments(arguments);
    let result = client.call_tool(call).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    assert_eq!(result["content"][0]["text"], "hello");
    // A configuration that changes under the session does not end it.
    world
        .gateway
        .apply(servers([
            ("two", stdio(&stub())),
            ("three", stdio(&stub())),
        ]))
        .await
        .unwrap();
    let tools = client.list_all_tools().await.unwrap();
    assert_eq!(tools[0].name, "two_echo");
    client.cancel().await.unwrap();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_without_a_session_and_back() {
    let isolated = ServerConfig {
        isolation: Isolation::Session,
        ..stdio(&stub())
    };
    // A server that needs sessions makes the client fall back to the handshake.
    for (server, sessions) in [(stdio(&stub()), 0), (isolated, 1)] {
        let world = World::configured(servers([("one", server)])).await;
        let transport = StreamableHttpClientTransport::from_uri(world.url.clone());
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![rmcp::model::ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let client = ().serve_with_lifecycle(transport, mode).await.unwrap();
        assert_eq!(client.list_all_tools().await.unwrap()[0].name, "echo");
        let arguments = json!({"text": "hello"}).as_object().unwrap().clone();
        let call = CallToolRequestParams::new("echo").with_arguments(arguments);
        let result = serde_json::to_value(client.call_tool(call).await.unwrap()).unwrap();
        assert_eq!(result["content"][0]["text"], "hello");
        assert_eq!(world.gateway.state().sessions, sessions);
        client.cancel().await.unwrap();
        world.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_server_without_an_sdk() {
    let script = shared().join("bench/echo_raw.py");
    if !script.exists() {
        eprintln!("SKIPPED: {} is not there", script.display());
        return;
    }
    let world = World::new().await;
    let server = program("python3", &[script.to_str().unwrap()]);
    world
        .gateway
        .apply(servers([("raw", server)]))
        .await
        .unwrap();
    let client = world.client().await;
    assert_eq!(client.tool_names().await, ["echo"]);
    assert_eq!(client.text("echo", json!({"text": "grüße"})).await, "grüße");
    world.end().await;
}

const FASTMCP: &str = r#"
import asyncio
from mcp.server.fastmcp import FastMCP, Context, Image
server = FastMCP("peer")
calls = 0

@server.tool()
async def count(ctx: Context) -> int:
    global calls
    calls += 1
    await ctx.report_progress(1, 2)
    await ctx.info("counted")
    return calls

@server.tool()
def broken() -> str:
    raise ValueError("as asked")

@server.resource("data://info")
def info() -> str:
    return "from python"

server.run()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_as_server() {
    let Some(python) = python_with_mcp() else {
        return;
    };
    let world = World::new().await;
    let server = || program(&python, &["-c", FASTMCP]);
    world
        .gateway
        .apply(servers([("py", server()), ("other", server())]))
        .await
        .unwrap();
    let client = world.client().await;
    for number in 1..=3 {
        let params = json!({"name": "py_count", "arguments": {}, "_meta": {"progressToken": "p"}});
        let answer = client.exchange("tools/call", params).await;
        let methods: Vec<&Value> = answer.messages.iter().map(|one| &one["method"]).collect();
        assert_eq!(
            methods,
            ["notifications/progress", "notifications/message", ""]
                .map(|text| {
                    if text.is_empty() {
                        Value::Null
                    } else {
                        json!(text)
                    }
                })
                .iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(
            answer.last()["result"]["structuredContent"],
            json!({"result": number})
        );
    }
    let result = client.tool("other_broken", json!({})).await.unwrap();
    assert_eq!(result["isError"], true);
    assert!(
        result["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("as asked")
    );
    let read = client
        .request("resources/read", json!({"uri": "data://py/info"}))
        .await
        .unwrap();
    assert_eq!(read["contents"][0]["text"], "from python");
    world.end().await;
}

const FASTMCP_EVENTS: &str = r#"
import socket
from mcp.server.fastmcp import FastMCP, Context
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = FastMCP("old", host="127.0.0.1", port=port, log_level="WARNING")
calls = 0

@server.tool()
async def count(ctx: Context) -> int:
    global calls
    calls += 1
    await ctx.report_progress(1, 2)
    return calls

print(port, flush=True)
server.run(transport="sse")
"#;

/// The first revision's transport over HTTP, as the SDK's first major version serves it.
#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_as_server_with_an_event_stream() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let Some(python) = python_with_mcp() else {
        return;
    };
    let mut server = tokio::process::Command::new(python)
        .args(["-c", FASTMCP_EVENTS])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let port = lines.next_line().await.unwrap().unwrap();
    let world = World::new().await;
    let events = ServerConfig {
        transport: "sse".to_owned(),
        ..remote(&format!("http://127.0.0.1:{port}/sse"))
    };
    // The port is known before it is open: a remote server is tried again.
    let both = servers([("old", events), ("one", stdio(&stub()))]);
    world.gateway.apply(both).await.unwrap();
    let client = world.client().await;
    for number in 1..=3 {
        let params = json!({"name": "old_count", "arguments": {}, "_meta": {"progressToken": 7}});
        let answer = client.exchange("tools/call", params).await;
        assert_eq!(answer.messages.len(), 2, "{answer:?}");
        assert_eq!(answer.messages[0]["params"]["progressToken"], 7);
        let result = &answer.last()["result"]["structuredContent"];
        assert_eq!(result, &json!({"result": number}));
    }
    server.kill().await.unwrap();
    let result = client.tool("old_count", json!({})).await.unwrap();
    assert_eq!(result["isError"], true);
    world.end().await;
}

const PYTHON_CLIENT: &str = r#"
import asyncio, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client

async def main(url):
    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            assert tools.tools[0].name == "echo", tools
            seen = []
            async def on_progress(progress, total, message):
                seen.append(progress)
            result = await session.call_tool("progress", {"steps": 3, "ms": 20}, progress_callback=on_progress)
            assert not result.isError, result
            assert seen == [1.0, 2.0, 3.0], seen
            result = await session.call_tool("echo", {"text": "größe"})
            assert result.content[0].text == "größe", result
            await session.set_logging_level("debug")
asyncio.run(main(sys.argv[1]))
print("fine")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_as_client() {
    let Some(python) = python_with_mcp() else {
        return;
    };
    let world = World::serving([("one", stub())]).await;
    let run = tokio::process::Command::new(python)
        .args(["-c", PYTHON_CLIENT, &world.url])
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(60), run)
        .await
        .unwrap()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "fine\n",
        "{errors}"
    );
    world.end().await;
}

/// The answers recorded from the reference have the same shapes, but where the design rules
/// otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_shapes_of_the_reference() {
    let path = shared().join("golden/reference-run/env/mcp_wire.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    };
    let golden: Value = serde_json::from_str(&text).unwrap();
    let recorded = &golden["one_server"];
    let world = World::serving([("filesystem_server", stub())]).await;
    let client = Client::open(&world.url).await;
    let init = client.send(&recorded["initialize"]["request"]).await;
    let ours = &init.last()["result"];
    let theirs = &recorded["initialize"]["messages"][0]["result"];
    assert_eq!(ours["protocolVersion"], theirs["protocolVersion"]);
    assert_eq!(ours["serverInfo"]["name"], theirs["serverInfo"]["name"]);
    for key in theirs["capabilities"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| *key != "extensions")
    {
        assert!(ours["capabilities"].get(key).is_some(), "capability {key}");
    }
    for exchange in [
        "ping",
        "call_after_delete",
        "call_without_session",
        "call_with_unknown_session",
    ] {
        let recorded = &recorded[exchange];
        let mut post = client
            .http
            .post(&client.url)
            .header("accept", crate::client::BOTH);
        post = match exchange {
            "ping" => post.header("mcp-session-id", &client.session),
            "call_without_session" => post,
            _ => post.header("mcp-session-id", "0".repeat(32)),
        };
        let answer = post.json(&recorded["request"]).send().await.unwrap();
        let answer = crate::client::Answer::of(answer).await;
        assert_eq!(
            json!(answer.status.as_u16()),
            recorded["http_status"],
            "{exchange}"
        );
        let (ours, theirs) = (answer.last(), &recorded["messages"][0]);
        let keys = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(ours), keys(theirs), "{exchange}");
        assert_eq!(ours["error"]["code"], theirs["error"]["code"], "{exchange}");
    }
    let list = client.request("tools/list", json!({})).await.unwrap();
    assert!(list["tools"][0]["inputSchema"].is_object());
    world.end().await;
}
