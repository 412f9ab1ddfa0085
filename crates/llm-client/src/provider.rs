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

    /// Sends `request` once.
    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>>;
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
