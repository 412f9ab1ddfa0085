//! Clients without a session (MCP 2026-07-28): each request stands for itself.
//!
//! The servers behind the gateway are of the handshake era and keep their one session with it. What
//! such a server asks during a call is put to the client in rounds ([`rounds`]); what it announces
//! goes out on streams that clients open for it ([`listen`]).

mod argument_headers;
mod encoded_header;
mod envelope;
pub(crate) mod listen;
pub(crate) mod questions;
mod results;
pub(crate) mod rounds;

use std::sync::{Arc, OnceLock};

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::caller::{Asking, Caller, Destination, Logs};
use super::headers::{self, Accepts};
use super::methods;
use super::post::{self, ClientRequest};
use super::session::Session;
use super::stream::{EventStream, Reading, event_response};
use crate::catalog::Kind;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::jsonrpc::{self, INVALID_REQUEST, METHOD_NOT_FOUND, Outcome, Raw, RawObject, RpcError};
use envelope::{Envelope, Refusal};
use questions::Questions;
use rounds::{Exchange, Round, WaitLimits};

pub(crate) use argument_headers::PREFIX as ARGUMENT_HEADER_PREFIX;
pub(crate) use envelope::{VERSION, is_sessionless};

pub(super) const NAME_HEADER: &str = "mcp-name";

/// Requests that servers may answer with questions.
const IN_ROUNDS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// Other requests that are forwarded.
const FORWARDED: [&str; 5] = [
    "completion/complete",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];

/// Answers one request.
pub(super) async fn handle(
    gateway: Gateway,
    headers: &HeaderMap,
    accepts: Accepts,
    mut request: ClientRequest,
) -> Response {
    let Some(entered) = gateway.enter() else {
        let error = RpcError::new(INVALID_REQUEST, "the gateway was shut down");
        return refuse(request.id, (StatusCode::BAD_REQUEST, error));
    };
    let generation = &entered.generation;
    let envelope = match envelope::open(headers, &request.method, &mut request.params) {
        Ok(envelope) => envelope,
        Err(refusal) => return refuse(request.id, refusal),
    };
    match request.method.as_str() {
        "server/discover" => {
            let discovered = Ok(results::discovered(generation));
            plain(
                &request.id,
                &results::complete("server/discover", discovered, None),
            )
        }
        "subscriptions/listen" => listen(&gateway, generation, accepts, request).await,
        method if IN_ROUNDS.contains(&method) || FORWARDED.contains(&method) => {
            if let Err(refusal) = check_arguments(generation, headers, &request).await {
                return refuse(request.id, refusal);
            }
            drop(entered);
            run(gateway, headers, accepts, request, envelope).await
        }
        method => {
            let error = RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {method}"));
            refuse(request.id, (StatusCode::NOT_FOUND, error))
        }
    }
}

fn refuse(id: Raw, (status, error): Refusal) -> Response {
    super::refuse_with(status, Some(id), error)
}

fn plain(id: &Raw, outcome: &Outcome) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let text = jsonrpc::response(id, outcome);
    (results::status(outcome), kind, text).into_response()
}

/// Where a tool's schema repeats arguments in headers, the two have to agree.
async fn check_arguments(
    generation: &Generation,
    headers: &HeaderMap,
    request: &ClientRequest,
) -> Result<(), Refusal> {
    if request.method != "tools/call" {
        return Ok(());
    }
    let Some(name) = request.params.text("name") else {
        return Ok(());
    };
    let view = generation.shared();
    if view.route(Kind::Tools, &name).await.is_none() {
        return Ok(());
    }
    let index = view.index(Kind::Tools);
    let schema = index.item(&name).and_then(|tool| tool.get("inputSchema"));
    let Some(schema) = schema.filter(|schema| schema.get().contains(argument_headers::KEYWORD))
    else {
        return Ok(());
    };
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let arguments: Value = request.params.read("arguments").unwrap_or_default();
    argument_headers::check(&schema, &arguments, headers)
}

/// Runs a request that is forwarded, or goes on with it where the client comes back to it.
async fn run(
    gateway: Gateway,
    headers: &HeaderMap,
    accepts: Accepts,
    request: ClientRequest,
    envelope: Envelope,
) -> Response {
    let options = gateway.inner.options.clone();
    let round = Round {
        id: request.id.clone(),
        stream: Arc::new(EventStream::new(0, options.max_stream_bytes)),
        status: Arc::new(OnceLock::new()),
        gone: CancellationToken::new(),
    };
    let (stream, status) = (round.stream.clone(), round.status.clone());
    // Dropped with the response or, before there is one, with this future: the client has gone.
    let gone = round.gone.clone().drop_guard();
    let begun = begin(&gateway, headers, request, envelope, stream.clone()).await;
    let exchange = match begun {
        Ok(exchange) => exchange,
        Err(error) => {
            let outcome = Err(error);
            return plain(&round.id, &outcome);
        }
    };
    let limits = WaitLimits {
        count: options.max_waiting_calls,
        time: options.client_answer_timeout,
    };
    tokio::spawn(async move {
        round.run(exchange, &gateway.inner.rounds, limits).await;
    });
    if let Some(text) = post::plain_answer(&stream, accepts, &options).await {
        let status = status.get().copied().unwrap_or(StatusCode::OK);
        return (status, [(header::CONTENT_TYPE, "application/json")], text).into_response();
    }
    event_response(stream, Reading::once(options.keep_alive, Box::new(gone)))
}

/// Starts the call, or takes up the one that `requestState` stands for.
async fn begin(
    gateway: &Gateway,
    headers: &HeaderMap,
    request: ClientRequest,
    envelope: Envelope,
    stream: Arc<EventStream>,
) -> Result<Exchange, RpcError> {
    let ClientRequest {
        method, mut params, ..
    } = request;
    let destination = Destination {
        stream,
        progress_token: post::take_meta(&mut params),
        logs: envelope.log_rank.map_or(Logs::Off, Logs::From),
    };
    let in_rounds = IN_ROUNDS.contains(&method.as_str());
    let about = rounds::about(&params);
    let state = params.text("requestState").filter(|_| in_rounds);
    let responses = params.get("inputResponses").map(ToOwned::to_owned);
    params.remove("requestState");
    params.remove("inputResponses");
    // Looked at first: a call that waits is not lost to a broken answer.
    if in_rounds && let Some(responses) = &responses {
        Questions::check(responses)?;
    }
    if let Some(state) = state {
        let exchange = gateway.inner.rounds.take(&state, &method, about)?;
        exchange.caller.resume().await;
        exchange.caller.redirect(destination);
        if let Some(questions) = exchange.caller.questions() {
            questions.answer(responses.as_deref())?;
        }
        return Ok(exchange);
    }
    let options = &gateway.inner.options;
    let session = Session::new(VERSION, envelope.capabilities, options);
    let asking = if in_rounds {
        Asking::InRounds(Questions::new(options.client_answer_timeout))
    } else {
        Asking::Never
    };
    let headers = headers::forwarded(headers);
    let caller = Arc::new(Caller::new(Arc::new(session), headers, destination, asking));
    let cancel = CancellationToken::new();
    let (sender, answer) = tokio::sync::oneshot::channel();
    tokio::spawn(call(
        gateway.clone(),
        caller.clone(),
        method.clone(),
        params,
        envelope.log_rank,
        cancel.clone(),
        sender,
    ));
    Ok(Exchange {
        caller,
        method,
        about,
        answer,
        _cancel: cancel.drop_guard(),
    })
}

async fn call(
    gateway: Gateway,
    caller: Arc<Caller>,
    method: String,
    params: RawObject,
    log_rank: Option<usize>,
    cancel: CancellationToken,
    sender: tokio::sync::oneshot::Sender<Outcome>,
) {
    let uri = params.text("uri");
    if let Some(rank) = log_rank
        && let Some(entered) = gateway.enter()
    {
        methods::ask_for_logs(&gateway, &entered.generation, rank).await;
    }
    let outcome = post::run_to_end(&gateway, caller, &method, params, &cancel).await;
    // The client may have gone.
    let _ = sender.send(outcome.map_err(|error| results::resource_error(error, uri.as_deref())));
}

async fn listen(
    gateway: &Gateway,
    generation: &Generation,
    accepts: Accepts,
    request: ClientRequest,
) -> Response {
    if !accepts.events {
        return super::refuse(
            StatusCode::NOT_ACCEPTABLE,
            Some(request.id),
            "Not Acceptable: Client must accept text/event-stream",
        );
    }
    let options = &gateway.inner.options;
    let listeners = &gateway.inner.sessions.listeners;
    let id = request.id.clone();
    let opened = listen::open(
        generation,
        listeners,
        options.max_sessions,
        id,
        &request.params,
    );
    match opened.await {
        Ok((stream, listening)) => event_response(
            stream,
            Reading::once(options.keep_alive, Box::new(listening)),
        ),
        Err(error) => plain(&request.id, &Err(error)),
    }
}
