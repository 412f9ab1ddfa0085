//! What all stubs of model providers share: the script, the server, the faults.
//!
//! A provider is an [`Interface`]: what it refuses, how it answers, how it writes errors.

mod connection;
mod script;
mod server;
mod smallest;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

pub use script::{Call, Fault, Script, ScriptError, Turn};
pub use server::{Options, Recorded, Stub, serve};
pub(crate) use smallest::smallest;

/// The interface of a provider, as a stub serves it.
pub trait Interface: Send + Sync + 'static {
    /// What follows the address in base URLs.
    const BASE: &'static str;
    /// The variables that lead clients to a base URL, and that hold their key.
    const VARIABLES: (&'static str, &'static str);
    /// The header with the key, in lower case.
    const KEY_HEADER: &'static str;
    /// The header with the id of the request, in lower case.
    const REQUEST_ID: &'static str;
    /// What is said where a key is missing.
    const NO_KEY: &'static str;

    /// Whether requests for chats go to `path`.
    fn is_chat(path: &str) -> bool;

    /// The key of a request.
    fn key(received: &Received) -> Option<String>;

    /// What is said of the wrong key `given`.
    fn wrong_key(given: &str) -> String;

    /// Whether the request is authorised by `key`.
    ///
    /// # Errors
    /// The refusal.
    fn authorise(received: &Received, key: &str) -> Result<(), Rejection>
    where
        Self: Sized,
    {
        match Self::key(received) {
            None => Err(Rejection::new::<Self>(401, Self::NO_KEY)),
            Some(given) if given != key => {
                Err(Rejection::new::<Self>(401, &Self::wrong_key(&given)))
            }
            Some(_) => Ok(()),
        }
    }

    /// The list of models.
    fn models() -> Value;

    /// Refuses what the real interface refuses; `lenient` lets pass what only the provider itself
    /// refuses.
    ///
    /// # Errors
    /// The refusal.
    fn check(received: &Received, lenient: bool) -> Result<(), Rejection>;

    /// How often the model has spoken in the conversation of `body`.
    fn turns_of_model(body: &Value) -> usize;

    /// The smallest answer to a request for a JSON schema, if this is one.
    fn asked_for(body: &Value) -> Option<Value>;

    /// The answer that says `turn`, the one with `number`.
    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply;

    /// An error in the provider's form, for an answer with `status`.
    fn error(status: u16, message: &str) -> Value;

    /// A header of answers with the error status `status`, where the interface has one.
    fn error_header(status: u16) -> Option<(&'static str, &'static str)> {
        let _ = status;
        None
    }

    /// An error within the stream that answers `received`.
    fn error_event(received: &Received, message: &str) -> String;

    /// An error within a stream of frames, where the interface has such streams.
    fn error_frame(received: &Received, message: &str) -> Bytes {
        Self::error_event(received, message).into()
    }
}

/// A request that came in.
#[derive(Debug, Clone)]
pub struct Received {
    /// The path, as it was sent.
    pub path: String,
    /// What follows the question mark of the address; empty if nothing does.
    pub query: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; null if it is no JSON.
    pub body: Value,
    /// The body as it came.
    pub bytes: Bytes,
    /// How many bytes the body has.
    pub length: usize,
}

impl Received {
    /// The text of the header `name`.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A request that is turned away.
#[derive(Debug, Clone)]
pub struct Rejection {
    /// The status of the answer.
    pub status: u16,
    /// Its body.
    pub body: Value,
    /// Why.
    pub reason: String,
}

impl Rejection {
    /// A refusal in the form of the interface `I`.
    #[must_use]
    pub fn new<I: Interface>(status: u16, message: &str) -> Self {
        Self {
            status,
            body: I::error(status, message),
            reason: message.to_owned(),
        }
    }
}

/// A good answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// JSON.
    Json(Value),
    /// The events of a stream, each as it is written.
    Events(Vec<String>),
    /// The frames of a stream in AWS's binary form.
    Frames(Vec<Bytes>),
}

/// How many of the `messages` of `body` are the assistant's.
pub(crate) fn assistant_messages(body: &Value) -> usize {
    let messages = body.get("messages").and_then(Value::as_array);
    let role = |message: &Value| message.get("role").and_then(Value::as_str) == Some("assistant");
    messages
        .into_iter()
        .flatten()
        .filter(|message| role(message))
        .count()
}

/// A sum that stands for `text`: FNV-1a with 64 bits.
pub(crate) fn check_sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// `text` in two pieces.
pub(crate) fn halves(text: &str) -> [&str; 2] {
    let middle = text.char_indices().nth(text.chars().count() / 2);
    let (first, second) = text.split_at(middle.map_or(0, |(at, _)| at));
    [first, second]
}
