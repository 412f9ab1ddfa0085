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
}
