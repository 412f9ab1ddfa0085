//! Google's `generateContent`, scripted and strict, at the paths of the Gemini API and of Vertex AI.
//!
//! The same scripts as for [`crate::openai`]: requests that the real interface refuses get its kind of
//! error, all others the next turn, at once or as a stream, as the path asks. The model's generation
//! decides over thought signatures, ids, thinking and media in results. Signatures are the stub's own,
//! and only those are taken back, each on the part that it came with.
//!
//! Among a turn's `message` fields, `reasoning_content` is told as a thought, `parts` stands for the whole
//! list of parts (`"thoughtSignature": true` gets a signature), and `block_reason` refuses the prompt.
//! Arguments that are no JSON object are what Gemini calls a malformed function call.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use testkit::gemini::{GeminiStub, Script, Turn};
//!
//! let stub = GeminiStub::start(Script::new([
//!     Turn::fails(503),
//!     Turn::calls("list", serde_json::json!({"path": "/"})),
//!     Turn::says("Done."),
//! ]))
//! .await?;
//! // GEMINI_API_BASE and GEMINI_API_KEY of the client under test:
//! let settings = (stub.base_url(), stub.key());
//! # let _ = settings;
//! # Ok(()) }
//! ```

mod check;
mod reply;

use std::io;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::stub::{self, Interface, Received, Rejection, Reply, smallest};

/// Largest body that the interface takes.
const LARGEST_REQUEST: usize = 20 * 1024 * 1024;

/// A running stub of Gemini.
pub type GeminiStub = stub::Stub<Gemini>;

/// Google's `generateContent`.
#[derive(Debug)]
pub enum Gemini {}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    stub::serve::<Gemini>(listener, options, cancel).await
}

impl Interface for Gemini {
    const BASE: &'static str = "/v1beta";
    const VARIABLES: (&'static str, &'static str) = ("GEMINI_API_BASE", "GEMINI_API_KEY");
    const KEY_HEADER: &'static str = "x-goog-api-key";
    const REQUEST_ID: &'static str = "x-stub-request-id";
    const NO_KEY: &'static str = "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.";

    fn is_chat(path: &str) -> bool {
        path.contains("/models/")
            && (path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent"))
    }

    fn key(received: &Received) -> Option<String> {
        let in_query = || {
            let mut pairs = received.query.split('&');
            pairs.find_map(|pair| pair.strip_prefix("key="))
        };
        let token = || received.header("authorization")?.strip_prefix("Bearer ");
        let key = received.header(Self::KEY_HEADER).or_else(in_query);
        key.or_else(token).map(str::to_owned)
    }

    fn wrong_key(_: &str) -> String {
        "API key not valid. Please pass a valid API key.".to_owned()
    }

    fn authorise(received: &Received, key: &str) -> Result<(), Rejection> {
        match Self::key(received) {
            None => Err(Rejection::new::<Self>(403, Self::NO_KEY)),
            Some(given) if given == key => Ok(()),
            Some(_) if received.header("authorization").is_some() => {
                let message = "Request had invalid authentication credentials. Expected OAuth 2 access token.";
                Err(Rejection::new::<Self>(401, message))
            }
            Some(given) => {
                let mut rejection = Rejection::new::<Self>(400, &Self::wrong_key(&given));
                rejection.body["error"]["details"] = json!([{
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID", "domain": "googleapis.com"
                }]);
                Err(rejection)
            }
        }
    }

    fn models() -> Value {
        json!({"models": [{"name": "models/stub", "supportedGenerationMethods": ["generateContent"]}]})
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        if received.length > LARGEST_REQUEST {
            let message =
                format!("Request payload size exceeds the limit: {LARGEST_REQUEST} bytes.");
            return Err(Rejection::new::<Self>(400, &message));
        }
        check::check(&received.body, model(&received.path), lenient)
            .map_err(|message| Rejection::new::<Self>(400, &message))
    }

    fn turns_of_model(body: &Value) -> usize {
        let contents = body.get("contents").and_then(Value::as_array);
        contents
            .into_iter()
            .flatten()
            .filter(|content| content.get("role") == Some(&json!("model")))
            .count()
    }

    fn asked_for(body: &Value) -> Option<Value> {
        let config = body
            .get("generationConfig")
            .or_else(|| body.get("generation_config"))?;
        let keys = [
            "responseJsonSchema",
            "responseSchema",
            "response_json_schema",
            "response_schema",
        ];
        let schema = keys.iter().find_map(|key| config.get(*key))?;
        Some(smallest(schema))
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        let model = model(&received.path);
        let answer = reply::answer(turn, number, model, received.length);
        if !received.path.ends_with(":streamGenerateContent") {
            return Reply::Json(answer);
        }
        let chunks = reply::chunks(&answer);
        if received.query.split('&').any(|pair| pair == "alt=sse") {
            Reply::Events(chunks.iter().map(reply::event).collect())
        } else {
            // Without that a stream is one array.
            Reply::Json(chunks.into())
        }
    }

    fn error(status: u16, message: &str) -> Value {
        let word = match status {
            400 | 413 | 422 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            409 => "ABORTED",
            429 => "RESOURCE_EXHAUSTED",
            499 => "CANCELLED",
            503 | 529 => "UNAVAILABLE",
            408 | 504 => "DEADLINE_EXCEEDED",
            _ => "INTERNAL",
        };
        json!({"error": {"code": status, "message": message, "status": word}})
    }

    fn error_event(_: &Received, message: &str) -> String {
        reply::event(&Self::error(503, message))
    }
}

/// The model in a path, such as `gemini-3.5-flash` in `/v1beta/models/gemini-3.5-flash:generateContent`.
fn model(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split(':').next().unwrap_or_default()
}
