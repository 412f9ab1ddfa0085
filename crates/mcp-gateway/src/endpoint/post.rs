//! `POST`: one message of a client.

use std::sync::Arc;

use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::caller::{Asking, Caller, Destination, Logs};
use super::headers::{self, Accepts};
use super::session::Session;
use super::stream::{EventStream, Next, Reading, event_response};
use super::{
    FIRST_PRIMED, SESSION_HEADER, initialize, methods, refuse, refuse_with, session_of, sessionless,
};
use crate::gateway::Gateway;
use crate::jsonrpc::{
    self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Message, MessageError, Outcome,
    PARSE_ERROR, Raw, RawObject, RpcError,
};
use crate::tool_calls::TARGET_AGENT;

pub(crate) async fn handle(gateway: Gateway, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    if !is_json(&headers) {
        return refuse_text(StatusCode::BAD_REQUEST, "Invalid Content-Type header");
    }
    let accepts = headers::accepts(&headers);
    if !accepts.json && !accepts.events {
        return refuse(
            StatusCode::NOT_ACCEPTABLE,
            None,
            "Not Acceptable: Client must accept application/json or text/event-stream",
        );
    }
    let limit = gateway.inner.options.max_body_bytes;
    let Ok(body) = to_bytes(body, limit).await else {
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            None,
            &format!("the body is longer than {limit} bytes (max_body_bytes) or was cut off"),
        );
    };
    let message = match Message::parse(&body) {
        Ok(message) => message,
        Err(error) => {
            let code = match error {
                MessageError::Json(_) => PARSE_ERROR,
                MessageError::Shape(_) => INVALID_PARAMS,
            };
            return refuse_with(StatusCode::BAD_REQUEST, None, RpcError::new(code, error));
        }
    };
    match message {
        Message::Request { id, method, params } => {
            let params = match RawObject::parse(params.as_deref()) {
                Ok(params) => params,
                Err(error) => return refuse_with(StatusCode::BAD_REQUEST, Some(id), error),
            };
            let request = ClientRequest { id, method, params };
            // A server that each session has for itself needs sessions. Then the answer is that of a
            // server of the handshake era, from which all clients go on with the handshake.
            if sessionless::is_sessionless(&headers, &request.method, Some(&request.params))
                && !gateway.needs_sessions()
            {
                return sessionless::handle(gateway, &headers, accepts, request).await;
            }
            on_request(gateway, &headers, accepts, request).await
        }
        Message::Notification { method, .. }
            if sessionless::is_sessionless(&headers, &method, None) =>
        {
            // There is nothing that one could be about: a client cancels by hanging up.
            StatusCode::ACCEPTED.into_response()
        }
        Message::Notification { method, params } => {
            match session_of(&gateway, &headers, None) {
                Ok(session) => on_notification(&session, &method, params.as_deref()),
                Err(refusal) => return *refusal,
            }
            StatusCode::ACCEPTED.into_response()
        }
        Message::Response { id, outcome } => match session_of(&gateway, &headers, None) {
            Ok(session) => {
                session.resolve(&id, outcome);
                StatusCode::ACCEPTED.into_response()
            }
            Err(refusal) => *refusal,
        },
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    super::header_text(headers, header::CONTENT_TYPE.as_str()).is_some_and(|value| {
        let kind = value.split(';').next().unwrap_or(value).trim();
        kind.eq_ignore_ascii_case("application/json")
    })
}

fn refuse_text(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

fn on_notification(session: &Session, method: &str, params: Option<&RawValue>) {
    if method == "notifications/cancelled"
        && let Ok(params) = RawObject::parse(params)
        && let Some(id) = params.get("requestId")
    {
        session.cancel(id);
    }
}

pub(super) struct ClientRequest {
    pub(super) id: Raw,
    pub(super) method: String,
    pub(super) params: RawObject,
}

async fn on_request(
    gateway: Gateway,
    headers: &HeaderMap,
    accepts: Accepts,
    request: ClientRequest,
) -> Response {
    let is_new = request.method == "initialize" && !headers.contains_key(SESSION_HEADER);
    let session = if is_new {
        match initialize::open_session(&gateway, &request.params) {
            Ok(session) => session,
            Err((status, text)) => return refuse(status, Some(request.id), &text),
        }
    } else {
        match session_of(&gateway, headers, Some(&request.id)) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        }
    };
    let cancelled = match session.begin(&request.id) {
        Ok(cancelled) => cancelled,
        Err(text) => return refuse(StatusCode::BAD_REQUEST, Some(request.id), &text),
    };
    let options = gateway.inner.options.clone();
    let stream = session.open_stream();
    tokio::spawn(run(
        gateway,
        session.clone(),
        stream.clone(),
        headers::forwarded(headers),
        request,
        cancelled,
    ));
    let mut response = respond(&session, stream, accepts, &options).await;
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(SESSION_HEADER), id);
    }
    response
}

/// The answer, where it is the first message and the client takes plain JSON; everything else goes
/// out as an event stream.
pub(super) async fn plain_answer(
    stream: &EventStream,
    accepts: Accepts,
    options: &crate::GatewayOptions,
) -> Option<Bytes> {
    if !accepts.json {
        return None;
    }
    let first = if accepts.events {
        tokio::time::timeout(options.plain_answer_wait, stream.next(0))
            .await
            .ok()?
    } else {
        answer_only(stream).await
    };
    match first {
        Next::Event(event) if event.is_answer() => Some(event.text),
        Next::Event(_) | Next::Finished => None,
    }
}

async fn respond(
    session: &Session,
    stream: Arc<EventStream>,
    accepts: Accepts,
    options: &crate::GatewayOptions,
) -> Response {
    if let Some(text) = plain_answer(&stream, accepts, options).await {
        session.forget(stream.number());
        return ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    }
    let reading = Reading {
        after: 0,
        primed: session.version >= FIRST_PRIMED,
        resumable: true,
        keep_alive: options.keep_alive,
        held: None,
    };
    event_response(stream, reading)
}

/// The answer, for a client that takes no events: other messages are not delivered to it.
async fn answer_only(stream: &EventStream) -> Next {
    let mut place = 0;
    loop {
        match stream.next(place).await {
            Next::Event(event) if !event.is_answer() => place = event.place,
            last => return last,
        }
    }
}

/// Runs a request to its end, whether or not its client stays connected.
async fn run(
    gateway: Gateway,
    session: Arc<Session>,
    stream: Arc<EventStream>,
    headers: HeaderMap,
    request: ClientRequest,
    cancelled: CancellationToken,
) {
    let ClientRequest {
        id,
        method,
        mut params,
    } = request;
    let destination = Destination {
        stream: stream.clone(),
        progress_token: take_meta(&mut params),
        logs: Logs::OfSession,
    };
    let caller = Caller::new(session.clone(), headers, destination, Asking::OnStream);
    let outcome = run_to_end(&gateway, Arc::new(caller), &method, params, &cancelled).await;
    session.finish(&id, &stream, jsonrpc::response(&id, &outcome));
}

/// Answers a request, or ends it where it is cancelled, and tells who watches.
pub(super) async fn run_to_end(
    gateway: &Gateway,
    caller: Arc<Caller>,
    method: &str,
    params: RawObject,
    cancelled: &CancellationToken,
) -> Outcome {
    let watched = gateway.watch_tool_call(TARGET_AGENT, method, &params, &caller.headers);
    let outcome = tokio::select! {
        biased;
        () = cancelled.cancelled() => Err(RpcError::new(0, "Request cancelled")),
        outcome = answer(gateway, caller, method, params) => outcome,
    };
    if let Some(watched) = watched {
        watched.ended(&outcome).await;
    }
    outcome
}

async fn answer(
    gateway: &Gateway,
    caller: Arc<Caller>,
    method: &str,
    params: RawObject,
) -> Outcome {
    let Some(entered) = gateway.enter() else {
        return Err(RpcError::new(INVALID_REQUEST, "the gateway was shut down"));
    };
    let generation = &entered.generation;
    tokio::select! {
        // First: the servers are stopped right after it.
        biased;
        () = generation.aborted().cancelled() => {
            if method == "tools/call" {
                Ok(methods::tool_failure(methods::REPLACED))
            } else {
                Err(RpcError::new(INTERNAL_ERROR, methods::REPLACED))
            }
        }
        outcome = methods::answer(gateway, generation, caller, method, params) => outcome,
    }
}

/// Takes the progress token out of `_meta`, and the actor, which is not believed from outside
/// (`spec/environment.md` §9). The rest goes to the server as it is.
pub(super) fn take_meta(params: &mut RawObject) -> Option<Raw> {
    let mut meta = params.read::<RawObject>("_meta")?;
    let token = meta.get("progressToken").map(ToOwned::to_owned);
    if meta.get("actor_id").is_some() {
        meta.remove("actor_id");
        params.set("_meta", meta.to_raw());
    }
    token
}
