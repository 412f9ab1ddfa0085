//! Vertex AI, scripted and strict: Gemini and Claude at Google Cloud, each in its own language.
//!
//! The address says whose model is asked. Gemini is checked as in [`crate::gemini`], Claude as in
//! [`crate::anthropic`], with what Google changes: the model stands in the address and the version in the
//! body. Whatever is asked, the key is an access token, and errors that are not the model's own have
//! Google's form.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use testkit::vertex::{Script, Turn, VertexStub};
//!
//! let stub = VertexStub::start(Script::new([Turn::fails(503), Turn::says("Done.")])).await?;
//! // VERTEXAI_API_BASE and CLOUDSDK_AUTH_ACCESS_TOKEN of the client under test:
//! let settings = (stub.base_url(), stub.key());
//! # let _ = settings;
//! # Ok(()) }
//! ```

use serde_json::{Value, json};

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::anthropic::{self, Anthropic};
use crate::gemini::Gemini;
use crate::stub::{Interface, Received, Rejection, Reply, Stub};

/// A running stub of Vertex AI.
pub type VertexStub = Stub<Vertex>;

/// Vertex AI.
#[derive(Debug)]
pub enum Vertex {}

/// What the body of a request to Claude must have as `anthropic_version`.
const VERSION: &str = "vertex-2023-10-16";

/// Whose model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Publisher {
    Google,
    Anthropic,
}

/// The publisher in `path`; `None` if it is none of the interface.
fn publisher(path: &str) -> Option<Publisher> {
    let parts: Vec<&str> = path.strip_prefix("/v1/")?.split('/').collect();
    let [
        "projects",
        project,
        "locations",
        location,
        "publishers",
        publisher,
        "models",
        model,
    ] = parts[..]
    else {
        return None;
    };
    let (name, verb) = model.rsplit_once(':')?;
    if [project, location, name].contains(&"") {
        return None;
    }
    match (publisher, verb) {
        ("google", "generateContent" | "streamGenerateContent") => Some(Publisher::Google),
        ("anthropic", "rawPredict" | "streamRawPredict") => Some(Publisher::Anthropic),
        _ => None,
    }
}

/// Whose conversation stands in `body`.
fn publisher_of(body: &Value) -> Publisher {
    if body.get("contents").is_some() {
        Publisher::Google
    } else {
        Publisher::Anthropic
    }
}

impl Interface for Vertex {
    const BASE: &'static str = "/v1";
    const VARIABLES: (&'static str, &'static str) =
        ("VERTEXAI_API_BASE", "CLOUDSDK_AUTH_ACCESS_TOKEN");
    const KEY_HEADER: &'static str = "authorization";
    const REQUEST_ID: &'static str = "request-id";
    const NO_KEY: &'static str =
        "Request is missing required authentication credential. Expected OAuth 2 access token.";

    fn is_chat(path: &str) -> bool {
        publisher(path).is_some()
    }

    fn key(received: &Received) -> Option<String> {
        let token = received.header(Self::KEY_HEADER)?.strip_prefix("Bearer ");
        token.map(str::to_owned)
    }

    fn wrong_key(_: &str) -> String {
        "Request had invalid authentication credentials. Expected OAuth 2 access token.".to_owned()
    }

    fn models() -> Value {
        json!({"publisherModels": []})
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        match publisher(&received.path) {
            Some(Publisher::Anthropic) => check_claude(received, lenient),
            _ => Gemini::check(received, lenient),
        }
    }

    fn turns_of_model(body: &Value) -> usize {
        match publisher_of(body) {
            Publisher::Google => Gemini::turns_of_model(body),
            Publisher::Anthropic => Anthropic::turns_of_model(body),
        }
    }

    fn asked_for(body: &Value) -> Option<Value> {
        match publisher_of(body) {
            Publisher::Google => Gemini::asked_for(body),
            Publisher::Anthropic => Anthropic::asked_for(body),
        }
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        match publisher(&received.path) {
            Some(Publisher::Anthropic) => Anthropic::reply(turn, number, &direct(received)),
            _ => Gemini::reply(turn, number, received),
        }
    }

    fn error(status: u16, message: &str) -> Value {
        Gemini::error(status, message)
    }

    fn error_event(received: &Received, message: &str) -> String {
        match publisher(&received.path) {
            Some(Publisher::Anthropic) => Anthropic::error_event(received, message),
            _ => Gemini::error_event(received, message),
        }
    }
}

/// Refuses what Claude refuses, and what Google refuses in its name.
fn check_claude(received: &Received, lenient: bool) -> Result<(), Rejection> {
    let refuse = |message: &str| Rejection::new::<Anthropic>(400, message);
    if received.body.get("anthropic_version") != Some(&json!(VERSION)) {
        return Err(refuse("anthropic_version: must be vertex-2023-10-16"));
    }
    if received.body.get("model").is_some() {
        return Err(refuse("model: Extra inputs are not permitted"));
    }
    let streams = received.body.get("stream") == Some(&json!(true));
    if streams != received.path.ends_with(":streamRawPredict") {
        return Err(refuse("stream: does not fit the method of the address"));
    }
    anthropic::check::check(&direct(received).body, lenient).map_err(|message| refuse(&message))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_whose_model_is_asked() {
        let at = |rest: &str| publisher(&format!("/v1/projects/p/locations/eu/publishers/{rest}"));
        assert_eq!(
            at("google/models/gemini-2.5-pro:streamGenerateContent"),
            Some(Publisher::Google)
        );
        assert_eq!(
            at("anthropic/models/claude-sonnet-4-5@20250929:rawPredict"),
            Some(Publisher::Anthropic)
        );
        for wrong in [
            "google/models/gemini-2.5-pro:rawPredict",
            "google/models/:generateContent",
            "mistral/models/m:rawPredict",
            "google/models/gemini-2.5-pro",
        ] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(
            publisher("/v1beta/models/gemini-2.5-pro:generateContent"),
            None
        );
    }
}
