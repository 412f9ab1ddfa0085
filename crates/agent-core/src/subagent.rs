//! Agents inside agents: one that a run begins, and one that is offered as a tool.

use std::sync::Arc;

use formats::Object;
use formats::agent::AgentConfig;
use formats::chat::{Message, ToolDefinition};
use formats::event::{Event, EventKind};
use formats::trajectory::{AgentStatus, Trajectory};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::driver::run;
use crate::events::{Observer, Recorder};
use crate::input::RunInput;
use crate::registry::{AgentConfigError, Agents};
use crate::run::Run;
use crate::tools::{Tool, ToolOutput, ToolSources};

/// Most steps of a subagent whose settings do not say otherwise (`spec/agents.md` §19).
pub const SUBAGENT_STEPS: u64 = 50;

/// What a run needs to begin further ones.
pub(crate) struct Surroundings {
    pub(crate) agents: Agents,
    pub(crate) sources: ToolSources,
    pub(crate) cancel: CancellationToken,
}

/// An agent that a run begins for a part of its work (`spec/agents.md` §19).
#[derive(Debug, Clone)]
pub struct Subagent {
    /// The name under which its events stand in those of the run.
    pub name: String,
    /// The agent's id.
    pub agent: String,
    /// Its instructions.
    pub system: String,
    /// What follows the instructions.
    pub messages: Vec<Message>,
    /// Its settings, put over `{"max_steps": 50}`.
    pub settings: Object,
}

impl Run {
    /// Runs another agent to its end: with the model, the parameters and the tools of this run, and
    /// nothing of its conversation. It has a session of its own with the tool servers.
    ///
    /// Its events are told as [`EventKind::Subagent`], its usage stands under `subagents` in the
    /// usage of this run; the answer is in the trajectory that is returned. It ends when this run
    /// is cancelled.
    ///
    /// # Errors
    /// [`AgentConfigError`] when there is no such agent or its settings are nonsense.
    pub async fn run_subagent(
        &mut self,
        subagent: Subagent,
    ) -> Result<Trajectory, AgentConfigError> {
        let mut settings = Object::from_iter([("max_steps".to_owned(), json!(SUBAGENT_STEPS))]);
        settings.extend(subagent.settings);
        let instructions = Message::system(subagent.system);
        let messages = std::iter::once(&instructions).chain(&subagent.messages);
        let input = RunInput {
            trajectory_id: self.context.trajectory_id.clone(),
            initial_messages: messages.map(|message| json!(message)).collect(),
            extra_args: self.context.extra_args.clone(),
            tools: self.surroundings.sources.clone(),
            config: AgentConfig {
                agent_config_id: subagent.agent.clone(),
                agent_name: subagent.name.clone(),
                agent_config_values: settings,
            },
            cancel: self.surroundings.cancel.child_token(),
            observer: Arc::new(Inside {
                recorder: Arc::clone(&self.recorder),
                name: subagent.name.clone(),
            }),
            ..RunInput::new(self.model.clone())
        };
        let agents = self.surroundings.agents.clone();
        let running: BoxFuture<'_, _> = run(&agents, input).boxed();
        let trajectory = running.await?;
        self.usage.add_subagent(json!({
            "name": subagent.name,
            "agent_config_id": subagent.agent,
            "status": trajectory.status,
            "usage": trajectory.usage,
        }));
        Ok(trajectory)
    }
}

/// Tells what a subagent does as a part of what its run does.
struct Inside {
    recorder: Arc<Recorder>,
    name: String,
}

impl Observer for Inside {
    fn event(&self, event: &Event) {
        self.recorder.emit(EventKind::Subagent {
            name: self.name.clone(),
            event: Box::new(event.clone()),
        });
    }
}

/// An agent as a tool of another one: each call is a run of its own, whose answer is the result.
///
/// The model gives it a `task` in words. A run that does not complete is a failed call that says
/// why.
pub struct AgentTool {
    definition: ToolDefinition,
    agents: Agents,
    input: Box<dyn Fn() -> RunInput + Send + Sync>,
}

impl AgentTool {
    /// An agent under `name`. `description` tells the model what it is good for; `input` makes the
    /// run of one call (model, agent, tools, instructions, observer), to which the task is added as
    /// the last message. When the call runs out of time or is cancelled, the run is dropped.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        agents: Agents,
        input: impl Fn() -> RunInput + Send + Sync + 'static,
    ) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {"task": {
                "type": "string",
                "description": "What to do, with everything that has to be known for it: the other agent sees nothing of this conversation."
            }},
            "required": ["task"]
        });
        Self {
            definition: ToolDefinition::new(name, description, parameters),
            agents,
            input: Box::new(input),
        }
    }
}

impl Tool for AgentTool {
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call(&self, arguments: Object) -> BoxFuture<'_, Result<ToolOutput, String>> {
        async move {
            let task = match arguments.get("task").and_then(Value::as_str) {
                Some(task) if !task.trim().is_empty() => task.to_owned(),
                _ => return Err("`task` must be a text that says what to do".to_owned()),
            };
            let trajectory = run(&self.agents, (self.input)().user(task))
                .await
                .map_err(|error| error.to_string())?;
            match (trajectory.status, trajectory.final_answer) {
                (AgentStatus::Completed, Some(answer)) => Ok(ToolOutput::text(answer)),
                (status, _) => Err(format!(
                    "the agent ended {status}{}",
                    trajectory
                        .error
                        .map_or_else(String::new, |error| format!(": {}", error.message))
                )),
            }
        }
        .boxed()
    }
}
