//! AWS Bedrock's Converse, scripted and strict.
//!
//! The same scripts as for [`crate::anthropic`]. Requests carry the stub's key as an API key for Bedrock
//! (`Authorization: Bearer`), or are signed with [`ACCESS_KEY_ID`] and [`SECRET_ACCESS_KEY`]: signatures
//! are worked out here once more and compared. `converse-stream` answers in AWS's binary frames.
//! Reasoning is signed by the stub, and only its own signatures are taken back.

mod check;
mod frames;
mod reply;
mod signature;

use std::io;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::stub::{Call, Fault, Options, Recorded, Script, ScriptError, Turn};

use crate::stub::{self, Interface, Received, Rejection, Reply, smallest};

/// The id of the key that signs requests to the stub.
pub const ACCESS_KEY_ID: &str = "AKIASTUBSTUBSTUBSTUB";
/// The secret of that key.
pub const SECRET_ACCESS_KEY: &str = "stub/secret+access/key/0123456789abcdefgh";

/// A running stub of Bedrock.
pub type BedrockStub = stub::Stub<Bedrock>;

/// Bedrock's Converse.
#[derive(Debug)]
pub enum Bedrock {}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    stub::serve::<Bedrock>(listener, options, cancel).await
}

/// Whether a path asks for a stream; `None` if it is none of the interface.
fn is_stream(path: &str) -> Option<bool> {
    let (model, operation) = path.strip_prefix("/model/")?.split_once('/')?;
    let is_encoded = !model.is_empty() && !model.contains(':');
    match operation {
        "converse" if is_encoded => Some(false),
        "converse-stream" if is_encoded => Some(true),
        _ => None,
    }
}

impl Interface for Bedrock {
    const BASE: &'static str = "";
    const VARIABLES: (&'static str, &'static str) = (
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "AWS_BEARER_TOKEN_BEDROCK",
    );
    const KEY_HEADER: &'static str = "authorization";
    const REQUEST_ID: &'static str = "x-amzn-requestid";
    const NO_KEY: &'static str = "Missing Authentication Token";

    fn is_chat(path: &str) -> bool {
        is_stream(path).is_some()
    }

    fn key(received: &Received) -> Option<String> {
        let value = received.header(Self::KEY_HEADER)?;
        value.strip_prefix("Bearer ").map(str::to_owned)
    }

    fn wrong_key(_given: &str) -> String {
        "The bearer token included in the request is invalid.".to_owned()
    }

    fn authorise(received: &Received, key: &str) -> Result<(), Rejection> {
        if let Some(given) = Self::key(received) {
            return if given == key {
                Ok(())
            } else {
                Err(Rejection::new::<Self>(403, &Self::wrong_key(&given)))
            };
        }
        let request = signature::Request {
            method: "POST",
            path: &received.path,
            query: &received.query,
            headers: &received.headers,
            body: &received.bytes,
        };
        let keys = signature::Keys {
            id: ACCESS_KEY_ID,
            secret: SECRET_ACCESS_KEY,
            service: "bedrock",
        };
        signature::check(&request, keys).map_err(|reason| Rejection::new::<Self>(403, &reason))
    }

    fn models() -> Value {
        json!({"modelSummaries": []})
    }

    fn check(received: &Received, lenient: bool) -> Result<(), Rejection> {
        check::check(&received.body, lenient)
            .map_err(|message| Rejection::new::<Self>(400, &message))
    }

    fn turns_of_model(body: &Value) -> usize {
        stub::assistant_messages(body)
    }

    fn asked_for(body: &Value) -> Option<Value> {
        let schema = body.pointer("/outputConfig/textFormat/structure/jsonSchema/schema")?;
        Some(smallest(&serde_json::from_str(schema.as_str()?).ok()?))
    }

    fn reply(turn: &Turn, number: usize, received: &Received) -> Reply {
        let answer = reply::answer(turn, number, received.length);
        if is_stream(&received.path) == Some(true) {
            Reply::Frames(reply::frames(&answer, turn))
        } else {
            Reply::Json(answer)
        }
    }

    fn error(_status: u16, message: &str) -> Value {
        json!({ "message": message })
    }

    fn error_header(status: u16) -> Option<(&'static str, &'static str)> {
        let kind = match status {
            403 => "AccessDeniedException",
            404 => "ResourceNotFoundException",
            408 => "ModelTimeoutException",
            424 => "ModelErrorException",
            429 => "ThrottlingException",
            503 => "ServiceUnavailableException",
            500.. => "InternalServerException",
            _ => "ValidationException",
        };
        Some(("x-amzn-errortype", kind))
    }

    fn error_event(_: &Received, message: &str) -> String {
        Self::error(503, message).to_string()
    }

    fn error_frame(_: &Received, message: &str) -> Bytes {
        frames::exception("serviceUnavailableException", &Self::error(503, message))
    }
}
