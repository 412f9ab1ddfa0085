//! `events.jsonl`: what an agent run does, one JSON object per line, written while it happens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Object;
use crate::chat::{Content, Message, ToolCall, Usage};
use crate::owner::Failure;
use crate::trajectory::AgentStatus;

/// The version of this document that we write.
pub const FORMAT_VERSION: u32 = 1;

/// One event with its place and time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// [`FORMAT_VERSION`] of the writer.
    pub v: u32,
    /// Position in the stream, counted from 0 without gaps.
    pub seq: u64,
    /// RFC 3339 time in UTC.
    pub time: String,
    /// Seconds since the run began.
    pub elapsed: f64,
    /// The step that it belongs to, counted from 1; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
///
/// The messages in `run_started`, `message`, `response` and `tool_result` are, in order, the
/// conversation; a trajectory can be rebuilt from them. Calls that run side by side have their
/// `tool_result` when they end; in the conversation the results of a turn are in the order of its
/// calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The run begins.
    RunStarted {
        /// The id that the caller gave.
        trajectory_id: String,
        /// The agent.
        agent_config_id: String,
        /// `provider/model`.
        model: String,
        /// The conversation that it starts from.
        messages: Vec<Message>,
    },
    /// The run goes on after its process ended; what follows belongs to the same conversation.
    RunContinued {
        /// `provider/model`, which may be another one than before.
        model: String,
    },
    /// The tools are known.
    Configured {
        /// Their names, in the order in which the gateway lists them.
        tools: Vec<String>,
    },
    /// A step begins.
    StepStarted,
    /// A model call goes out.
    Request {
        /// Messages in the request.
        messages: usize,
        /// Tools in the request.
        tools: usize,
    },
    /// A model call failed and will be repeated.
    Retry {
        /// Which attempt failed, counted from 1.
        attempt: u32,
        /// Seconds until the next one.
        wait_seconds: f64,
        /// Why.
        failure: Failure,
    },
    /// A model call waited for its turn, since limits allow only so many.
    Waited {
        /// Seconds; they count for no time limit of the call.
        seconds: f64,
        /// What stood in the way: `requests_per_minute`, `tokens_per_minute`, `concurrency`, `provider`
        /// (it asked for a wait) or `budget` (calls in flight hold the rest of it).
        reason: String,
    },
    /// What the model says it thought before the reply that follows, where the provider tells it.
    Reasoning {
        /// The text.
        text: String,
    },
    /// The model replied; the message joins the conversation.
    Response {
        /// The reply as it joins the conversation.
        message: Message,
        /// `stop`, `length`, `tool_calls`, `content_filter`, or another word of the provider.
        finish_reason: String,
        /// What the call used, if the provider says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Its cost in US dollars, if the price is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Seconds from sending to the whole reply, retries included.
        duration: f64,
    },
    /// A message by the agent itself joins the conversation: a warning, a nudge, pictures of
    /// tool results.
    Message {
        /// The message.
        message: Message,
    },
    /// A tool call begins.
    ToolCall {
        /// The call.
        call: ToolCall,
    },
    /// A tool call ended; the message joins the conversation.
    ToolResult {
        /// The message that answers the call.
        message: Message,
        /// How it ended.
        outcome: ToolOutcome,
        /// Seconds.
        duration: f64,
        /// Pictures of the result that the provider takes only from the user. They join the
        /// conversation by `message` events of their own, when all calls of the turn are answered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<Message>,
    },
    /// The conversation was shortened; from here on `messages` is what the model sees.
    Compacted {
        /// Messages before.
        before: usize,
        /// The conversation that takes their place.
        messages: Vec<Message>,
        /// What the summary call used, if the provider says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A budget is running out or is exhausted.
    Budget {
        /// Which one, and what is left.
        details: Object,
    },
    /// Something that deserves attention and does not end the run.
    Warning {
        /// A sentence for people.
        message: String,
    },
    /// The agent gave its answer.
    FinalAnswer {
        /// The answer.
        answer: String,
        /// `completed`, `blocked` or `failed`, where the agent says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer_status: Option<String>,
    },
    /// A subagent of this run did something; its messages are not part of this conversation.
    Subagent {
        /// The name under which the run began it.
        name: String,
        /// What it did, numbered by itself.
        event: Box<Event>,
    },
    /// The run ended.
    RunEnded {
        /// How.
        status: AgentStatus,
        /// Why it did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutcome {
    /// With a result.
    Ok,
    /// With a result that says the tool failed.
    ToolError,
    /// The arguments were no JSON object, the tool is unknown or not in the toolbelt: never sent.
    Refused,
    /// It ran out of time.
    TimedOut,
    /// The connection or the server failed.
    Failed,
    /// The step ended before its turn came.
    Skipped,
}

impl Event {
    /// The content of the message that this event adds to the conversation, if any.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        match &self.kind {
            EventKind::Response { message, .. }
            | EventKind::Message { message }
            | EventKind::ToolResult { message, .. } => message.content.as_ref(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let event = Event {
            v: FORMAT_VERSION,
            seq: 3,
            time: "2026-01-01T00:00:00Z".into(),
            elapsed: 0.25,
            step: Some(1),
            kind: EventKind::Warning {
                message: "careful".into(),
            },
        };
        let written = serde_json::to_string(&event).unwrap();
        assert_eq!(
            written,
            r#"{"v":1,"seq":3,"time":"2026-01-01T00:00:00Z","elapsed":0.25,"step":1,"type":"warning","message":"careful"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&written).unwrap(), event);
    }
}
