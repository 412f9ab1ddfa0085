//! The connection to a tool server: pages, headers, lost sessions, dead servers (scenarios 7 and
//! 14, `spec/agents.md` §7).

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use agent_core::{Agents, McpEndpoint, RunInput, ToolSources, run};
use formats::trajectory::AgentStatus;
use futures::FutureExt;
use llm_client::{ChatError, ChatRequest, FinishReason, Model, Provider, Reply};
use serde_json::json;

use crate::support::model::{Script, calls, text};
use crate::support::server::Server;
use crate::support::{assert_completed, assert_every_call_answered, end, go, lines};

#[tokio::test]
async fn scenario_14_tools_of_all_pages_are_seen() {
    let server = Server::with_many(130, 50).await;
    let script = Script::new([calls(&[("tool_129", json!({}))]), text("done")]);
    let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    assert_eq!(script.asked()[0].tools.len(), 130);
    assert_eq!(lines(&trajectory)[2], "tool: tool_129");
    assert_eq!(server.state.listed.load(SeqCst), 3);
}

#[tokio::test]
async fn the_actor_id_wins_over_the_token_and_headers_go_along() {
    for (token, actor, bearer) in [
        (Some("token"), Some("actor"), Some("Bearer actor")),
        (Some("token"), Some(""), Some("Bearer token")),
        (Some(""), None, None),
    ] {
        let server = Server::start().await;
        let mut endpoint = McpEndpoint::new(&server.url);
        endpoint.auth_token = token.map(str::to_owned);
        endpoint.actor_id = actor.map(str::to_owned);
        endpoint
            .headers
            .insert("x-agent-id", "agent-7".parse().unwrap());
        assert!(!format!("{endpoint:?}").contains("token\""), "{endpoint:?}");
        let script = Script::new([text("done")]);
        let input = RunInput::new(script.model())
            .agent("loop_agent", json!({}))
            .user("go")
            .tools(ToolSources::new().with_endpoint(endpoint));
        assert_completed(&run(&Agents::builtin(), input).await.unwrap());
        let seen = server.state.headers.lock().unwrap().clone().unwrap();
        assert_eq!(
            seen,
            (bearer.map(str::to_owned), Some("agent-7".to_owned()))
        );
    }
}

/// A gateway that moves a missing slash, as the reference's does, and the session at the end.
#[tokio::test]
async fn redirects_are_followed_and_the_session_is_closed() {
    let server = Server::start().await;
    let target = server.url.clone();
    let moved = axum::Router::new().route(
        "/mcp",
        axum::routing::any(move || async move { axum::response::Redirect::temporary(&target) }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, moved).await });
    let script = Script::new([calls(&[("counter", json!({}))]), text("done")]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(format!("http://{address}/mcp")));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(lines(&trajectory)[2], "tool: 1");
    assert_eq!(server.state.initialized.load(SeqCst), 1);
    assert_eq!(server.open_sessions().await, 0);
}

#[tokio::test]
async fn an_unreachable_server_is_infrastructure() {
    let server = Server::start().await;
    server.stop().await;
    let started = Instant::now();
    let script = Script::new([]);
    let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
    assert_eq!(
        end(&trajectory),
        (
            AgentStatus::Error,
            "infrastructure",
            "tool_server_unreachable"
        )
    );
    let error = trajectory.error.as_ref().unwrap();
    assert!(
        error.retryable && error.message.contains(&server.url),
        "{error}"
    );
    assert_eq!(lines(&trajectory), ["user: go"]);
    assert_eq!(trajectory.time_elapsed, 0.0);
    assert!(started.elapsed() < Duration::from_secs(20));
}

/// A model that does something to the world before it speaks.
struct Meanwhile<F>(Script, usize, F);

impl<F: Fn() -> futures::future::BoxFuture<'static, ()> + Send + Sync> Provider for Meanwhile<F> {
    fn name(&self) -> &str {
        "openai"
    }

    fn send<'a>(
        &'a self,
        request: ChatRequest<'a>,
    ) -> futures::future::BoxFuture<'a, Result<Reply, ChatError>> {
        async move {
            if self.0.asked().len() == self.1 {
                (self.2)().await;
            }
            self.0.send(request).await
        }
        .boxed()
    }
}

pub fn model_that<F>(script: &Script, before_turn: usize, act: F) -> Model
where
    F: Fn() -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static,
{
    Model::new(
        "openai/fake",
        std::sync::Arc::new(Meanwhile(script.clone(), before_turn, act)),
    )
    .with_retry(llm_client::RetryPolicy::never())
}

#[tokio::test]
async fn a_forgotten_session_is_replaced_once_and_the_call_repeated() {
    let server = std::sync::Arc::new(Server::start().await);
    let script = Script::new([
        calls(&[("counter", json!({}))]),
        calls(&[("counter", json!({})), ("counter", json!({}))]),
        text("done"),
    ]);
    let forgetful = std::sync::Arc::clone(&server);
    let model = model_that(&script, 1, move || {
        let server = std::sync::Arc::clone(&forgetful);
        async move { server.forget_sessions().await }.boxed()
    });
    let trajectory = go("loop_agent", json!({}), model, &server).await;
    assert_completed(&trajectory);
    // Nothing was called twice.
    assert_eq!(lines(&trajectory)[2], "tool: 1");
    assert_eq!(lines(&trajectory)[4..6], ["tool: 2", "tool: 3"]);
    assert_eq!(server.state.initialized.load(SeqCst), 2);
}

#[tokio::test]
async fn scenario_7_a_server_that_is_gone_ends_the_run_and_every_call_is_answered() {
    for agent in ["loop_agent", "react_toolbelt_agent"] {
        let server = std::sync::Arc::new(Server::start().await);
        let script = Script::new([
            calls(&[("toolbelt_add_tool", json!({"tool_name": "echo"}))]),
            calls(&[
                ("echo", json!({"text": "a"})),
                ("echo", json!({"text": "b"})),
                (
                    "final_answer",
                    json!({"answer": "x", "status": "completed"}),
                ),
            ]),
        ]);
        let dying = std::sync::Arc::clone(&server);
        let model = model_that(&script, 1, move || {
            let server = std::sync::Arc::clone(&dying);
            async move { server.stop().await }.boxed()
        });
        let mut endpoint = McpEndpoint::new(&server.url);
        endpoint.limits.reconnect = Duration::from_millis(300);
        let input = RunInput::new(model)
            .agent(agent, json!({}))
            .user("go")
            .tools(ToolSources::new().with_endpoint(endpoint));
        let started = Instant::now();
        let trajectory = run(&Agents::builtin(), input).await.unwrap();
        assert_eq!(
            end(&trajectory),
            (
                AgentStatus::Error,
                "infrastructure",
                "tool_server_unreachable"
            ),
            "{agent}: {:?}",
            trajectory.error
        );
        let lines = lines(&trajectory);
        assert!(
            lines[4].starts_with("tool: Fatal error"),
            "{agent} {lines:?}"
        );
        assert!(
            lines[5].starts_with("tool: Not called"),
            "{agent} {lines:?}"
        );
        assert_eq!(lines.len(), 7, "{agent} {lines:?}");
        assert_every_call_answered(&trajectory.messages);
        // At once, not after the time limit of the call.
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn a_connection_that_breaks_during_a_call_is_told_and_not_repeated() {
    let server = std::sync::Arc::new(Server::start().await);
    let script = Script::new([
        calls(&[("slow", json!({"ms": 60_000}))]),
        text("done").because(FinishReason::Stop),
    ]);
    let breaking = std::sync::Arc::clone(&server);
    tokio::spawn(async move {
        crate::support::eventually("the call runs", || breaking.state.running.load(SeqCst) == 1)
            .await;
        breaking.stop().await;
    });
    let started = Instant::now();
    let trajectory = go("loop_agent", json!({}), script.model(), &server).await;
    assert_completed(&trajectory);
    assert!(
        lines(&trajectory)[2].starts_with("tool: The connection broke during the call of `slow`"),
        "{:?}",
        lines(&trajectory)
    );
    assert_eq!(server.calls().len(), 1);
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

/// A server that speaks plain JSON, without session, and returns a part of a kind that nobody
/// knows.
async fn odd_server() -> (String, tokio_util::sync::DropGuard) {
    use axum::Json;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    async fn answer(Json(request): Json<serde_json::Value>) -> axum::response::Response {
        let result = match request["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                   "serverInfo": {"name": "odd", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "odd", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "before"},
                                   {"type": "hologram", "rays": 3}], "isError": true}),
            _ => return StatusCode::ACCEPTED.into_response(),
        };
        let id = request["id"].clone();
        Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let stop = tokio_util::sync::CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let app = axum::Router::new().route("/", axum::routing::post(answer));
    tokio::spawn(async move {
        tokio::select! {
            () = stopped => {}
            _ = axum::serve(listener, app) => {}
        }
    });
    (url, stop.drop_guard())
}

#[tokio::test]
async fn a_part_of_an_unknown_kind_is_shown_as_it_came() {
    let (url, _guard) = odd_server().await;
    let script = Script::new([calls(&[("odd", json!({}))]), text("done")]);
    let input = RunInput::new(script.model())
        .agent("loop_agent", json!({}))
        .user("go")
        .tools(ToolSources::gateway(url));
    let trajectory = run(&Agents::builtin(), input).await.unwrap();
    assert_completed(&trajectory);
    assert_eq!(
        lines(&trajectory)[2],
        "tool: before\n{\"type\":\"hologram\",\"rays\":3}"
    );
}
