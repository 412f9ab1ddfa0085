//! What an earlier process did of a run that goes on.

use std::time::Duration;

use formats::chat::{Message, Usage};
use formats::event::ToolOutcome;

use super::{Run, Turn};

/// Where an earlier process left a run.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// Steps that have a reply.
    pub(crate) steps: u64,
    /// Whether the next step was begun.
    pub(crate) step_begun: bool,
    /// Time that the agent worked.
    pub(crate) worked: Duration,
    /// Model calls, for agents that count dollars.
    pub(crate) calls: Vec<PastCall>,
    /// The turn that was not finished.
    pub(crate) open_turn: Option<Turn>,
    /// Pictures of results that are not in the conversation yet.
    pub(crate) deferred: Vec<Message>,
}

/// What a model call used.
#[derive(Debug, Clone)]
pub(crate) struct PastCall {
    pub(crate) usage: Option<Usage>,
    pub(crate) cost_usd: Option<f64>,
}

impl Run {
    /// Answers calls that were on their way when the process ended: they may have taken effect, so
    /// they are not repeated, but for those of tools that only read.
    pub(crate) fn settle_lost_calls(&mut self) {
        self.deferred = std::mem::take(&mut self.earlier.deferred);
        for call in self.conversation.open_calls().to_vec() {
            if !self.conversation.has_begun(&call.id)
                || self.toolbox.can_repeat(&call.function.name)
            {
                continue;
            }
            let mut message = Message::tool(
                &call.id,
                &call.function.name,
                "No result: the process ended during the call; it may or may not have taken effect.",
            );
            message.extra.insert("is_error".to_owned(), true.into());
            self.usage.add_tool_text(&message);
            self.answer(message, ToolOutcome::Failed, Duration::ZERO);
        }
        if self.conversation.open_calls().is_empty() {
            self.flush_deferred();
        }
        let open = self.conversation.open_calls();
        if let Some(turn) = &mut self.earlier.open_turn
            && !turn.calls.is_empty()
        {
            turn.calls = open.to_vec();
            if open.is_empty() {
                self.earlier.open_turn = None;
            }
        }
    }
}
