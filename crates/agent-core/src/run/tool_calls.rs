//! Calling tools and answering calls (`spec/agents.md` §10, pitfall A6).

use std::time::{Duration, Instant};

use formats::chat::{Content, Message, ToolCall};
use formats::event::{EventKind, ToolOutcome};
use formats::owner::Failure;

use super::Run;
use crate::tools::{Arguments, CallError, RenderedResult, ToolOutput, render};

/// Limits of the calls of a step.
#[derive(Debug, Clone, Copy)]
pub struct CallLimits {
    /// How long one call may take.
    pub time: Duration,
    /// What is done to each text of a result before it joins the conversation.
    pub shorten: Option<fn(&str) -> Option<String>>,
}

/// How much longer than its limit a call is waited for, in case its result is just arriving.
const GRACE: Duration = Duration::from_secs(5);

/// How a call ended, before it is written down.
struct Answered {
    result: RenderedResult,
    outcome: ToolOutcome,
    /// Ends the run.
    fatal: Option<Failure>,
}

impl Answered {
    fn in_words(call: &ToolCall, outcome: ToolOutcome, words: impl Into<String>) -> Self {
        Self {
            result: RenderedResult {
                message: Message::tool(&call.id, &call.function.name, words.into()),
                deferred: Vec::new(),
            },
            outcome,
            fatal: None,
        }
    }
}

impl Run {
    /// Calls the tools one after the other and answers every call; pictures follow after the last
    /// answer.
    ///
    /// # Errors
    /// When a tool server is lost for good. The remaining calls are answered as skipped.
    pub async fn call_tools(
        &mut self,
        calls: &[ToolCall],
        limits: CallLimits,
    ) -> Result<(), Failure> {
        let mut ended = Ok(());
        for call in calls {
            if ended.is_err() {
                self.skip_call(call, "Not called: the connection to the tools is lost.");
                continue;
            }
            self.recorder
                .emit(EventKind::ToolCall { call: call.clone() });
            let started = Instant::now();
            let answered = Box::pin(self.call_tool(call, limits.time)).await;
            if let Some(failure) = self.write_down(answered, started.elapsed(), limits.shorten) {
                ended = Err(failure);
            }
        }
        self.flush_deferred();
        ended
    }

    /// Answers a call with words of the agent's own, without calling anything.
    pub fn answer_call(
        &mut self,
        call: &ToolCall,
        words: impl Into<Content>,
        outcome: ToolOutcome,
    ) {
        let message = Message::tool(&call.id, &call.function.name, words);
        self.usage.add_tool_text(&message);
        self.answer(message, outcome, Duration::ZERO);
    }

    /// Answers a call that is not made.
    pub fn skip_call(&mut self, call: &ToolCall, why: &str) {
        self.answer_call(call, why, ToolOutcome::Skipped);
    }

    /// Adds the pictures of this step's results.
    pub(crate) fn flush_deferred(&mut self) {
        for message in std::mem::take(&mut self.deferred) {
            self.usage
                .add_pictures(&message, self.model.provider(), self.model.name());
            self.say(message);
        }
    }

    pub(crate) fn answer(&mut self, message: Message, outcome: ToolOutcome, duration: Duration) {
        self.recorder.emit(EventKind::ToolResult {
            message: message.clone(),
            outcome,
            duration: duration.as_secs_f64(),
        });
        self.join(message);
    }

    fn write_down(
        &mut self,
        answered: Answered,
        duration: Duration,
        shorten: Option<fn(&str) -> Option<String>>,
    ) -> Option<Failure> {
        let mut message = answered.result.message;
        if let Some(shorten) = shorten {
            self.shorten(&mut message, shorten);
        }
        self.usage.add_tool_text(&message);
        self.usage
            .add_pictures(&message, self.model.provider(), self.model.name());
        self.answer(message, answered.outcome, duration);
        self.deferred.extend(answered.result.deferred);
        answered.fatal
    }

    fn shorten(&self, message: &mut Message, shorten: fn(&str) -> Option<String>) {
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

    async fn call_tool(&mut self, call: &ToolCall, limit: Duration) -> Answered {
        let name = &call.function.name;
        let arguments = match Arguments::parse(&call.function.arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                return Answered::in_words(
                    call,
                    ToolOutcome::Refused,
                    format!(
                        "Not called: {error}. Call `{name}` again with a complete JSON object as arguments."
                    ),
                );
            }
        };
        if let Some(repair) = arguments.repair {
            self.warn(format!("call of `{name}`: {repair}"));
        }
        let grace = GRACE.min(limit);
        let object = arguments.object;
        let first = self.toolbox.call(name, object.clone(), limit, grace).await;
        let result = match first {
            // The server never saw the call: a new session may do, tried once.
            Err(CallError::NotSent(lost)) => {
                self.warn(format!("{}; opening a new session", lost.message));
                match self.toolbox.reconnect(name).await {
                    Ok(()) => self.toolbox.call(name, object, limit, grace).await,
                    Err(failure) => Err(CallError::Fatal(failure)),
                }
            }
            other => other,
        };
        self.answered(call, result)
    }

    fn answered(&self, call: &ToolCall, result: Result<ToolOutput, CallError>) -> Answered {
        let name = &call.function.name;
        match result {
            Ok(output) => {
                let outcome = if output.is_error {
                    ToolOutcome::ToolError
                } else {
                    ToolOutcome::Ok
                };
                Answered {
                    result: render(&call.id, name, output, self.model.name()),
                    outcome,
                    fatal: None,
                }
            }
            Err(CallError::TimedOut(limit)) => Answered::in_words(
                call,
                ToolOutcome::TimedOut,
                format!(
                    "The call of `{name}` timed out after {} s; it may or may not have taken effect.",
                    limit.as_secs_f64()
                ),
            ),
            Err(CallError::Rejected(text)) => Answered::in_words(
                call,
                ToolOutcome::ToolError,
                format!("The call of `{name}` failed: {text}"),
            ),
            Err(CallError::Broken(text)) => {
                self.warn(format!("the call of `{name}` broke: {text}"));
                Answered::in_words(
                    call,
                    ToolOutcome::Failed,
                    format!(
                        "The connection broke during the call of `{name}` ({text}); it may or may not have taken effect."
                    ),
                )
            }
            Err(CallError::NotSent(failure) | CallError::Fatal(failure)) => {
                let words = format!("Fatal error, the run ends here: {}", failure.message);
                Answered {
                    fatal: Some(failure),
                    ..Answered::in_words(call, ToolOutcome::Failed, words)
                }
            }
        }
    }
}

/// The texts of a message, to be changed in place.
fn texts_of(message: &mut Message) -> Vec<&mut String> {
    use formats::chat::{Block, KnownBlock};
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
