//! What a run is given.

use std::sync::Arc;
use std::time::Duration;

use formats::Object;
use formats::agent::AgentConfig;
use formats::trajectory::Trajectory;
use llm_client::Model;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::checkpoint::Checkpoint;
use crate::events::{BetweenSteps, NoObserver, Observer};
use crate::tools::ToolSources;

/// Limit around a whole run, outside the agent's own `timeout`: 22.5 hours
/// (`AGENT_TIMEOUT_SECONDS`, `spec/agents.md` §3).
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(81_000);

/// Everything that one run needs (`spec/agents.md` §4.2).
pub struct RunInput {
    /// Names the run in events and towards proxies.
    pub trajectory_id: String,
    /// The conversation to start from: chat messages, passed through with all their keys.
    pub initial_messages: Vec<Value>,
    /// The model that drives the agent.
    pub model: Model,
    /// Further parameters of every model call, by their chat-completions names.
    pub extra_args: Object,
    /// The tools that the agent can use.
    pub tools: ToolSources,
    /// Which agent, with which settings.
    pub config: AgentConfig,
    /// Structured output of the run that this one continues; for agents that read it.
    pub parent_trajectory_output: Option<Object>,
    /// Data about this run; for agents that read it.
    pub custom_args: Option<Object>,
    /// The task's own fields; for agents that read them.
    pub task_custom_fields: Option<Object>,
    /// Settings of an inner agent; for agents that wrap another one.
    pub inner_agent_config: Option<Object>,
    /// Ends the run with status `cancelled`, keeping what there is.
    pub cancel: CancellationToken,
    /// Who follows the run.
    pub observer: Arc<dyn Observer>,
    /// What is done before each model call.
    pub between_steps: Option<Arc<dyn BetweenSteps>>,
    /// Limit around the whole run; [`DEFAULT_LIMIT`] unless set.
    pub limit: Duration,
    /// Where an earlier process left this run; see [`RunInput::continue_from`].
    pub checkpoint: Option<Checkpoint>,
}

impl RunInput {
    /// A run of `model` with the default agent, no tools, no messages, nobody watching.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            trajectory_id: String::from("run"),
            initial_messages: Vec::new(),
            model,
            extra_args: Object::new(),
            tools: ToolSources::new(),
            config: AgentConfig::default(),
            parent_trajectory_output: None,
            custom_args: None,
            task_custom_fields: None,
            inner_agent_config: None,
            cancel: CancellationToken::new(),
            observer: Arc::new(NoObserver),
            between_steps: None,
            limit: DEFAULT_LIMIT,
            checkpoint: None,
        }
    }

    /// Adds a user message.
    #[must_use]
    pub fn user(mut self, text: impl Into<String>) -> Self {
        self.initial_messages
            .push(json!({"role": "user", "content": text.into()}));
        self
    }

    /// Chooses the agent and its settings (an object, or `null` for none).
    #[must_use]
    pub fn agent(mut self, id: impl Into<String>, settings: Value) -> Self {
        let id = id.into();
        self.config = AgentConfig {
            agent_name: id.clone(),
            agent_config_id: id,
            agent_config_values: match settings {
                Value::Object(values) => values,
                _ => Object::new(),
            },
        };
        self
    }

    /// Goes on with a run whose process ended: from the step in flight, without repeating calls that
    /// have an answer. Time limits begin anew. The observer sees the events that follow; an
    /// [`EventLog`](crate::EventLog) opened by `append` keeps them behind the earlier ones.
    ///
    /// Initial messages can be left out; given, they must be those of the run.
    #[must_use]
    pub fn continue_from(mut self, checkpoint: Checkpoint) -> Self {
        self.trajectory_id = checkpoint.trajectory_id().to_owned();
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Puts the conversation of a finished run before the initial messages, which hold what the
    /// user says further; its structured output is there for agents that read it.
    #[must_use]
    pub fn after(mut self, parent: Trajectory) -> Self {
        let messages = parent.messages.iter().map(|message| json!(message));
        self.initial_messages.splice(0..0, messages);
        self.parent_trajectory_output = parent.output;
        self
    }

    /// Sets the tools.
    #[must_use]
    pub fn tools(mut self, tools: ToolSources) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }
}
