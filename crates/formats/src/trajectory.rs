//! `trajectory.json`: what an agent run leaves behind (`spec/agents.md` §4.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;
use crate::chat::Message;
use crate::owner::Failure;

/// How a run ended. Only the last four appear in a file that a runner wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// Not started.
    Pending,
    /// Under way.
    Running,
    /// The agent gave its answer.
    Completed,
    /// Ended from outside.
    Cancelled,
    /// Ended without an answer by the model's own doing, or by a permanent condition.
    Failed,
    /// Ended by the machine, the network or a provider.
    Error,
}

impl AgentStatus {
    /// The word in files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Error => "error",
        }
    }
}

impl std::fmt::Display for AgentStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The record of one agent run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trajectory {
    /// The whole conversation, the initial messages included. The last message holds the answer.
    pub messages: Vec<Message>,
    /// Structured output; the toolbelt agent puts `final_answer_status` here.
    #[serde(default)]
    pub output: Option<Object>,
    /// How the run ended.
    pub status: AgentStatus,
    /// Seconds of wall time.
    pub time_elapsed: f64,
    /// Token counts (`spec/agents.md` §15), `null` where the run never began.
    #[serde(default)]
    pub usage: Option<Object>,
    /// The answer, `null` where there is none.
    #[serde(default)]
    pub final_answer: Option<String>,
    /// Why the run did not complete; `null` where it did. Not in files of the reference.
    #[serde(default)]
    pub error: Option<Failure>,
    /// Keys of other writers, such as `task_custom_fields`.
    #[serde(flatten)]
    pub extra: Object,
}

impl Trajectory {
    /// The agent's answer as grading reads it (`spec/grading.md` §2.9): the text of the last
    /// message, whatever its role; where that is empty, of the last assistant message with text.
    #[must_use]
    pub fn answer(&self) -> String {
        let from_playground = self
            .output
            .as_ref()
            .and_then(|output| output.get("source"))
            .and_then(Value::as_str)
            == Some("agent_in_playground");
        let last = self.messages.last().map(Message::text).unwrap_or_default();
        if !from_playground && !last.trim().is_empty() {
            return last.into_owned();
        }
        self.messages
            .iter()
            .rev()
            .filter(|message| message.role == crate::chat::Role::Assistant)
            .map(Message::text)
            .find(|text| !text.trim().is_empty())
            .unwrap_or_default()
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Block, Content};

    fn trajectory(messages: Vec<Message>) -> Trajectory {
        Trajectory {
            messages,
            output: None,
            status: AgentStatus::Completed,
            time_elapsed: 0.0,
            usage: None,
            final_answer: None,
            error: None,
            extra: Object::new(),
        }
    }

    #[test]
    fn the_last_message_is_the_answer_whatever_its_role() {
        let run = trajectory(vec![
            Message::assistant("thinking aloud"),
            Message::tool("c", "final_answer", "42"),
        ]);
        assert_eq!(run.answer(), "42");
    }

    #[test]
    fn blocks_are_joined_and_an_empty_last_message_falls_back() {
        let mut last = Message::assistant("");
        last.content = Some(Content::Blocks(vec![Block::text("a"), Block::text("b")]));
        assert_eq!(trajectory(vec![last]).answer(), "a\nb");
        let run = trajectory(vec![Message::assistant("kept"), Message::user(" ")]);
        assert_eq!(run.answer(), "kept");
        assert_eq!(trajectory(Vec::new()).answer(), "");
    }

    #[test]
    fn nulls_are_written() {
        let written = serde_json::to_value(trajectory(Vec::new())).unwrap();
        for key in ["output", "usage", "final_answer", "error"] {
            assert_eq!(written.get(key), Some(&Value::Null), "{key}");
        }
    }
}
