//! How far a run came, read from its events.

use std::time::Duration;

use formats::Object;
use formats::chat::{Message, Usage};
use formats::event::{Event, EventKind};
use formats::owner::{Failure, Owner};
use formats::trajectory::{AgentStatus, Trajectory};
use llm_client::FinishReason;

use crate::driver::output_with;
use crate::run::{
    Conversation, Earlier, PastCall, Turn, TurnKind, UsageTally, kind_of, says_nothing, status_of,
};

/// How far a run came: what its events tell. From here it can go on
/// ([`RunInput::continue_from`](crate::RunInput::continue_from)).
#[derive(Debug)]
pub struct Checkpoint {
    trajectory_id: String,
    agent: String,
    model: String,
    /// How many messages the run began with.
    initial: usize,
    conversation: Conversation,
    usage: UsageTally,
    /// Number of the next event.
    seq: u64,
    /// Seconds of the run up to the last event.
    elapsed: f64,
    /// When the agent began, in seconds of the run.
    began: Option<f64>,
    /// The number of the last step, and whether it has a reply.
    step: (u64, bool),
    calls: Vec<PastCall>,
    /// Pictures of results that are not in the conversation yet, each with its result.
    deferred: Vec<(Message, Vec<Message>)>,
    /// The last reply, as long as nothing but results followed.
    last_reply: Option<Reply>,
    /// The last answer to a call, not counted yet: the one that holds the final answer is not.
    uncounted: Option<Message>,
    answer: Option<(String, Option<String>)>,
    end: Option<(AgentStatus, Option<Failure>)>,
}

#[derive(Debug)]
struct Reply {
    message: Message,
    finish_reason: FinishReason,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
}

/// What the driver needs to go on.
pub(crate) struct Restored {
    pub(crate) conversation: Conversation,
    pub(crate) usage: UsageTally,
    pub(crate) earlier: Earlier,
}

impl Restored {
    /// A run that begins.
    pub(crate) fn fresh(messages: Vec<Message>) -> Self {
        Self {
            conversation: Conversation::new(messages),
            usage: UsageTally::default(),
            earlier: Earlier::default(),
        }
    }
}

impl Checkpoint {
    /// Reads the events of one run in order. Nothing comes of events without a `run_started`.
    #[must_use]
    pub fn from_events(events: &[Event]) -> Option<Self> {
        let mut checkpoint: Option<Self> = None;
        for event in events {
            match (&event.kind, &mut checkpoint) {
                (
                    EventKind::RunStarted {
                        trajectory_id,
                        agent_config_id,
                        model,
                        messages,
                    },
                    None,
                ) => {
                    checkpoint = Some(Self::begin(trajectory_id, agent_config_id, model, messages));
                }
                (kind, Some(checkpoint)) => checkpoint.take(kind, event),
                _ => {}
            }
            if let Some(checkpoint) = &mut checkpoint {
                checkpoint.seq = event.seq + 1;
                checkpoint.elapsed = event.elapsed;
            }
        }
        checkpoint
    }

    /// The id of the run.
    #[must_use]
    pub fn trajectory_id(&self) -> &str {
        &self.trajectory_id
    }

    /// The agent of the run.
    #[must_use]
    pub fn agent_config_id(&self) -> &str {
        &self.agent
    }

    /// Whether the run has its answer: there is nothing to go on with.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.answer.is_some()
    }

    /// What the run is up to here, as [`rebuild`](crate::rebuild) tells.
    #[must_use]
    pub fn into_trajectory(mut self) -> Trajectory {
        self.count_last_answer();
        let (status, error) = match (self.end.take(), &self.answer) {
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
        self.conversation.close_calls();
        if self.answer.is_none() {
            for picture in self.take_deferred() {
                self.count_pictures(&picture);
                self.conversation.push(picture);
            }
        }
        let (final_answer, answer_status) = self.answer.unzip();
        Trajectory {
            messages: self.conversation.into_record(),
            output: output_with(answer_status.flatten().as_deref()),
            status,
            time_elapsed: self.began.map_or(0.0, |began| self.elapsed - began),
            usage: Some(self.usage.to_object()),
            final_answer,
            error,
            extra: Object::new(),
        }
    }

    /// Whether a run of `agent` from `messages` can be the one that this is a part of; the reason
    /// where it cannot.
    pub(crate) fn fits(&self, agent: &str, messages: &[Message]) -> Result<(), String> {
        if self.agent != agent {
            return Err(format!(
                "its agent is `{}`, the configuration names `{agent}`",
                self.agent
            ));
        }
        let begun_with = self.conversation.record().take(self.initial);
        if !messages.is_empty()
            && (messages.len() != self.initial || !messages.iter().eq(begun_with))
        {
            return Err("it began with other messages".to_owned());
        }
        Ok(())
    }

    /// Number of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.seq
    }

    /// Steps that have a reply.
    pub(crate) fn steps(&self) -> u64 {
        match self.step {
            (number, true) => number,
            (number, false) => number.saturating_sub(1),
        }
    }

    /// Time of the run up to here.
    pub(crate) fn elapsed(&self) -> Duration {
        seconds(self.elapsed)
    }

    pub(crate) fn restore(mut self) -> Restored {
        self.count_last_answer();
        let steps = self.steps();
        let deferred = self.take_deferred();
        let open_turn = self
            .last_reply
            .and_then(|reply| reply.open_turn(&self.conversation));
        Restored {
            conversation: self.conversation,
            usage: self.usage,
            earlier: Earlier {
                steps,
                step_begun: !self.step.1,
                worked: seconds(self.began.map_or(0.0, |began| self.elapsed - began)),
                calls: self.calls,
                open_turn,
                deferred,
            },
        }
    }

    fn begin(id: &str, agent: &str, model: &str, messages: &[Message]) -> Self {
        Self {
            trajectory_id: id.to_owned(),
            agent: agent.to_owned(),
            model: model.to_owned(),
            initial: messages.len(),
            conversation: Conversation::new(messages.to_vec()),
            usage: UsageTally::default(),
            seq: 0,
            elapsed: 0.0,
            began: None,
            step: (0, true),
            calls: Vec::new(),
            deferred: Vec::new(),
            last_reply: None,
            uncounted: None,
            answer: None,
            end: None,
        }
    }

    fn take(&mut self, kind: &EventKind, event: &Event) {
        if !matches!(kind, EventKind::FinalAnswer { .. }) {
            self.count_last_answer();
        }
        match kind {
            EventKind::RunContinued { model } => {
                self.model.clone_from(model);
                self.end = None;
            }
            EventKind::Configured { .. } => {
                self.began.get_or_insert(event.elapsed);
            }
            EventKind::StepStarted => {
                self.deferred.clear();
                self.step = (event.step.unwrap_or(self.step.0 + 1), false);
                self.last_reply = None;
            }
            EventKind::Response {
                message,
                finish_reason,
                usage,
                cost_usd,
                ..
            } => self.take_reply(Reply {
                message: message.clone(),
                finish_reason: FinishReason::from_word(finish_reason),
                usage: usage.clone(),
                cost_usd: *cost_usd,
            }),
            EventKind::Message { message } => {
                self.last_reply = None;
                self.no_longer_deferred(message);
                self.count_pictures(message);
                self.conversation.push(message.clone());
            }
            EventKind::ToolCall { call } => {
                self.conversation.begin(&call.id);
            }
            EventKind::ToolResult {
                message, pictures, ..
            } => {
                if !pictures.is_empty() {
                    self.deferred.push((message.clone(), pictures.clone()));
                }
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
                self.uncounted = None;
                self.usage.add_answer(answer);
                self.answer = Some((answer.clone(), answer_status.clone()));
            }
            EventKind::RunEnded { status, failure } => self.end = Some((*status, failure.clone())),
            _ => {}
        }
    }

    fn take_reply(&mut self, reply: Reply) {
        self.step.1 = true;
        self.usage.add(reply.usage.as_ref(), &reply.message);
        self.calls.push(PastCall {
            usage: reply.usage.clone(),
            cost_usd: reply.cost_usd,
        });
        self.last_reply = None;
        if !says_nothing(&reply.message) {
            self.conversation.push(reply.message.clone());
            self.last_reply = Some(reply);
        }
    }

    /// A message that was among the deferred ones has joined the conversation.
    fn no_longer_deferred(&mut self, message: &Message) {
        for (_, pictures) in &mut self.deferred {
            if let Some(place) = pictures.iter().position(|picture| picture == message) {
                pictures.remove(place);
                return;
            }
        }
    }

    /// Pictures that are not in the conversation yet, in the order of their calls.
    fn take_deferred(&mut self) -> Vec<Message> {
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.sort_by_key(|(result, _)| self.conversation.began_as(result));
        deferred
            .into_iter()
            .flat_map(|(_, pictures)| pictures)
            .collect()
    }

    fn count_last_answer(&mut self) {
        if let Some(message) = self.uncounted.take() {
            self.usage.add_tool_text(&message);
        }
    }

    fn count_pictures(&mut self, message: &Message) {
        let provider = self.model.split('/').next().unwrap_or_default();
        self.usage.add_pictures(message, provider, &self.model);
    }
}

impl Reply {
    /// The turn, where something of it is left to do.
    fn open_turn(self, conversation: &Conversation) -> Option<Turn> {
        let calls = conversation.open_calls().to_vec();
        if calls.is_empty() && !self.message.tool_calls.is_empty() {
            return None;
        }
        Some(Turn {
            kind: match calls.is_empty() {
                true => kind_of(&self.message, &self.finish_reason),
                false => TurnKind::Calls,
            },
            text: self.message.text().into_owned(),
            calls,
            finish_reason: self.finish_reason,
            cost_usd: self.cost_usd,
            usage: self.usage,
        })
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
