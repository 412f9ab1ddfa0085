//! Replies, errors and pieces of replies in the form in which they are kept.

use formats::chat::{Message, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

use llm_wire::{ChatError, ChatErrorKind, ChatResponse, Delta, FinishReason, Reply};

/// A reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredReply {
    message: Message,
    finish_reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default)]
    raw: Value,
}

impl StoredReply {
    /// The reply of `response`.
    pub(crate) fn new(response: &ChatResponse) -> Self {
        Self {
            message: response.message.clone(),
            finish_reason: response.finish_reason.as_str().to_owned(),
            usage: response.usage.clone(),
            cost_usd: response.cost_usd,
            model: response.model.clone(),
            request_id: response.request_id.clone(),
            raw: response.raw.clone(),
        }
    }
}

impl From<StoredReply> for Reply {
    fn from(stored: StoredReply) -> Self {
        Self {
            message: stored.message,
            finish_reason: FinishReason::from_word(&stored.finish_reason),
            usage: stored.usage,
            model: stored.model,
            raw: stored.raw,
            cost_usd: stored.cost_usd,
            request_id: stored.request_id,
        }
    }
}

/// An error.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredError {
    kind: String,
    provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    message: String,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default)]
    final_word: bool,
}

impl From<&ChatError> for StoredError {
    fn from(error: &ChatError) -> Self {
        Self {
            kind: error.kind.as_str().to_owned(),
            provider: error.provider.clone(),
            status: error.status,
            message: error.message.clone(),
            retry_after: error.retry_after.map(|wait| wait.as_secs_f64()),
            request_id: error.request_id.clone(),
            final_word: error.final_word,
        }
    }
}

impl StoredError {
    /// The error; `None` where its kind is not known.
    pub(super) fn error(&self) -> Option<ChatError> {
        Some(ChatError {
            kind: ChatErrorKind::from_word(&self.kind)?,
            provider: self.provider.clone(),
            status: self.status,
            message: self.message.clone(),
            retry_after: self
                .retry_after
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            request_id: self.request_id.clone(),
            final_word: self.final_word,
        })
    }
}

/// A piece of a reply that came as a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredDelta {
    Text(String),
    Reasoning(String),
    Call { index: usize, name: String },
    Arguments { index: usize, text: String },
}

impl StoredDelta {
    /// `delta` as it is stored; `None` for a kind of piece for which recordings have no word.
    pub(crate) fn of(delta: Delta<'_>) -> Option<Self> {
        Some(match delta {
            Delta::Text(text) => Self::Text(text.to_owned()),
            Delta::Reasoning(text) => Self::Reasoning(text.to_owned()),
            Delta::Call { index, name } => Self::Call {
                index,
                name: name.to_owned(),
            },
            Delta::Arguments { index, text } => Self::Arguments {
                index,
                text: text.to_owned(),
            },
            _ => return None,
        })
    }

    /// The piece as it is told.
    pub(crate) fn delta(&self) -> Delta<'_> {
        match self {
            Self::Text(text) => Delta::Text(text),
            Self::Reasoning(text) => Delta::Reasoning(text),
            Self::Call { index, name } => Delta::Call {
                index: *index,
                name,
            },
            Self::Arguments { index, text } => Delta::Arguments {
                index: *index,
                text,
            },
        }
    }
}
