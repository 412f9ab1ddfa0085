//! The agent's part of a trial.

use std::sync::Arc;

use agent_core::{EventLog, Observer, RunInput, ToolSources};
use formats::event::Event;
use formats::owner::{Failure, Owner};
use formats::run::file;
use formats::trajectory::Trajectory;

use super::{Stopped, Trial, TrialId};
use crate::meter::Meter;
use crate::progress::{News, Progress};
use crate::run::RunError;

impl Trial<'_> {
    /// Runs the agent against the environment's gateway at `mcp_url`.
    pub(super) async fn run_agent(&self, mcp_url: &str) -> Result<Trajectory, Stopped> {
        let path = self.folder.join(file::EVENTS);
        let log = EventLog::create(&path)
            .map_err(|source| RunError::io("write the events", &path, source))?;
        let log = Arc::new(log);
        let task = &self.plan.task;
        let input = RunInput {
            trajectory_id: format!("{}-{}", self.id.task, self.id.attempt),
            initial_messages: task.initial_messages.clone(),
            extra_args: self.plan.extra_args.clone(),
            tools: ToolSources::gateway(mcp_url),
            config: task.agent.clone(),
            cancel: self.context.cancel.child_token(),
            observer: Arc::new(Follower {
                trial: self.id.clone(),
                log: Arc::clone(&log),
                meter: Arc::clone(&self.meter),
                progress: Arc::clone(&self.context.progress),
            }),
            ..RunInput::new(self.budget.model(&self.plan.model))
        };
        let trajectory = agent_core::run(&self.context.services.agents, input)
            .await
            .map_err(|error| {
                Failure::new(Owner::Configuration, "agent_config", error.to_string())
            })?;
        log.finish()
            .map_err(|source| RunError::io("write the events", &path, source))?;
        Ok(trajectory)
    }
}

/// Passes events on to the log, the meter and whoever follows the run.
struct Follower {
    trial: TrialId,
    log: Arc<EventLog>,
    meter: Arc<Meter>,
    progress: Arc<dyn Progress>,
}

impl Observer for Follower {
    fn event(&self, event: &Event) {
        self.log.event(event);
        self.meter.count(event);
        self.progress.news(&self.trial, News::Agent(event));
    }
}
