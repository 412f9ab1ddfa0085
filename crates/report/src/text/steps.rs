//! What an agent does, line by line, while it does it.

use std::collections::VecDeque;

use formats::chat::{Block, Content, Message, ToolCall};
use formats::event::{Event, EventKind, ToolOutcome};
use formats::owner::Failure;
use formats::trajectory::AgentStatus;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::{Colour, Style};
use crate::excerpt::{column, one_line};
use crate::figures::{count, number_of, seconds};

/// Calls in flight that are remembered for their arguments.
const CALLS: usize = 256;

/// Columns of a tool's name.
const NAME: usize = 60;

/// Columns of the step number, and so the indentation of the lines below it.
const MARGIN: usize = 9;

/// Turns the events of one agent run into lines.
///
/// A tool call is one line, at its end: name, arguments, outcome, duration and the beginning of a
/// failed result. Calls that are not answered yet are remembered for that, in bounded number.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    style: Style,
    calls: VecDeque<Call>,
    /// The subagent that was heard of last, with the lines about it.
    inside: Option<(String, Box<Self>)>,
}

/// A call that is not answered yet.
#[derive(Debug, Clone)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl Steps {
    /// Lines in `style`.
    #[must_use]
    pub const fn new(style: Style) -> Self {
        Self {
            style,
            calls: VecDeque::new(),
            inside: None,
        }
    }

    /// The line for `event`, or `None` for an event that needs none. It has no line break.
    pub fn line(&mut self, event: &Event) -> Option<String> {
        match &event.kind {
            EventKind::RunStarted {
                agent_config_id,
                model,
                ..
            } => Some(format!(
                "agent    {} with {}",
                one_line(agent_config_id, 40),
                one_line(model, 60)
            )),
            EventKind::Configured { tools } => {
                Some(self.below(&number_of(tools.len() as u64, "tool")))
            }
            EventKind::Response {
                message,
                usage,
                duration,
                ..
            } => {
                let tokens = usage.as_ref().map(|usage| {
                    let (asked, replied) = (usage.prompt_tokens, usage.completion_tokens);
                    format!("{} + {} tokens", count(asked), count(replied))
                });
                Some(self.response(event.step, message, tokens, *duration))
            }
            EventKind::ToolCall { call } => {
                if self.calls.len() >= CALLS {
                    self.calls.pop_front();
                }
                self.calls.push_back(Call {
                    id: call.id.clone(),
                    name: one_line(&call.function.name, NAME),
                    arguments: arguments(call),
                });
                None
            }
            EventKind::ToolResult {
                message,
                outcome,
                duration,
                ..
            } => Some(self.result(message, *outcome, *duration)),
            EventKind::Retry {
                attempt,
                wait_seconds,
                failure,
            } => Some(self.warning(&format!(
                "attempt {attempt} failed, next in {}: {}",
                seconds(*wait_seconds),
                failure.message
            ))),
            EventKind::Waited {
                seconds: waited,
                reason,
            } => Some(self.below(&format!(
                "waited {} for its turn ({reason})",
                seconds(*waited)
            ))),
            EventKind::Compacted {
                before, messages, ..
            } => Some(self.below(&format!(
                "conversation shortened from {before} to {} messages",
                messages.len()
            ))),
            EventKind::Budget { details } => {
                Some(self.warning(&format!("budget: {}", Value::Object(details.clone()))))
            }
            EventKind::Warning { message } => Some(self.warning(message)),
            EventKind::FinalAnswer {
                answer,
                answer_status,
            } => Some(self.answer(answer, answer_status.as_deref())),
            EventKind::RunContinued { model } => Some(self.below(&format!(
                "the run goes on in another process, with {}",
                one_line(model, 60)
            ))),
            EventKind::Subagent { name, event } => self.inside(name, event),
            EventKind::RunEnded { status, failure } => {
                Some(self.ended(*status, failure.as_ref(), event.elapsed))
            }
            _ => None,
        }
    }

    /// The line for what a subagent did, behind its name.
    fn inside(&mut self, name: &str, event: &Event) -> Option<String> {
        let style = self.style;
        let (_, steps) = match &mut self.inside {
            Some(known) if known.0 == name => known,
            other => other.insert((name.to_owned(), Box::new(Self::new(style)))),
        };
        let line = steps.line(event)?;
        Some(format!("{:MARGIN$}{} | {line}", "", one_line(name, 30)))
    }

    /// A line below a step.
    fn below(&self, text: &str) -> String {
        format!("{:MARGIN$}{}", "", one_line(text, self.space()))
    }

    const fn space(&self) -> usize {
        let space = self.style.width.saturating_sub(MARGIN);
        if space < 30 { 30 } else { space }
    }

    fn warning(&self, text: &str) -> String {
        let line = one_line(text, self.space().saturating_sub(9));
        let word = self.style.paint(Colour::Yellow, "warning:");
        format!("{:MARGIN$}{word} {line}", "")
    }

    fn response(
        &self,
        step: Option<u64>,
        message: &Message,
        tokens: Option<String>,
        duration: f64,
    ) -> String {
        let step = step.map(|step| format!("step {step}")).unwrap_or_default();
        let step = self.style.paint(Colour::Bold, &column(&step, MARGIN - 1));
        let figures = [Some(seconds(duration)), tokens];
        let figures: Vec<String> = figures.into_iter().flatten().collect();
        let figures = format!("({})", figures.join(", "));
        let said = message.text();
        let said = match (said.trim(), message.tool_calls.len()) {
            ("", 0) => "said nothing".to_owned(),
            ("", calls) => format!("calls {}", number_of(calls as u64, "tool")),
            (said, _) => one_line(said, self.space().saturating_sub(figures.len() + 1)),
        };
        format!("{step} {said} {}", self.style.paint(Colour::Dim, &figures))
    }

    fn result(&mut self, message: &Message, outcome: ToolOutcome, duration: f64) -> String {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let place = self.calls.iter().position(|call| call.id == id);
        let call = place.and_then(|place| self.calls.remove(place));
        let (name, arguments) = call.map_or_else(
            || {
                let name = message.name.as_deref().unwrap_or("tool");
                (one_line(name, NAME), "…".to_owned())
            },
            |call| (call.name, call.arguments),
        );
        let (word, colour) = outcome_word(outcome);
        let end = format!("{word}, {}", seconds(duration));
        let told = match outcome {
            ToolOutcome::Ok => pictures(message),
            _ => one_line(&message.text(), 200),
        };
        let taken = name.width() + end.len() + 4;
        let arguments = one_line(&arguments, self.space().saturating_sub(taken).max(1));
        let call = format!("{name}({arguments})");
        let mut line = format!("{:MARGIN$}{call}  {}", "", self.style.paint(colour, &end));
        if !told.is_empty() {
            line.push_str(": ");
            line.push_str(&told);
        }
        line
    }

    fn answer(&self, answer: &str, status: Option<&str>) -> String {
        let status = status.map(|status| format!(" ({})", one_line(status, 20)));
        let status = status.unwrap_or_default();
        let word = self.style.paint(Colour::Bold, "answer");
        let space = self.space().saturating_sub(status.len() + 1);
        format!("{word}{status}   {}", one_line(answer, space))
    }

    fn ended(&self, status: AgentStatus, failure: Option<&Failure>, elapsed: f64) -> String {
        let colour = match status {
            AgentStatus::Completed => Colour::Green,
            _ => Colour::Red,
        };
        let word = self.style.paint(colour, status.as_str());
        let mut line = format!("agent    {word} after {}", seconds(elapsed));
        if let Some(failure) = failure {
            line.push_str(": ");
            line.push_str(&one_line(&failure.message, self.style.width.max(30)));
        }
        line
    }
}

const fn outcome_word(outcome: ToolOutcome) -> (&'static str, Colour) {
    match outcome {
        ToolOutcome::Ok => ("ok", Colour::Green),
        ToolOutcome::ToolError => ("error", Colour::Red),
        ToolOutcome::Refused => ("refused", Colour::Red),
        ToolOutcome::TimedOut => ("timed out", Colour::Red),
        ToolOutcome::Failed => ("failed", Colour::Red),
        ToolOutcome::Skipped => ("skipped", Colour::Yellow),
        _ => ("ended", Colour::Yellow),
    }
}

/// The arguments of a call as `name: value`, each short; the raw text where it is no object.
pub(crate) fn arguments(call: &ToolCall) -> String {
    let raw = &call.function.arguments;
    // A huge argument would be parsed only to be cut.
    let parsed = (raw.len() < 1 << 20).then(|| serde_json::from_str::<formats::Object>(raw));
    let Some(Ok(object)) = parsed else {
        return one_line(raw, 60);
    };
    let parts: Vec<String> = object
        .iter()
        .take(8)
        .map(|(name, value)| {
            let value = match value {
                Value::String(text) => format!("\"{}\"", one_line(text, 40)),
                other => one_line(&other.to_string(), 40),
            };
            format!("{}: {value}", one_line(name, 30))
        })
        .collect();
    parts.join(", ")
}

/// `2 pictures`, where a result has some; its text is for the model.
fn pictures(message: &Message) -> String {
    let blocks = message
        .content
        .as_ref()
        .map(Content::blocks)
        .unwrap_or_default();
    match blocks.iter().filter_map(Block::as_image_url).count() {
        0 => String::new(),
        pictures => number_of(pictures as u64, "picture"),
    }
}
