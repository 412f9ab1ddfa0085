//! Anthropic's messages as Vertex AI serves them: the model in the address, the version in the body.

use serde_json::{Value, json};

use super::{Anthropic, Turn};
use crate::stub::{Interface, Received, Rejection, Reply, Stub};

/// A running stub of Claude at Vertex AI.
pub type VertexClaudeStub = Stub<VertexClaude>;

/// Claude at Vertex AI.
#[derive(Debug)]
pub enum VertexClaude {}

/// What the body must have as `anthropic_version`.
const VERSION: &str = "vertex-2023-10-16";

impl Interface for VertexClaude {
    const BASE: &'static str = "/v1";
    const VARIABLES: (&'static str, &'static str) = ("VERTEXAI_API_BASE", "VERTEXAI_CREDENTIALS");
    const KEY_HEADER: &'static str = "authorization";
    const REQUEST_ID: &'static str = "request-id";
    const NO_KEY: &'static str =
        "Request is missing required authentication credential. Expected OAuth 2 access token.";

    fn is_chat(path: &str) -> bool {
        path.contains("/publishers/anthropic/models/")
            && (path.ends_with(":rawPredict") || path.ends_with(":streamRawPredict"))
    }

    fn key(received: &Received) -> Option<String> {
        let token = received.header(Self::KEY_HEADER)?.strip_prefix("Bearer ");
        token.map(str::to_owned)
    }

    fn wrong_key(_: &str) -> String {
        "Request had invalid authentication credentials.".to_owned()
    }

    fn models() -> Value {
        Anthropic::models()
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        let refuse = |message: &str| Err(Rejection::new::<Self>(400, message));
        if received.body.get("anthropic_version") != Some(&json!(VERSION)) {
            return refuse("anthropic_version: must be vertex-2023-10-16");
        }
        if received.body.get("model").is_some() {
            return refuse("model: Extra inputs are not permitted");
        }
        let streams = received.body.get("stream") == Some(&json!(true));
        if streams != received.path.ends_with(":streamRawPredict") {
            return refuse("stream: does not fit the method of the address");
        }
        super::check::check(&direct(received).body, lenient)
            .map_err(|message| Rejection::new::<Self>(400, &message))
    }

    fn turns_of_model(body: &Value) -> usize {
        Anthropic::turns_of_model(body)
    }

    fn asked_for(body: &Value) -> Option<Value> {
        Anthropic::asked_for(body)
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        Anthropic::reply(turn, number, &direct(received))
    }

    fn error(status: u16, message: &str) -> Value {
        Anthropic::error(status, message)
    }

    fn error_event(message: &str) -> String {
        Anthropic::error_event(message)
    }
}

/// The request as Anthropic itself would get it.
fn direct(received: &Received) -> Received {
    let mut direct = received.clone();
    let name = received.path.rsplit('/').next().unwrap_or_default();
    let model = name.split([':', '@']).next().unwrap_or_default();
    if let Some(body) = direct.body.as_object_mut() {
        body.remove("anthropic_version");
        body.insert("model".to_owned(), model.into());
    }
    direct
}
