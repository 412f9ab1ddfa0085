//! OpenAI's chat completions and its Responses interface, scripted and strict.
//!
//! [`OpenAiStub`] runs on a loopback port until it is dropped. Requests that the real interface
//! refuses get its kind of error; all others get the next turn of the [`Script`]. Every request is
//! kept for the test to look at.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use testkit::openai::{OpenAiStub, Script, Turn};
//!
//! let stub = OpenAiStub::start(Script::new([
//!     Turn::fails(429).header("retry-after-ms", "5"),
//!     Turn::calls("list", serde_json::json!({"path": "/"})),
//!     Turn::says("Done."),
//! ]))
//! .await?;
//! // OPENAI_BASE_URL and OPENAI_API_KEY of the client under test:
//! let settings = (stub.base_url(), stub.key());
//! # let _ = settings;
//! assert_eq!(stub.requests().len(), 0);
//! # Ok(()) }
//! ```

mod answer;
mod check;
mod published;
mod responses;
mod schema;

use std::io;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::stub::{self, Interface, Received, Rejection, Reply, smallest};
use check::Refusal;

/// A running stub of OpenAI.
pub type OpenAiStub = stub::Stub<OpenAi>;

/// OpenAI's chat completions, and its Responses interface at `/v1/responses`.
#[derive(Debug)]
pub enum OpenAi {}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    stub::serve::<OpenAi>(listener, options, cancel).await
}

impl Interface for OpenAi {
    const BASE: &'static str = "/v1";
    const VARIABLES: (&'static str, &'static str) = ("OPENAI_BASE_URL", "OPENAI_API_KEY");
    const KEY_HEADER: &'static str = "authorization";
    const REQUEST_ID: &'static str = "x-request-id";
    const NO_KEY: &'static str =
        "No API key was given in an Authorization header (Authorization: Bearer KEY)";

    fn is_chat(path: &str) -> bool {
        matches!(path, "/v1/chat/completions" | "/chat/completions") || is_responses(path)
    }

    fn key(received: &Received) -> Option<String> {
        let value = received.header(Self::KEY_HEADER)?;
        value.strip_prefix("Bearer ").map(str::to_owned)
    }

    fn wrong_key(given: &str) -> String {
        format!("Incorrect API key provided: {given}")
    }

    fn models() -> Value {
        json!({"object": "list", "data": [{"id": "stub", "object": "model"}]})
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        let body = &received.body;
        // Ours first: they say it as OpenAI does. Compatible servers take more than OpenAI publishes.
        let checked = if is_responses(&received.path) {
            responses::check(body, lenient).and_then(|()| {
                if lenient {
                    Ok(())
                } else {
                    published::check_response(body)
                }
            })
        } else {
            check::check(body, lenient).and_then(|()| {
                if lenient {
                    Ok(())
                } else {
                    published::check_chat(body)
                }
            })
        };
        checked.map_err(|refusal| {
            let Refusal {
                message,
                param,
                code,
            } = refusal;
            Rejection {
                status: 400,
                body: answer::error(
                    &message,
                    "invalid_request_error",
                    param.as_deref(),
                    code.as_deref(),
                ),
                reason: message,
            }
        })
    }

    fn turns_of_model(body: &Value) -> usize {
        if body.get("input").is_some() {
            return responses::turns_of_model(body);
        }
        stub::assistant_messages(body)
    }

    fn asked_for(body: &Value) -> Option<Value> {
        if body.get("input").is_some() {
            return responses::asked_for(body);
        }
        let format = body.get("response_format")?;
        if format.get("type")?.as_str()? != "json_schema" {
            return None;
        }
        Some(smallest(format.pointer("/json_schema/schema")?))
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        if is_responses(&received.path) {
            return responses::reply(turn, number, &received.body, received.length);
        }
        let model = received.body.get("model").and_then(Value::as_str);
        let model = model.unwrap_or_default();
        let completion = answer::completion(turn, number, model, received.length);
        if received.body.get("stream") == Some(&json!(true)) {
            Reply::Events(answer::chunks(&completion, &received.body))
        } else {
            Reply::Json(completion)
        }
    }

    fn error(status: u16, message: &str) -> Value {
        let (kind, code) = match status {
            401 if message.starts_with("Incorrect") => {
                ("invalid_request_error", Some("invalid_api_key"))
            }
            400 if message.starts_with("the stub's script") => {
                ("invalid_request_error", Some("stub_script_ended"))
            }
            429 => ("requests", None),
            500.. => ("server_error", None),
            _ => ("invalid_request_error", None),
        };
        answer::error(message, kind, None, code)
    }

    fn error_event(_: &Received, message: &str) -> String {
        // Both interfaces' words for it; each client reads its own.
        let error = Self::error(500, message)["error"].clone();
        responses::event(&json!({
            "type": "error", "code": "server_error", "message": message, "param": null, "error": error
        }))
    }
}

fn is_responses(path: &str) -> bool {
    path.ends_with("/responses")
}
