//! The calls of a turn: each gets exactly one answer, in order (`spec/agents.md` §10, pitfall A6).

use std::sync::PoisonError;
use std::time::Duration;

use formats::chat::{Block, Content, KnownBlock, Message, ToolCall};
use formats::event::{EventKind, ToolOutcome};
use formats::owner::Failure;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

use super::tool_call::{Answered, Ended, Tried};
use super::{Answer, Run};
use crate::tools::CallError;

/// Limits of the calls of a turn.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// How long one call may take.
    pub time: Duration,
    /// What is done to each text of a result before it joins the conversation: gives the text that
    /// stands for it, or nothing where it can stay.
    pub shorten: Option<Shorten>,
}

/// Gives the text that stands for a long one, or nothing where it can stay.
pub type Shorten = fn(&str) -> Option<String>;

/// Most calls on the way at the same time.
const SIDE_BY_SIDE: usize = 8;

/// Calls that ended and are not in the conversation yet, each with its place in its group.
pub(crate) type Finished = Vec<(usize, Ended)>;

/// Which calls of one turn are made side by side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Concurrency {
    /// None: one after the other.
    None,
    /// Those of tools that say of themselves that they only read.
    #[default]
    ReadOnly,
    /// All.
    All,
}

impl Run {
    /// Says which calls of a turn are made side by side from now on, and of which `tools` they are
    /// in any case. By default it is [`Concurrency::ReadOnly`] and no tool.
    pub fn set_concurrency(&mut self, which: Concurrency, tools: &[String]) {
        for name in tools {
            if !self.toolbox.knows(name) {
                self.warn(format!(
                    "`concurrent_tools` names `{name}`, which is no tool here"
                ));
            }
        }
        self.toolbox.set_concurrency(which, tools);
    }

    /// Calls the tools and answers every call in order; pictures follow after the last answer.
    ///
    /// Calls are made one after the other, but for neighbours that may run side by side
    /// ([`Run::set_concurrency`]).
    ///
    /// # Errors
    /// When a tool server is lost for good. The remaining calls are answered as skipped.
    pub async fn call_tools(
        &mut self,
        calls: &[ToolCall],
        limits: CallLimits,
    ) -> Result<(), Failure> {
        let ended = self.call_in_order(calls, limits).await;
        self.flush_deferred();
        ended
    }

    /// Like [`Run::call_tools`], leaving the pictures for [`Run::flush_deferred`].
    pub(crate) async fn call_in_order(
        &mut self,
        calls: &[ToolCall],
        limits: CallLimits,
    ) -> Result<(), Failure> {
        let mut ended = Ok(());
        let mut open = calls;
        while !open.is_empty() {
            let (group, behind) = open.split_at(self.side_by_side(open));
            open = behind;
            if ended.is_err() {
                for call in group {
                    self.skip_call(call, "Not called: the connection to the tools is lost.");
                }
                continue;
            }
            for call in group {
                self.begin_call(call);
            }
            self.try_group(group, limits).await;
            for (_, finished) in self.take_finished() {
                let answered = match finished {
                    Ended::Answered(answered) => answered,
                    Ended::NotSent(tried) => {
                        let tried = Box::pin(self.try_again(tried, limits.time)).await;
                        self.answer_and_tell(tried, limits.shorten)
                    }
                };
                if let Some(failure) = self.take_in_result(answered) {
                    ended = Err(failure);
                }
            }
        }
        ended
    }

    /// How many calls at the head of `calls` run together: at least one.
    fn side_by_side(&self, calls: &[ToolCall]) -> usize {
        calls
            .iter()
            .take_while(|call| self.toolbox.is_concurrent(&call.function.name))
            .count()
            .max(1)
    }

    /// Makes the calls of a group. Observers are told of each as it ends, and it is kept at once, so
    /// that it is not lost when the run is cut off, or the process killed, while others still run.
    async fn try_group(&self, group: &[ToolCall], limits: CallLimits) {
        futures::stream::iter(group.iter().enumerate())
            .for_each_concurrent(SIDE_BY_SIDE, |(place, call)| async move {
                let tried = Box::pin(self.try_call(call, limits.time)).await;
                let ended = match tried.result {
                    Err(CallError::NotSent(_)) => Ended::NotSent(tried),
                    _ => Ended::Answered(self.answer_and_tell(tried, limits.shorten)),
                };
                self.finished
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((place, ended));
            })
            .await;
    }

    fn take_finished(&mut self) -> Finished {
        let finished = self
            .finished
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let mut finished = std::mem::take(finished);
        finished.sort_by_key(|(place, _)| *place);
        finished
    }

    /// Answers what a cut-off run left open: calls that had finished with their results, the others
    /// as skipped.
    pub(crate) fn close_calls(&mut self, why: &str) {
        for (_, finished) in self.take_finished() {
            let answered = match finished {
                Ended::Answered(answered) => answered,
                Ended::NotSent(tried) => self.answer_and_tell(tried, None),
            };
            self.take_in_result(answered);
        }
        for call in self.conversation.open_calls().to_vec() {
            self.skip_call(&call, why);
        }
        self.flush_deferred();
    }

    fn begin_call(&mut self, call: &ToolCall) {
        self.recorder
            .emit(EventKind::ToolCall { call: call.clone() });
        self.conversation.begin(&call.id);
    }

    /// Answers a call that the agent handles itself, such as one of a tool of its own.
    pub fn answer_call(
        &mut self,
        call: &ToolCall,
        words: impl Into<Content>,
        outcome: ToolOutcome,
    ) {
        self.begin_call(call);
        self.answer_counted(call, words, outcome);
    }

    /// Answers a call that is not made.
    pub fn skip_call(&mut self, call: &ToolCall, why: &str) {
        self.answer_counted(call, why, ToolOutcome::Skipped);
    }

    /// Answers the call that handed in the final answer: with the answer itself, which is not
    /// counted as the output of a tool.
    pub(crate) fn accept_answer(&mut self, call: &ToolCall, answer: &Answer) {
        self.begin_call(call);
        let message = Message::tool(&call.id, &call.function.name, answer.text.as_str());
        self.answer(message, ToolOutcome::Ok, Duration::ZERO);
    }

    fn answer_counted(&mut self, call: &ToolCall, words: impl Into<Content>, outcome: ToolOutcome) {
        let message = Message::tool(&call.id, &call.function.name, words);
        self.usage.add_tool_text(&message);
        self.answer(message, outcome, Duration::ZERO);
    }

    pub(super) fn answer(&mut self, message: Message, outcome: ToolOutcome, duration: Duration) {
        self.tell_result(&message, outcome, duration, &[]);
        self.join(message);
    }

    fn tell_result(
        &self,
        message: &Message,
        outcome: ToolOutcome,
        duration: Duration,
        pictures: &[Message],
    ) {
        self.recorder.emit(EventKind::ToolResult {
            message: message.clone(),
            outcome,
            duration: duration.as_secs_f64(),
            pictures: pictures.to_vec(),
        });
    }

    /// The answer to a call, as it joins the conversation; observers are told.
    fn answer_and_tell(&self, tried: Tried, shorten: Option<Shorten>) -> Answered {
        let mut answered = self.answer_to(tried);
        let message = &mut answered.result.message;
        if let Some(shorten) = shorten {
            self.shorten(message, shorten);
        }
        let (outcome, duration) = (answered.outcome, answered.duration);
        self.tell_result(message, outcome, duration, &answered.result.deferred);
        answered
    }

    /// Takes an answer of which observers know into the conversation; gives what ends the run.
    fn take_in_result(&mut self, answered: Answered) -> Option<Failure> {
        let message = answered.result.message;
        self.usage.add_tool_text(&message);
        self.usage
            .add_pictures(&message, self.model.provider(), self.model.name());
        self.deferred.extend(answered.result.deferred);
        self.join(message);
        answered.fatal
    }

    fn shorten(&self, message: &mut Message, shorten: Shorten) {
        let name = message.name.clone().unwrap_or_default();
        for text in texts_of(message) {
            if let Some(shorter) = shorten(text) {
                self.warn(format!(
                    "the result of `{name}` was cut from {} to {} characters",
                    text.chars().count(),
                    shorter.chars().count()
                ));
                *text = shorter;
            }
        }
    }

    /// Adds the pictures of this turn's results.
    pub(crate) fn flush_deferred(&mut self) {
        for message in std::mem::take(&mut self.deferred) {
            self.usage
                .add_pictures(&message, self.model.provider(), self.model.name());
            self.say(message);
        }
    }

    /// Gives up the pictures of this turn's results.
    pub(crate) fn drop_deferred(&mut self) {
        if !self.deferred.is_empty() {
            self.deferred.clear();
            self.warn("pictures of the last turn are not in the record: the answer came with them");
        }
    }
}

/// The texts of a message, to be changed in place.
fn texts_of(message: &mut Message) -> Vec<&mut String> {
    match &mut message.content {
        None => Vec::new(),
        Some(Content::Text(text)) => vec![text],
        Some(Content::Blocks(blocks)) => blocks
            .iter_mut()
            .filter_map(|block| match block {
                Block::Known(KnownBlock::Text { text, .. }) => Some(text),
                _ => None,
            })
            .collect(),
    }
}
