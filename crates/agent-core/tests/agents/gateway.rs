//! Agents against our own gateway with a real server process behind it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use formats::trajectory::AgentStatus;
use futures::FutureExt;
use mcp_gateway::{Gateway, GatewayOptions};
use serde_json::json;
use testkit::mcp::StubServer;
use tokio::sync::Mutex;

use crate::connection::model_that;
use crate::support::model::{Say, Script, calls, text};
use crate::support::{assert_completed, end, lines};

use agent_core::{Agents, RunInput, ToolSources, run};

struct Running {
    gateway: Gateway,
    server: tokio::task::JoinHandle<()>,
    address: SocketAddr,
}

impl Running {
    /// A gateway at `address` that serves the stub as `stub`.
    async fn at(address: SocketAddr) -> Self {
        let gateway = Gateway::new(GatewayOptions {
            start_timeout: Duration::from_secs(60),
            stop_grace: Duration::from_millis(400),
            ..GatewayOptions::default()
        });
        let command = StubServer::default().command();
        let config = json!({"mcpServers": {"stub": {"transport": "stdio",
            "command": command.command, "args": command.args, "env": command.env}}});
        gateway
            .apply(serde_json::from_value(config).unwrap())
            .await
            .unwrap();
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = listener.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        let router = gateway.router();
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            gateway,
            server,
            address,
        }
    }

    async fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    fn url(&self) -> String {
        format!("http://{}/mcp/", self.address)
    }

    async fn end(self) {
        self.gateway.shutdown().await;
        self.server.abort();
        let _ = self.server.await;
    }
}

fn input(script: &Script, url: &str) -> RunInput {
    RunInput::new(script.model())
        .agent("loop_agent", json!({"tool_call_timeout": 1}))
        .user("go")
        .tools(ToolSources::gateway(url))
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_failures_and_a_late_call_is_cancelled_at_the_server() {
    let running = Running::start().await;
    let script = Script::new([
        calls(&[
            ("fail", json!({})),
            ("protocol_error", json!({})),
            ("sleep", json!({"ms": 60_000, "label": "late"})),
            ("echo", json!({"text": "after"})),
        ]),
        // The server hears of the cancellation and stops beside the next calls; give it a moment.
        calls(&[
            ("sleep", json!({"ms": 1000, "label": "pause"})),
            ("noticed", json!({})),
        ]),
        text("done"),
    ]);
    // Time enough on a busy machine for what is not meant to be late.
    let slow = input(&script, &running.url()).agent("loop_agent", json!({"tool_call_timeout": 5}));
    let trajectory = run(&Agents::builtin(), slow).await.unwrap();
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    assert_eq!(lines[2], "tool: first\nsecond\n{\"why\":\"asked to\"}");
    assert!(lines[3].contains("own error"), "{lines:?}");
    assert!(
        lines[4].starts_with("tool: The call of `sleep` timed out"),
        "{lines:?}"
    );
    assert_eq!(lines[5], "tool: after");
    assert_eq!(lines[8], "tool: [\"late\"]");
    let failed: Vec<bool> = trajectory.messages[2..6]
        .iter()
        .map(|message| message.extra.contains_key("is_error"))
        .collect();
    assert_eq!(failed, [true, true, true, false]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_run_cancels_the_call_at_the_server() {
    let running = Running::start().await;
    let script = Script::new([calls(&[("sleep", json!({"ms": 60_000, "label": "run"}))])]);
    let mut first = input(&script, &running.url()).agent("loop_agent", json!({}));
    let cancel = first.cancel.clone();
    let events = crate::support::Events::default();
    first.observer = Arc::new(events.clone());
    tokio::spawn(async move {
        crate::support::eventually("the call begins", || !events.of("tool_call").is_empty()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let trajectory = run(&Agents::builtin(), first).await.unwrap();
    assert_eq!(end(&trajectory).0, AgentStatus::Cancelled);
    let mut seen = String::new();
    for _ in 0..50 {
        let script = Script::new([calls(&[("noticed", json!({}))]), text("done")]);
        let look = input(&script, &running.url()).agent("loop_agent", json!({}));
        let trajectory = run(&Agents::builtin(), look).await.unwrap();
        seen = lines(&trajectory).remove(2);
        if seen == "tool: [\"run\"]" {
            running.end().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server was not told: {seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_restarts_at_the_same_port_is_found_again() {
    let running = Running::start().await;
    let url = running.url();
    let script = Script::new([
        calls(&[("count", json!({}))]),
        calls(&[("count", json!({})), ("count", json!({}))]),
        text("done"),
    ]);
    let place = Arc::new(Mutex::new(Some(running)));
    let restarted = Arc::clone(&place);
    let model = model_that(&script, 1, move || {
        let place = Arc::clone(&restarted);
        async move {
            let mut place = place.lock().await;
            if let Some(running) = place.take() {
                let address = running.address;
                running.end().await;
                *place = Some(Running::at(address).await);
            }
        }
        .boxed()
    });
    let mut input = input(&script, &url).agent("loop_agent", json!({}));
    input.model = model;
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    let lines = lines(&trajectory);
    // The server behind it is a new one and counts anew; each call was made once.
    assert_eq!(lines[2], "tool: 1");
    assert_eq!(lines[4..6], ["tool: 1", "tool: 2"]);
    let running = place.lock().await.take();
    if let Some(running) = running {
        running.end().await;
    }
}

/// A script that is not used up would hide calls that were not made.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_crashes_is_told_and_the_run_goes_on() {
    let running = Running::start().await;
    let script = Script::new([
        calls(&[("crash", json!({"text": "out of memory", "code": 3}))]),
        Say::Fail(llm_client::ChatErrorKind::Timeout, "slow"),
        text("done"),
    ]);
    let input = input(&script, &running.url()).agent("loop_agent", json!({}));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(script.left(), 0);
    let said = lines(&trajectory).remove(2);
    assert!(said.contains("out of memory"), "{said}");
    running.end().await;
}
