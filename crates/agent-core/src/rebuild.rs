//! A trajectory from the events of a run, for runs whose process ended before it was written.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use formats::Object;
use formats::chat::Message;
use formats::event::{Event, EventKind};
use formats::owner::{Failure, Owner};
use formats::trajectory::{AgentStatus, Trajectory};

use crate::driver::output_with;
use crate::run::{Conversation, UsageTally, says_nothing, status_of};

/// Reads `events.jsonl`. A last line that was not written to its end is left out.
///
/// # Errors
/// When the file cannot be read or a line before the last is no event.
pub fn read_events(path: impl AsRef<Path>) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut lines = BufReader::new(std::fs::File::open(path)?)
        .lines()
        .peekable();
    let mut number = 0;
    while let Some(line) = lines.next() {
        number += 1;
        match serde_json::from_str(&line?) {
            Ok(event) => events.push(event),
            Err(_) if lines.peek().is_none() => break,
            Err(error) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {number} is no event: {error}"),
                ));
            }
        }
    }
    Ok(events)
}

/// The trajectory that the events tell of, as far as they go.
///
/// A run without an end was interrupted: its status is `error`, and calls that have no answer get
/// one that says so. What only the agent knows (budgets in `usage`) is not in it. Nothing comes of
/// events without a `run_started`.
#[must_use]
pub fn rebuild(events: &[Event]) -> Option<Trajectory> {
    let mut record = None;
    for event in events {
        match (&event.kind, &mut record) {
            (
                EventKind::RunStarted {
                    model, messages, ..
                },
                None,
            ) => record = Some(Record::begin(model, messages.clone())),
            (kind, Some(record)) => record.take(kind, event.elapsed),
            _ => {}
        }
    }
    record.map(|record| record.into_trajectory(events.last().map_or(0.0, |event| event.elapsed)))
}

struct Record {
    model: String,
    conversation: Conversation,
    usage: UsageTally,
    /// When the agent began, in seconds of the run.
    began: Option<f64>,
    /// The last answer to a call, not counted yet: the one that holds the final answer is not.
    uncounted: Option<Message>,
    answer: Option<(String, Option<String>)>,
    end: Option<(AgentStatus, Option<Failure>)>,
}

impl Record {
    fn begin(model: &str, messages: Vec<Message>) -> Self {
        Self {
            model: model.to_owned(),
            conversation: Conversation::new(messages),
            usage: UsageTally::default(),
            began: None,
            uncounted: None,
            answer: None,
            end: None,
        }
    }

    fn take(&mut self, kind: &EventKind, elapsed: f64) {
        if let Some(message) = self.uncounted.take()
            && !matches!(kind, EventKind::FinalAnswer { .. })
        {
            self.usage.add_tool_text(&message);
        }
        match kind {
            EventKind::Configured { .. } => self.began = Some(elapsed),
            EventKind::Response { message, usage, .. } => {
                self.usage.add(usage.as_ref(), message);
                if !says_nothing(message) {
                    self.conversation.push(message.clone());
                }
            }
            EventKind::Message { message } => {
                self.count_pictures(message);
                self.conversation.push(message.clone());
            }
            EventKind::ToolResult { message, .. } => {
                self.uncounted = Some(message.clone());
                self.count_pictures(message);
                self.conversation.push(message.clone());
            }
            EventKind::Compacted {
                messages, usage, ..
            } => {
                self.conversation.replace_context(messages.clone());
                self.usage.add_summary(usage.as_ref(), true);
            }
            EventKind::FinalAnswer {
                answer,
                answer_status,
            } => {
                self.usage.add_answer(answer);
                self.answer = Some((answer.clone(), answer_status.clone()));
            }
            EventKind::RunEnded { status, failure } => self.end = Some((*status, failure.clone())),
            _ => {}
        }
    }

    fn count_pictures(&mut self, message: &Message) {
        let provider = self.model.split('/').next().unwrap_or_default();
        self.usage.add_pictures(message, provider, &self.model);
    }

    fn into_trajectory(mut self, elapsed: f64) -> Trajectory {
        let (status, error) = match (self.end, &self.answer) {
            (Some(end), _) => end,
            (None, Some(_)) => (AgentStatus::Completed, None),
            (None, None) => {
                let failure = Failure::new(
                    Owner::Infrastructure,
                    "interrupted",
                    "the process ended during the run",
                )
                .retryable(true);
                (status_of(&failure), Some(failure))
            }
        };
        for call in self.conversation.open_calls().to_vec() {
            let words = "No result: the process ended during the run.";
            self.conversation
                .push(Message::tool(&call.id, &call.function.name, words));
        }
        let (final_answer, answer_status) = self.answer.unzip();
        Trajectory {
            messages: self.conversation.into_record(),
            output: output_with(answer_status.flatten().as_deref()),
            status,
            time_elapsed: self.began.map_or(0.0, |began| elapsed - began),
            usage: Some(self.usage.to_object()),
            final_answer,
            error,
            extra: Object::new(),
        }
    }
}
