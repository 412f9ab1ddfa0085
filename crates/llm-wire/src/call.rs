//! The question and the answer of one chat call.

use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition, Usage};
use serde_json::Value;

/// One chat call. Everything is borrowed: a long history is not copied to be sent.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The conversation.
    pub messages: &'a [Message],
    /// The tools that the model may call, in order; empty for none.
    pub tools: &'a [ToolDefinition],
    /// Further parameters by their chat-completions names (`spec/llm.md` §5).
    pub extra_args: &'a Object,
    /// Wall-clock limit of one attempt.
    pub timeout: Duration,
    /// Who asks, for servers that keep accounts.
    pub labels: CallLabels<'a>,
}

/// Ids that go along as headers where a proxy or an `api_base` is in use (`spec/llm.md` §3).
///
/// Unknown values are left out of the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallLabels<'a> {
    /// The trajectory that the call belongs to.
    pub trajectory_id: Option<&'a str>,
    /// Which part of the system asks; `trajectory` if unset.
    pub service: Option<&'a str>,
    /// What kind of work it is; `trajectory_single` if unset.
    pub workload: Option<&'a str>,
    /// The world that the agent works in.
    pub world_id: Option<&'a str>,
    /// Which piece of the work it is.
    pub work_unit: Option<&'a str>,
    /// The campaign that the work belongs to.
    pub campaign_id: Option<&'a str>,
    /// Whose account it is.
    pub account_id: Option<&'a str>,
    /// Which user of the account asks.
    pub user_id: Option<&'a str>,
    /// The batch of trajectories.
    pub batch_id: Option<&'a str>,
    /// One id for all attempts of a call. Who makes the attempts makes one up if unset.
    pub call_id: Option<&'a str>,
    /// The attempt, counted from 1. Who makes the attempts sets it.
    pub attempt: Option<u32>,
    /// A text in the messages that was drawn at random for this call. Recordings and caches take
    /// requests that differ in nothing else as the same. It is no header.
    pub nonce: Option<&'a str>,
}

/// The answer to a chat call.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatResponse {
    /// The assistant's message. Fields of the provider that have no place in the chat shape are in
    /// `extra`, so that the message can be sent back without loss.
    pub message: Message,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// What the call used, if the provider says.
    pub usage: Option<Usage>,
    /// Cost in US dollars, if the price is known.
    pub cost_usd: Option<f64>,
    /// The model as the provider names it.
    pub model: String,
    /// The answer as it came.
    pub raw: Value,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// How many attempts it took; 0 where it was kept from an earlier call, which costs nothing.
    pub attempts: u32,
    /// Wall time of all attempts and waits.
    pub duration: Duration,
}

/// Why a model stopped, in the provider's word and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants tools to be called.
    ToolCalls,
    /// It ran into the limit of the reply's length.
    Length,
    /// The reply was withheld or cut by a filter.
    ContentFilter,
    /// It tried to call a tool and failed to write the call (Gemini).
    MalformedCall,
    /// A word that has no meaning here, or none at all (empty).
    Other(String),
}

impl FinishReason {
    /// The reason that a chat-completions server names by `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Self {
        match word {
            "stop" => Self::Stop,
            "tool_calls" => Self::ToolCalls,
            "length" => Self::Length,
            "content_filter" => Self::ContentFilter,
            "malformed_call" => Self::MalformedCall,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The chat-completions word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::MalformedCall => "malformed_call",
            Self::Other(word) => word,
        }
    }
}
