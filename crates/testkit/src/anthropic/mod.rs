//! Anthropic's messages, scripted and strict.
//!
//! The same scripts as for [`crate::openai`]: requests that the real interface refuses get its kind of
//! error, all others the next turn. Replies come as a stream where the request asks for one. Thinking
//! (`thinking_blocks` among a turn's `message` fields) is signed by the stub, and only its own
//! signatures are taken back; `content` there stands for the whole list of blocks.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use testkit::anthropic::{AnthropicStub, Script, Turn};
//!
//! let stub = AnthropicStub::start(Script::new([
//!     Turn::fails(529),
//!     Turn::calls("list", serde_json::json!({"path": "/"})),
//!     Turn::says("Done."),
//! ]))
//! .await?;
//! // ANTHROPIC_API_BASE and ANTHROPIC_API_KEY of the client under test:
//! let settings = (stub.base_url(), stub.key());
//! # let _ = settings;
//! # Ok(()) }
//! ```

pub(crate) mod check;
mod reply;

use std::io;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::stub::{self, Interface, Received, Rejection, Reply, smallest};

/// Largest body that the interface takes.
const LARGEST_REQUEST: usize = 32 * 1024 * 1024;

/// A running stub of Anthropic.
pub type AnthropicStub = stub::Stub<Anthropic>;

/// Anthropic's messages.
#[derive(Debug)]
pub enum Anthropic {}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    stub::serve::<Anthropic>(listener, options, cancel).await
}

impl Interface for Anthropic {
    const BASE: &'static str = "";
    const VARIABLES: (&'static str, &'static str) = ("ANTHROPIC_API_BASE", "ANTHROPIC_API_KEY");
    const KEY_HEADER: &'static str = "x-api-key";
    const REQUEST_ID: &'static str = "request-id";
    const NO_KEY: &'static str = "x-api-key header is required";

    fn is_chat(path: &str) -> bool {
        path == "/v1/messages"
    }

    fn key(received: &Received) -> Option<String> {
        received.header(Self::KEY_HEADER).map(str::to_owned)
    }

    fn wrong_key(given: &str) -> String {
        format!("invalid x-api-key {given}")
    }

    fn models() -> Value {
        json!({"data": [{"type": "model", "id": "stub"}], "has_more": false})
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        if received.length > LARGEST_REQUEST {
            return Err(Rejection::new::<Self>(
                413,
                "Request exceeds the maximum size",
            ));
        }
        if received.header("anthropic-version").is_none() {
            return Err(Rejection::new::<Self>(
                400,
                "anthropic-version: header is required",
            ));
        }
        check::check(&received.body, lenient)
            .map_err(|message| Rejection::new::<Self>(400, &message))
    }

    fn turns_of_model(body: &Value) -> usize {
        stub::assistant_messages(body)
    }

    fn asked_for(body: &Value) -> Option<Value> {
        Some(smallest(body.pointer("/output_config/format/schema")?))
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        let message = reply::message(turn, number, &received.body, received.length);
        if received.body.get("stream") == Some(&json!(true)) {
            Reply::Events(reply::events(&message, turn))
        } else {
            Reply::Json(message)
        }
    }

    fn error(status: u16, message: &str) -> Value {
        let kind = match status {
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_stub"})
    }

    fn error_event(_: &Received, message: &str) -> String {
        reply::event(&Self::error(529, message))
    }
}
