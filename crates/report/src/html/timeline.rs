//! What the agent did, from its events or, where there are none, from the conversation.

use std::collections::BTreeMap;

use formats::chat::{Content, Message, Role, ToolCall};
use formats::event::{Event, EventKind, ToolOutcome};
use serde::Serialize;
use serde_json::Value;

use super::page::Space;
use crate::Trial;
use crate::excerpt::one_line;
use crate::figures::{cost, count, seconds};
use crate::text::steps::arguments as brief;

/// The run of an agent.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// The conversation that it started from.
    pub(super) opening: Vec<Said>,
    /// Steps and what lies between them, in order.
    pub(super) entries: Vec<Placed>,
    /// Steps that are not shown.
    pub(super) more: usize,
    /// The subagent whose events are read.
    inside: String,
    /// Steps of each subagent, and of the agent itself under no name.
    steps: BTreeMap<String, u64>,
}

/// An entry with whose it is.
#[derive(Debug, Serialize)]
pub(super) struct Placed {
    /// The name of the subagent, with those of the ones around it; empty for the agent itself.
    inside: String,
    #[serde(flatten)]
    entry: Entry,
}

/// A message that is neither a step nor a result.
#[derive(Debug, Serialize)]
pub(super) struct Said {
    role: String,
    parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "content", rename_all = "snake_case")]
pub(super) enum Part {
    Text(String),
    Picture(String),
    Note(String),
}

/// One thing in the run of an agent.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Entry {
    /// A reply of the model with its tool calls.
    Step(Step),
    /// A message that the agent put in.
    Said(Said),
    /// A subagent begins.
    Subagent {
        /// Which agent it is.
        agent: String,
        /// The conversation that it starts from.
        opening: Vec<Said>,
    },
    /// A warning, a retry, a shortened conversation.
    Remark {
        /// In words.
        text: String,
    },
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Step {
    number: u64,
    at: String,
    figures: String,
    reasoning: String,
    parts: Vec<Part>,
    calls: Vec<Call>,
}

#[derive(Debug, Serialize)]
struct Call {
    #[serde(skip)]
    id: String,
    name: String,
    /// The arguments in one line.
    brief: String,
    arguments: String,
    outcome: &'static str,
    /// `good`, `bad`, or nothing where the outcome is not known.
    tag: &'static str,
    duration: String,
    result: Vec<Part>,
}

pub(super) fn of(trial: &Trial<'_>, space: &mut Space) -> Timeline {
    let mut timeline = Timeline::default();
    if trial.events.is_empty() {
        let messages = trial.trajectory.map(|run| run.messages.as_slice());
        timeline.read_messages(messages.unwrap_or_default(), space);
    } else {
        for event in trial.events {
            timeline.read_event(event, space);
        }
    }
    timeline
}

impl Timeline {
    fn read_messages(&mut self, messages: &[Message], space: &mut Space) {
        let first_reply = messages
            .iter()
            .position(|message| message.role == Role::Assistant)
            .unwrap_or(messages.len());
        let (opening, run) = messages.split_at(first_reply);
        self.opening = opening.iter().map(|message| said(message, space)).collect();
        for message in run {
            match message.role {
                Role::Assistant => self.step(None, String::new(), String::new(), message, space),
                Role::Tool => self.result(message, None, space),
                _ if self.more == 0 => self.push(Entry::Said(said(message, space))),
                _ => {}
            }
        }
    }

    fn read_event(&mut self, event: &Event, space: &mut Space) {
        let remark = match &event.kind {
            EventKind::RunStarted {
                messages,
                agent_config_id,
                ..
            } => {
                let opening = messages.iter().map(|message| said(message, space));
                if self.inside.is_empty() {
                    self.opening = opening.collect();
                } else if self.more == 0 {
                    let opening = opening.collect();
                    let agent = one_line(agent_config_id, 60);
                    self.push(Entry::Subagent { agent, opening });
                }
                return;
            }
            EventKind::Subagent { name, event } => return self.read_inside(name, event, space),
            EventKind::RunContinued { model } => {
                format!(
                    "the run goes on in another process, with {}",
                    one_line(model, 60)
                )
            }
            EventKind::RunEnded { status, failure } if !self.inside.is_empty() => match failure {
                None => format!("the subagent ended {status}"),
                Some(failure) => format!("the subagent ended {status}: {}", failure.message),
            },
            EventKind::Response {
                message,
                usage,
                cost_usd,
                duration,
                ..
            } => {
                let mut figures = vec![seconds(*duration)];
                figures.extend(usage.as_ref().map(|usage| {
                    let (asked, replied) = (usage.prompt_tokens, usage.completion_tokens);
                    format!("{} + {} tokens", count(asked), count(replied))
                }));
                figures.extend(cost_usd.map(|usd| cost(Some(usd))));
                let at = seconds(event.elapsed);
                return self.step(event.step, at, figures.join(", "), message, space);
            }
            EventKind::ToolResult {
                message,
                outcome,
                duration,
                ..
            } => return self.result(message, Some((*outcome, *duration)), space),
            EventKind::Message { message } if self.more == 0 => {
                return self.push(Entry::Said(said(message, space)));
            }
            EventKind::Retry {
                attempt, failure, ..
            } => format!("model call, attempt {attempt}: {}", failure.message),
            EventKind::Waited {
                seconds: waited,
                reason,
            } => format!("waited {} for its turn ({reason})", seconds(*waited)),
            EventKind::Compacted {
                before, messages, ..
            } => format!(
                "the conversation was shortened from {before} to {} messages",
                messages.len()
            ),
            EventKind::Budget { details } => format!("budget: {}", Value::Object(details.clone())),
            EventKind::Warning { message } => message.clone(),
            _ => return,
        };
        if self.more == 0 {
            let text = space.text(&remark);
            self.push(Entry::Remark { text });
        }
    }

    /// Reads what a subagent did.
    fn read_inside(&mut self, name: &str, event: &Event, space: &mut Space) {
        let around = self.inside.clone();
        if !around.is_empty() {
            self.inside.push_str(" › ");
        }
        self.inside.push_str(&one_line(name, 60));
        self.read_event(event, space);
        self.inside = around;
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(Placed {
            inside: self.inside.clone(),
            entry,
        });
    }

    fn step(
        &mut self,
        number: Option<u64>,
        at: String,
        figures: String,
        message: &Message,
        space: &mut Space,
    ) {
        if !space.step() {
            self.more += 1;
            return;
        }
        let steps = self.steps.entry(self.inside.clone()).or_default();
        *steps += 1;
        let step = Entry::Step(Step {
            number: number.unwrap_or(*steps),
            at,
            figures,
            reasoning: space.text(message.reasoning_content().unwrap_or("").trim()),
            parts: parts(message, space),
            calls: message
                .tool_calls
                .iter()
                .map(|call| new_call(call, space))
                .collect(),
        });
        self.push(step);
    }

    /// Puts a result to its call. One without a call, or of a step that is not shown, is dropped
    /// from the page; the trajectory has it.
    fn result(
        &mut self,
        message: &Message,
        outcome: Option<(ToolOutcome, f64)>,
        space: &mut Space,
    ) {
        if self.more > 0 {
            return;
        }
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let own = self.entries.iter_mut().rev();
        let mut own = own.filter(|placed| placed.inside == self.inside);
        let call = own.find_map(|placed| match &mut placed.entry {
            Entry::Step(step) => step.calls.iter_mut().find(|call| call.id == id),
            _ => None,
        });
        let Some(call) = call else {
            return;
        };
        call.result = parts(message, space);
        (call.outcome, call.tag) = match outcome {
            None => ("answered", ""),
            Some((ToolOutcome::Ok, _)) => ("ok", "good"),
            Some((ToolOutcome::ToolError, _)) => ("error", "bad"),
            Some((ToolOutcome::Refused, _)) => ("refused", "bad"),
            Some((ToolOutcome::TimedOut, _)) => ("timed out", "bad"),
            Some((ToolOutcome::Skipped, _)) => ("skipped", "bad"),
            Some(_) => ("failed", "bad"),
        };
        call.duration = outcome
            .map(|(_, duration)| seconds(duration))
            .unwrap_or_default();
    }
}

fn new_call(call: &ToolCall, space: &mut Space) -> Call {
    let raw = &call.function.arguments;
    let pretty = serde_json::from_str::<Value>(raw)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    Call {
        id: call.id.clone(),
        name: one_line(&call.function.name, 120),
        brief: one_line(&brief(call), 90),
        arguments: space.text(pretty.as_deref().unwrap_or(raw)),
        outcome: "no answer",
        tag: "bad",
        duration: String::new(),
        result: Vec::new(),
    }
}

fn said(message: &Message, space: &mut Space) -> Said {
    Said {
        role: one_line(message.role.as_str(), 30),
        parts: parts(message, space),
    }
}

fn parts(message: &Message, space: &mut Space) -> Vec<Part> {
    let blocks = match &message.content {
        None => return Vec::new(),
        Some(Content::Text(text)) if text.trim().is_empty() => return Vec::new(),
        Some(Content::Text(text)) => return vec![Part::Text(space.text(text))],
        Some(Content::Blocks(blocks)) => blocks,
    };
    blocks
        .iter()
        .map(|block| match (block.as_text(), block.as_image_url()) {
            (Some(text), _) => Part::Text(space.text(text)),
            (None, Some(uri)) => space.picture(uri),
            (None, None) => Part::Note("a part of a kind that is not shown".to_owned()),
        })
        .collect()
}
