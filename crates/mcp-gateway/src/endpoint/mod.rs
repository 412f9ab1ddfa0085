//! The clients' side: MCP over streamable HTTP with sessions (`spec/environment.md` §7).

pub(crate) mod caller;
pub(crate) mod guard;
mod headers;
mod initialize;
pub(crate) mod methods;
mod post;
pub(crate) mod session;
pub(crate) mod sessionless;
pub(crate) mod sessions;
pub(crate) mod stream;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::json;

use crate::gateway::Gateway;
use crate::jsonrpc::{self, INVALID_REQUEST, Raw, RpcError};
use session::Session;
use stream::{Reading, event_response, parse_event_id};

/// The revisions of MCP with sessions, newest last; [`sessionless::VERSION`] is served besides.
pub(crate) const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The first revision whose clients expect an event without data at the start of a stream.
const FIRST_PRIMED: &str = "2025-11-25";

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const LAST_EVENT_HEADER: &str = "last-event-id";

pub(crate) fn router(gateway: Gateway) -> Router {
    Router::new()
        .route("/mcp", any(handle))
        .route("/mcp/", any(handle))
        .route(
            "/mcp/{*rest}",
            any(async || (StatusCode::NOT_FOUND, "Not Found")),
        )
        .with_state(gateway)
}

async fn handle(State(gateway): State<Gateway>, request: Request) -> Response {
    if !gateway.is_configured() {
        return (
            StatusCode::NOT_FOUND,
            axum::Json(json!({"detail": "Not Found"})),
        )
            .into_response();
    }
    if let Err(refusal) = guard::check_host(&request, &gateway.inner.options.allowed_hosts) {
        return refuse(StatusCode::FORBIDDEN, None, &refusal);
    }
    let method = request.method().clone();
    if method != Method::POST
        && header_text(request.headers(), VERSION_HEADER) == Some(sessionless::VERSION)
    {
        // There is no session to listen to or to end.
        return not_allowed("POST");
    }
    match method {
        Method::POST => post::handle(gateway, request).await,
        Method::GET => get(&gateway, request.headers()),
        Method::DELETE => delete(&gateway, request.headers()),
        _ => not_allowed("GET, POST, DELETE"),
    }
}

fn not_allowed(allowed: &'static str) -> Response {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(header::ALLOW, allowed)],
        axum::Json(json!({"detail": "Method Not Allowed"})),
    )
        .into_response()
}

/// A refusal of the transport: a JSON-RPC error under an HTTP status.
fn refuse(status: StatusCode, id: Option<Raw>, message: &str) -> Response {
    refuse_with(status, id, RpcError::new(INVALID_REQUEST, message))
}

fn refuse_with(status: StatusCode, id: Option<Raw>, error: RpcError) -> Response {
    // The reference's word where the id of the request is not known.
    let id = id.unwrap_or_else(|| jsonrpc::raw("server-error"));
    let text = jsonrpc::response(&id, &Err(error));
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The session that a request names, or the refusal.
fn session_of(
    gateway: &Gateway,
    headers: &HeaderMap,
    id: Option<&Raw>,
) -> Result<Arc<Session>, Box<Response>> {
    let Some(name) = header_text(headers, SESSION_HEADER) else {
        return Err(Box::new(refuse(
            StatusCode::BAD_REQUEST,
            id.cloned(),
            "Bad Request: Missing session ID",
        )));
    };
    let session = gateway.inner.sessions.get(name).ok_or_else(|| {
        Box::new(refuse(
            StatusCode::NOT_FOUND,
            id.cloned(),
            "Session not found",
        ))
    })?;
    if let Some(version) = header_text(headers, VERSION_HEADER)
        && !VERSIONS.contains(&version)
    {
        return Err(Box::new(refuse(
            StatusCode::BAD_REQUEST,
            id.cloned(),
            &format!("Bad Request: Unsupported protocol version: {version}"),
        )));
    }
    session.touch();
    Ok(session)
}

/// The stream of messages that belong to no request, or the rest of a stream that broke.
fn get(gateway: &Gateway, headers: &HeaderMap) -> Response {
    if !headers::accepts(headers).events {
        return refuse(
            StatusCode::NOT_ACCEPTABLE,
            None,
            "Not Acceptable: Client must accept text/event-stream",
        );
    }
    let session = match session_of(gateway, headers, None) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let keep_alive = gateway.inner.options.keep_alive;
    let primed = session.version >= FIRST_PRIMED;
    let resumed = header_text(headers, LAST_EVENT_HEADER).and_then(parse_event_id);
    if let Some((number, after)) = resumed
        && number != session.general.number()
    {
        let Some(stream) = session.stream(number) else {
            return refuse(
                StatusCode::NOT_FOUND,
                None,
                "Not Found: the stream is no longer kept (resume_window)",
            );
        };
        let reading = Reading {
            after,
            primed: false,
            resumable: true,
            keep_alive,
            held: None,
        };
        return event_response(stream, reading);
    }
    let Some(held) = session.open_general() else {
        return refuse(
            StatusCode::CONFLICT,
            None,
            "Conflict: Only one SSE stream is allowed per session",
        );
    };
    let reading = Reading {
        after: resumed.map_or_else(|| session.general.delivered(), |(_, after)| after),
        primed,
        resumable: true,
        keep_alive,
        held: Some(held),
    };
    event_response(session.general.clone(), reading)
}

fn delete(gateway: &Gateway, headers: &HeaderMap) -> Response {
    match session_of(gateway, headers, None) {
        Ok(session) => {
            gateway.inner.sessions.remove(&session.id);
            StatusCode::OK.into_response()
        }
        Err(refusal) => *refusal,
    }
}
