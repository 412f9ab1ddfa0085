//! OpenAI's formats at Azure's addresses, scripted and strict.
//!
//! The same scripts as for [`crate::openai`], and the same checks of bodies. Both kinds of addresses are
//! served: those with a deployment and a dated version, and those below `/openai/v1`. Answers carry the
//! accounts of Azure's content filter.

use std::io;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::openai::OpenAi;
use crate::stub::{self, Interface, Received, Rejection, Reply};

/// First version of the older interface that knows responses.
const FIRST_WITH_RESPONSES: &str = "2025-03-01-preview";

/// A running stub of Azure.
pub type AzureStub = stub::Stub<Azure>;

/// OpenAI's models at Azure.
#[derive(Debug)]
pub enum Azure {}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    stub::serve::<Azure>(listener, options, cancel).await
}

/// What an address asks for.
enum Address {
    /// Below `/openai/v1`.
    New,
    /// A deployment's chat completions.
    Deployment,
    /// Responses, with a dated version.
    Responses,
}

fn address(path: &str) -> Option<Address> {
    let rest = path.strip_prefix("/openai/")?;
    match rest {
        "v1/chat/completions" | "v1/responses" => Some(Address::New),
        "responses" => Some(Address::Responses),
        _ => {
            let name = rest
                .strip_prefix("deployments/")?
                .strip_suffix("/chat/completions")?;
            (!name.is_empty() && !name.contains('/')).then_some(Address::Deployment)
        }
    }
}

impl Interface for Azure {
    const BASE: &'static str = "";
    const VARIABLES: (&'static str, &'static str) = ("AZURE_API_BASE", "AZURE_API_KEY");
    const KEY_HEADER: &'static str = "api-key";
    const REQUEST_ID: &'static str = "apim-request-id";
    const NO_KEY: &'static str =
        "Access denied due to invalid subscription key or wrong API endpoint: there is no api-key";

    fn is_chat(path: &str) -> bool {
        address(path).is_some()
    }

    /// The key, or a token of Microsoft Entra ID.
    fn key(received: &Received) -> Option<String> {
        let token = || received.header("authorization")?.strip_prefix("Bearer ");
        received
            .header(Self::KEY_HEADER)
            .or_else(token)
            .map(str::to_owned)
    }

    fn wrong_key(given: &str) -> String {
        format!("Access denied due to invalid subscription key or wrong API endpoint: {given}")
    }

    fn models() -> Value {
        OpenAi::models()
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        let version = received
            .query
            .split('&')
            .find_map(|pair| pair.strip_prefix("api-version="))
            .unwrap_or_default();
        let dated = version.starts_with("20");
        let served = match address(&received.path) {
            Some(Address::New) => !dated,
            Some(Address::Deployment) => dated,
            Some(Address::Responses) => dated && version >= FIRST_WITH_RESPONSES,
            None => false,
        };
        if !served {
            let message = format!("Resource not found (api-version `{version}`)");
            return Err(Rejection::new::<Self>(404, &message));
        }
        OpenAi::check(received, lenient)
    }

    fn turns_of_model(body: &Value) -> usize {
        OpenAi::turns_of_model(body)
    }

    fn asked_for(body: &Value) -> Option<Value> {
        OpenAi::asked_for(body)
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        let mut reply = OpenAi::reply(turn, number, received);
        if let Reply::Json(body) = &mut reply {
            let safe = json!({
                "hate": {"filtered": false, "severity": "safe"},
                "violence": {"filtered": false, "severity": "safe"},
            });
            if let Some(choice) = body.pointer_mut("/choices/0") {
                choice["content_filter_results"] = safe.clone();
                body["prompt_filter_results"] =
                    json!([{"prompt_index": 0, "content_filter_results": safe}]);
            }
        }
        reply
    }

    fn error(status: u16, message: &str) -> Value {
        match status {
            401 | 403 | 404 | 429 | 500.. => {
                json!({"error": {"code": status.to_string(), "message": message}})
            }
            _ => OpenAi::error(status, message),
        }
    }

    fn error_event(received: &Received, message: &str) -> String {
        OpenAi::error_event(received, message)
    }
}
