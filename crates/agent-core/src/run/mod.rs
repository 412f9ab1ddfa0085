//! What an agent works with: the conversation, the model, the tools, the account of both.

mod context_size;
mod conversation;
mod earlier;
mod failure;
mod model_call;
mod tool_call;
mod tool_calls;
mod usage;

use std::sync::{Arc, Mutex};

use formats::Object;
use formats::chat::{Message, ToolDefinition, Usage};
use formats::event::EventKind;
use llm_client::{Model, tokens};
use serde_json::Value;

use crate::events::{BetweenSteps, Recorder};
use crate::images::ImagePolicy;
use crate::subagent::Surroundings;
use crate::tools::Toolbox;

pub use failure::model_failure;
pub use model_call::{Turn, TurnKind, Unusable};
pub use tool_calls::{CallLimits, Concurrency, Shorten};

pub(crate) use context_size::ContextSize;
pub(crate) use conversation::{Conversation, is_instruction};
pub(crate) use earlier::{Earlier, PastCall};
pub(crate) use failure::status_of;
pub(crate) use model_call::{kind_of, says_nothing};
pub(crate) use tool_calls::Finished;
pub(crate) use usage::UsageTally;

/// The answer with which an agent completes its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer itself.
    pub text: String,
    /// What the agent says about it: `completed`, `blocked` or `failed`, if it says so.
    pub status: Option<String>,
}

impl Answer {
    /// An answer without a status of its own.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            status: None,
        }
    }
}

/// What the caller said about a run beside messages, model and tools; for agents that read it.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// The id of the run.
    pub trajectory_id: String,
    /// Further parameters of every model call.
    pub extra_args: Object,
    /// Structured output of the run that this one continues.
    pub parent_trajectory_output: Option<Object>,
    /// Data about this run.
    pub custom_args: Option<Object>,
    /// The task's own fields.
    pub task_custom_fields: Option<Object>,
    /// Settings of an inner agent.
    pub inner_agent_config: Option<Object>,
}

/// One run under way. An agent drives it; every method keeps conversation, events and usage in
/// step, so that what there is survives whenever the agent is cut off.
pub struct Run {
    pub(crate) model: Model,
    pub(crate) context: RunContext,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) conversation: Conversation,
    pub(crate) usage: UsageTally,
    pub(crate) toolbox: Toolbox,
    pub(crate) size: ContextSize,
    /// Pictures that follow the answers to the calls of this step.
    pub(crate) deferred: Vec<Message>,
    /// Calls that ended and are not written down yet.
    pub(crate) finished: Mutex<Finished>,
    /// Unusable replies in a row.
    pub(crate) unusable: u32,
    /// Model calls in a row that gave no reply.
    pub(crate) unanswered: u32,
    /// What an earlier process did of this run.
    pub(crate) earlier: Earlier,
    /// For providers that take not every picture.
    pub(crate) pictures: ImagePolicy,
    /// What is done before each model call.
    pub(crate) between_steps: Option<Arc<dyn BetweenSteps>>,
    /// For agents inside this one.
    pub(crate) surroundings: Surroundings,
}

impl Run {
    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What the caller said about the run.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.context
    }

    /// The conversation as the model sees it.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.conversation.context()
    }

    /// Everything that was said and done, also what was summarised away since.
    pub fn record(&self) -> impl Iterator<Item = &Message> {
        self.conversation.record()
    }

    /// How many steps an earlier process finished of this run, which goes on; 0 for a new one. An
    /// agent with a limit on steps counts on from here.
    #[must_use]
    pub fn steps_done(&self) -> u64 {
        self.earlier.steps
    }

    /// Whether an earlier process began the step that comes now: what is said before a step is in
    /// the conversation. Only the first time that it is asked.
    pub(crate) fn take_begun_step(&mut self) -> bool {
        std::mem::take(&mut self.earlier.step_begun)
    }

    /// The turn that an earlier process of this run was in the middle of: its calls are those that
    /// have no answer yet. An agent handles it first; calls that nobody handles are answered as
    /// skipped before the model is asked again.
    pub fn take_open_turn(&mut self) -> Option<Turn> {
        self.earlier.open_turn.take()
    }

    /// All tools, in the order in which their sources list them.
    #[must_use]
    pub fn tools(&self) -> Arc<[ToolDefinition]> {
        self.toolbox.definitions()
    }

    /// Begins a step and returns its number, counted from 1.
    pub fn begin_step(&mut self) -> u64 {
        let step = self.recorder.next_step();
        tracing::debug!(step, "step");
        self.recorder.emit(EventKind::StepStarted);
        step
    }

    /// Adds a message of the agent's own to the conversation.
    pub fn say(&mut self, message: Message) {
        self.recorder.emit(EventKind::Message {
            message: message.clone(),
        });
        self.join(message);
    }

    /// Tells observers of something that deserves attention.
    pub fn warn(&self, message: impl Into<String>) {
        self.recorder.warn(message);
    }

    /// Tells observers of the state of a budget.
    pub fn report_budget(&self, details: Object) {
        self.recorder.emit(EventKind::Budget { details });
    }

    /// Sets a key of the agent's own in the `usage` of the trajectory.
    pub fn set_usage(&mut self, key: &str, value: impl Into<Value>) {
        self.usage.set(key, value.into());
    }

    /// Prompt and completion tokens so far, as reported by the provider.
    #[must_use]
    pub fn tokens_spent(&self) -> u64 {
        self.usage.spent()
    }

    /// Estimated tokens of the conversation as the model sees it.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.size.tokens()
    }

    /// Puts a shorter conversation in the place of the present one, which stays in the record.
    pub(crate) fn replace_context(&mut self, messages: Vec<Message>, usage: Option<Usage>) {
        self.recorder.emit(EventKind::Compacted {
            before: self.messages().len(),
            messages: messages.clone(),
            usage,
        });
        let tools = tokens::of_tools(&self.toolbox.definitions());
        self.size.replaced(tokens::of_messages(&messages) + tools);
        self.conversation.replace_context(messages);
    }

    /// Adds a message to the conversation; the event is the caller's business.
    pub(crate) fn join(&mut self, message: Message) {
        self.size.add(tokens::of_message(&message));
        self.conversation.push(message);
    }
}
