//! Which agents there are, and how a configuration becomes one that can run.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use formats::Object;
use formats::agent::AgentConfig;
use formats::owner::{Failure, Owner};
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use crate::loop_agent::LoopAgent;
use crate::run::{Answer, Run};
use crate::settings::{self, Ranges};
use crate::single_shot::SingleShot;
use crate::toolbelt::ReactToolbeltAgent;

/// A way to use a model and tools: the step loop of an agent.
///
/// An agent keeps no state of a run in itself; what a run needs is in its [`Run`], which the agent
/// drives and which survives when the agent is cut off by a time limit or cancelled.
pub trait Agent: Send + Sync + 'static {
    /// Its settings, read from `agent_config_values`. Give each field a default, and bounds by
    /// `#[schemars(range(…))]`: values outside them are accepted with a warning, as existing tasks
    /// expect; refuse in `Deserialize` what cannot work.
    type Config: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The id in `agent_config.json`.
    fn id(&self) -> &'static str;

    /// Limit of the whole run, listing the tools included.
    fn timeout(&self, config: &Self::Config) -> Duration;

    /// Whether it calls tools. For one that does not, no tool server is asked for anything.
    fn uses_tools(&self) -> bool {
        true
    }

    /// Works until there is an answer.
    ///
    /// # Errors
    /// The [`Failure`] that ends the run; its owner decides the status.
    fn drive(
        &self,
        config: &Self::Config,
        run: &mut Run,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// What is wrong with a run before it begins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentConfigError {
    /// No agent has this id.
    #[error("unknown agent `{id}`; known are {known}")]
    UnknownAgent {
        /// The id.
        id: String,
        /// The ids there are.
        known: String,
    },
    /// A setting cannot be used.
    #[error("agent `{agent}`: setting {reason}")]
    Setting {
        /// The agent.
        agent: String,
        /// Which setting, the rule, and the value.
        reason: String,
    },
    /// An initial message is no chat message.
    #[error("initial message {index}: {reason}")]
    InitialMessage {
        /// Its place, counted from 0.
        index: usize,
        /// What is wrong.
        reason: String,
    },
    /// The run that is to be continued is another one.
    #[error("cannot continue the run: {0}")]
    Continue(String),
    /// A tool server cannot be addressed as given.
    #[error("tool server `{url}`: {reason}")]
    Endpoint {
        /// The address.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

impl From<&AgentConfigError> for Failure {
    fn from(error: &AgentConfigError) -> Self {
        Self::new(Owner::Configuration, "agent_config", error.to_string())
    }
}

/// The agents that a program offers, by id.
#[derive(Clone, Default)]
pub struct Agents {
    agents: Vec<Arc<dyn Registered>>,
    ranges: Ranges,
}

impl Agents {
    /// No agents.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// `loop_agent`, `react_toolbelt_agent` and `single_shot`.
    #[must_use]
    pub fn builtin() -> Self {
        let mut agents = Self::empty();
        agents
            .register(LoopAgent)
            .register(ReactToolbeltAgent)
            .register(SingleShot);
        agents
    }

    /// Refuses settings outside their documented range, and those that do not fit their type. Unless
    /// this is asked for, the former are used as they are given, with a warning, since existing tasks
    /// rely on it, and some of the latter fall back to their default.
    #[must_use]
    pub fn enforce_ranges(mut self) -> Self {
        self.ranges = Ranges::Enforced;
        self
    }

    /// Adds an agent; one with the same id is replaced.
    pub fn register(&mut self, agent: impl Agent) -> &mut Self {
        self.agents.retain(|known| known.id() != agent.id());
        self.agents.push(Arc::new(agent));
        self
    }

    /// The ids, in the order in which the agents were registered.
    pub fn ids(&self) -> impl Iterator<Item = &'static str> {
        self.agents.iter().map(|agent| agent.id())
    }

    /// The JSON Schema of the settings of the agent `id`.
    #[must_use]
    pub fn schema(&self, id: &str) -> Option<Schema> {
        self.find(id).map(|agent| agent.schema())
    }

    /// Finds the agent of `config` and reads its settings.
    ///
    /// # Errors
    /// [`AgentConfigError`] when the id is unknown or a setting is nonsense.
    pub fn resolve(&self, config: &AgentConfig) -> Result<ResolvedAgent, AgentConfigError> {
        let Some(agent) = self.find(&config.agent_config_id) else {
            let known: Vec<String> = self.ids().map(|id| format!("`{id}`")).collect();
            return Err(AgentConfigError::UnknownAgent {
                id: config.agent_config_id.clone(),
                known: known.join(", "),
            });
        };
        Arc::clone(agent).bind(&config.agent_config_values, self.ranges)
    }

    fn find(&self, id: &str) -> Option<&Arc<dyn Registered>> {
        self.agents.iter().find(|agent| agent.id() == id)
    }
}

/// An agent with its settings, ready to run.
pub struct ResolvedAgent {
    pub(crate) id: &'static str,
    pub(crate) timeout: Duration,
    pub(crate) uses_tools: bool,
    /// What is unusual about the settings, for people.
    pub(crate) warnings: Vec<String>,
    drive: Box<Drive>,
}

type Drive = dyn for<'a> Fn(&'a mut Run) -> BoxFuture<'a, Result<Answer, Failure>> + Send + Sync;

impl ResolvedAgent {
    /// The agent's id.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Limit of the whole run.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Settings that are accepted though they are outside the documented range.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn drive<'a>(&'a self, run: &'a mut Run) -> BoxFuture<'a, Result<Answer, Failure>> {
        (self.drive)(run)
    }
}

impl std::fmt::Debug for ResolvedAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResolvedAgent")
            .field("id", &self.id)
            .field("timeout", &self.timeout)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// An [`Agent`] without its type of settings.
trait Registered: Send + Sync {
    fn id(&self) -> &'static str;
    fn schema(&self) -> Schema;
    fn bind(
        self: Arc<Self>,
        values: &Object,
        ranges: Ranges,
    ) -> Result<ResolvedAgent, AgentConfigError>;
}

impl<A: Agent> Registered for A {
    fn id(&self) -> &'static str {
        Agent::id(self)
    }

    fn schema(&self) -> Schema {
        schemars::schema_for!(A::Config)
    }

    fn bind(
        self: Arc<Self>,
        values: &Object,
        ranges: Ranges,
    ) -> Result<ResolvedAgent, AgentConfigError> {
        let id = Agent::id(&*self);
        let read = settings::read::<A::Config>(values, ranges);
        let (config, warnings) = read.map_err(|reason| AgentConfigError::Setting {
            agent: id.to_owned(),
            reason,
        })?;
        Ok(ResolvedAgent {
            id,
            timeout: self.timeout(&config),
            uses_tools: self.uses_tools(),
            warnings,
            drive: {
                let config = Arc::new(config);
                Box::new(move |run| {
                    let (agent, config) = (Arc::clone(&self), Arc::clone(&config));
                    async move { Agent::drive(&*agent, &config, run).await }.boxed()
                })
            },
        })
    }
}
