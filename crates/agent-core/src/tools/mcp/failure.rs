//! What failures of an MCP connection mean (`spec/agents.md` §7.4 and §14.1).

use std::time::Duration;

use formats::owner::{Failure, Owner};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::CallError;

type HttpError = StreamableHttpError<reqwest::Error>;

/// The kind of a failure to reach a tool server.
const UNREACHABLE: &str = "tool_server_unreachable";
/// The kind of a failure to be let in.
const REFUSED: &str = "tool_server_auth";
/// The kind of a session that the server forgot.
const LOST: &str = "tool_session_lost";
/// The kind of a server that does not speak as it should.
const PROTOCOL: &str = "tool_server_protocol";

/// What the reference's server and ours answer for a session that they do not know.
const UNKNOWN_SESSION_CODES: [i32; 2] = [-32600, 32600];
const SESSION_TERMINATED: &str = "Session terminated";

fn infrastructure(kind: &str, url: &str, what: impl std::fmt::Display) -> Failure {
    Failure::new(
        Owner::Infrastructure,
        kind,
        format!("tool server {url}: {what}"),
    )
    .retryable(true)
}

pub(super) fn unusable(url: &str, error: &reqwest::Error) -> Failure {
    infrastructure(UNREACHABLE, url, chain(error))
}

pub(super) fn slow(url: &str, method: &str, limit: Duration) -> Failure {
    let seconds = limit.as_secs_f64();
    infrastructure(
        UNREACHABLE,
        url,
        format!("no answer to `{method}` within {seconds} s"),
    )
}

pub(super) fn too_many_pages(url: &str, limit: usize) -> Failure {
    infrastructure(
        PROTOCOL,
        url,
        format!("the list of tools has more than {limit} pages"),
    )
    .retryable(false)
}

pub(super) fn of_handshake(url: &str, error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => of_transport(url, error),
        ClientInitializeError::ConnectionClosed(_) => infrastructure(
            UNREACHABLE,
            url,
            "the connection closed during the handshake",
        ),
        other => infrastructure(PROTOCOL, url, chain(other)).retryable(false),
    }
}

pub(super) fn of_session(url: &str, error: &ServiceError) -> Failure {
    match error {
        ServiceError::TransportSend(error) => of_transport(url, error),
        ServiceError::TransportClosed => infrastructure(LOST, url, "the connection is closed"),
        other => infrastructure(PROTOCOL, url, chain(other)).retryable(false),
    }
}

fn of_transport(url: &str, error: &DynamicTransportError) -> Failure {
    match http_error(error) {
        Some(HttpError::SessionExpired) => {
            infrastructure(LOST, url, "the server does not know the session any more")
        }
        Some(HttpError::AuthRequired(_) | HttpError::InsufficientScope(_)) => Failure::new(
            Owner::Configuration,
            REFUSED,
            format!("tool server {url}: the credentials are missing or refused"),
        ),
        Some(HttpError::HttpStatus(status)) => infrastructure(UNREACHABLE, url, status),
        Some(other) => infrastructure(UNREACHABLE, url, chain(other)),
        None => infrastructure(UNREACHABLE, url, chain(error.error.as_ref())),
    }
}

/// A call that could not be handed over.
pub(super) fn of_sending(url: &str, error: &ServiceError) -> CallError {
    CallError::NotSent(of_session(url, error))
}

/// A call that was handed over and got no result.
pub(super) fn of_call(url: &str, error: &ServiceError) -> CallError {
    match error {
        ServiceError::McpError(answer) => {
            if UNKNOWN_SESSION_CODES.contains(&answer.code.0)
                || answer.message.contains(SESSION_TERMINATED)
            {
                CallError::NotSent(infrastructure(LOST, url, &answer.message))
            } else {
                CallError::Rejected(answer.message.to_string())
            }
        }
        ServiceError::TransportSend(sending) => match http_error(sending) {
            Some(HttpError::SessionExpired) => CallError::NotSent(of_transport(url, sending)),
            Some(HttpError::Client(http)) if http.is_connect() => {
                CallError::NotSent(of_transport(url, sending))
            }
            Some(HttpError::AuthRequired(_) | HttpError::InsufficientScope(_)) => {
                CallError::Fatal(of_transport(url, sending))
            }
            Some(HttpError::Client(http)) => CallError::Broken(chain(http)),
            Some(other) => CallError::Rejected(chain(other)),
            None => CallError::Broken(chain(sending.error.as_ref())),
        },
        ServiceError::TransportClosed => CallError::Broken("the connection closed".to_owned()),
        other => CallError::Rejected(chain(other)),
    }
}

fn http_error(error: &DynamicTransportError) -> Option<&HttpError> {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(current) = source {
        if let Some(http) = current.downcast_ref::<HttpError>() {
            return Some(http);
        }
        source = current.source();
    }
    None
}

/// An error with its causes: those of HTTP clients say nothing at the top.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
