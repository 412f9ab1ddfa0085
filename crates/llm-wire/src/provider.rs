//! What a provider has to do.

use formats::chat::{Message, Usage};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::call::{ChatRequest, FinishReason};
use crate::error::ChatError;

/// A service that answers chat calls, bound to one model.
///
/// One call is one attempt: no retries inside, dropping the future cancels it.
pub trait Provider: Send + Sync {
    /// The provider's name, as in model names.
    fn name(&self) -> &str;

    /// Where requests go, such as a base URL, without credentials. Providers at different places do
    /// not share rate limits and kept answers; answers of a provider that is nowhere are not kept.
    fn place(&self) -> Option<&str> {
        None
    }

    /// Sends `request` once.
    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>>;

    /// Sends `request` once, and tells `sink` of the pieces of the reply while they come.
    ///
    /// A provider that does not stream tells nothing and gives the reply at once.
    fn send_streaming<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<Reply, ChatError>> {
        let _ = sink;
        self.send(request)
    }
}

/// Hears of the pieces of a reply. It is called between two reads of the network and must be quick.
pub type DeltaSink<'a> = &'a (dyn Fn(Delta<'_>) + Send + Sync);

/// A piece of a reply that is still coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta<'a> {
    /// More of what is said.
    Text(&'a str),
    /// More of what is thought.
    Reasoning(&'a str),
    /// A call begins.
    Call {
        /// Which one, counted from 0 in the reply.
        index: usize,
        /// The tool, by its name on the wire.
        name: &'a str,
    },
    /// More of the arguments of a call, as raw text.
    Arguments {
        /// Which call.
        index: usize,
        /// The text.
        text: &'a str,
    },
}

/// What a provider answered, translated.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The assistant's message.
    pub message: Message,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What the call used, if the provider says.
    pub usage: Option<Usage>,
    /// The model as the provider names it.
    pub model: String,
    /// The answer as it came.
    pub raw: Value,
    /// Cost in US dollars, where the provider says it; otherwise it is reckoned from the price table.
    pub cost_usd: Option<f64>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}

impl Reply {
    /// A reply of `model` with nothing but a message; `finish_reason` follows from whether it calls
    /// tools.
    pub fn new(model: impl Into<String>, message: Message) -> Self {
        Self {
            finish_reason: if message.tool_calls.is_empty() {
                FinishReason::Stop
            } else {
                FinishReason::ToolCalls
            },
            message,
            usage: None,
            model: model.into(),
            raw: Value::Null,
            cost_usd: None,
            request_id: None,
        }
    }
}
