//! One tool call, from raw arguments to the message that answers it.

use std::time::{Duration, Instant};

use formats::Object;
use formats::chat::{Message, ToolCall};
use formats::event::ToolOutcome;
use formats::owner::Failure;

use tracing::Instrument;

use super::Run;
use crate::spans;
use crate::tools::{Arguments, CallError, RenderedResult, ToolOutput, render};

/// How much longer than its limit a call is waited for, in case its result is just arriving.
const GRACE: Duration = Duration::from_secs(5);

/// A call that was tried.
pub(crate) struct Tried {
    pub(super) call: ToolCall,
    arguments: Object,
    pub(super) result: Result<ToolOutput, CallError>,
    started: Instant,
    duration: Duration,
}

/// A call that ended before the run took it in.
pub(crate) enum Ended {
    /// With an answer, of which observers know.
    Answered(Answered),
    /// The server never saw it; it can be tried once more.
    NotSent(Tried),
}

/// How a call ended.
pub(crate) struct Answered {
    pub(super) result: RenderedResult,
    pub(super) outcome: ToolOutcome,
    pub(super) duration: Duration,
    /// Ends the run.
    pub(super) fatal: Option<Failure>,
}

impl Run {
    /// Makes the call once.
    pub(super) async fn try_call(&self, call: &ToolCall, limit: Duration) -> Tried {
        let started = Instant::now();
        let name = &call.function.name;
        let mut tried = Tried {
            call: call.clone(),
            arguments: Object::new(),
            result: Ok(ToolOutput::default()),
            started,
            duration: Duration::ZERO,
        };
        tried.result = match Arguments::parse(&call.function.arguments) {
            Ok(arguments) => {
                if let Some(repair) = arguments.repair {
                    self.warn(format!("call of `{name}`: {repair}"));
                }
                tried.arguments = arguments.object;
                self.send(&tried, limit).await
            }
            Err(error) => Err(CallError::BadArguments(error)),
        };
        tried.duration = started.elapsed();
        tried
    }

    async fn send(&self, tried: &Tried, limit: Duration) -> Result<ToolOutput, CallError> {
        let span = spans::execute_tool(&tried.call);
        let outcome = self
            .toolbox
            .call(
                &tried.call.function.name,
                tried.arguments.clone(),
                limit,
                GRACE.min(limit),
            )
            .instrument(span.clone())
            .await;
        spans::tool_ended(&span, &outcome);
        outcome
    }

    /// Tries once more what the server never saw, over a new session.
    pub(super) async fn try_again(&mut self, mut tried: Tried, limit: Duration) -> Tried {
        if let Err(CallError::NotSent(lost)) = &tried.result {
            self.warn(format!("{}; opening a new session", lost.message));
            let name = &tried.call.function.name;
            tried.result = match self.toolbox.reconnect(name, tried.started).await {
                Ok(()) => self.send(&tried, limit).await,
                Err(failure) => Err(CallError::Fatal(failure)),
            };
            tried.duration = tried.started.elapsed();
        }
        tried
    }

    /// What the model is told; failures are marked for providers that take the mark (Anthropic).
    pub(super) fn answer_to(&self, tried: Tried) -> Answered {
        let mut answered = self.in_words(tried);
        if answered.outcome != ToolOutcome::Ok {
            let extra = &mut answered.result.message.extra;
            extra.insert("is_error".to_owned(), true.into());
        }
        answered
    }

    fn in_words(&self, tried: Tried) -> Answered {
        let call = &tried.call;
        let name = &call.function.name;
        let mut fatal = None;
        let (outcome, words) = match tried.result {
            Ok(output) => {
                return Answered {
                    outcome: match output.is_error {
                        true => ToolOutcome::ToolError,
                        false => ToolOutcome::Ok,
                    },
                    result: render(&call.id, name, output, self.model.name()),
                    duration: tried.duration,
                    fatal,
                };
            }
            Err(CallError::BadArguments(error)) => (
                ToolOutcome::Refused,
                format!(
                    "Not called: {error}. Call `{name}` again with a complete JSON object as arguments."
                ),
            ),
            Err(CallError::TimedOut(limit)) => (
                ToolOutcome::TimedOut,
                format!(
                    "The call of `{name}` timed out after {} s; it may or may not have taken effect.",
                    limit.as_secs_f64()
                ),
            ),
            Err(CallError::Rejected(text)) => (
                ToolOutcome::ToolError,
                format!("The call of `{name}` failed: {text}"),
            ),
            Err(CallError::Broken(text)) => {
                self.warn(format!("the call of `{name}` broke: {text}"));
                (
                    ToolOutcome::Failed,
                    format!(
                        "The connection broke during the call of `{name}` ({text}); it may or may not have taken effect."
                    ),
                )
            }
            Err(CallError::NotSent(failure) | CallError::Fatal(failure)) => {
                let words = format!("Fatal error, the run ends here: {}", failure.message);
                fatal = Some(failure);
                (ToolOutcome::Failed, words)
            }
        };
        Answered {
            result: RenderedResult {
                message: Message::tool(&call.id, name, words),
                deferred: Vec::new(),
            },
            outcome,
            duration: tried.duration,
            fatal,
        }
    }
}
