//! The agent's part of a trial.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use agent_core::{BetweenSteps, Checkpoint, EventLog, Observer, RunInput, ToolSources};
use formats::event::Event;
use formats::owner::{Failure, Owner};
use formats::run::file;
use formats::trajectory::Trajectory;

use sandbox::EnvironmentClient;

use super::checkpoint::Saver;
use super::{Stopped, Trial, TrialId};
use crate::meter::Meter;
use crate::progress::{News, Progress};
use crate::run::RunError;

impl Trial<'_> {
    /// Runs the agent against the gateway of `environment`.
    pub(super) async fn run_agent(
        &self,
        environment: &EnvironmentClient,
    ) -> Result<Trajectory, Stopped> {
        let path = self.folder.join(file::EVENTS);
        let log = EventLog::create(&path)
            .map_err(|source| RunError::io("write the events", &path, source))?;
        let log = Arc::new(log);
        let earlier = self.earlier.as_ref();
        let checkpoint = earlier.and_then(|earlier| Checkpoint::from_events(&earlier.events));
        for event in earlier.iter().flat_map(|earlier| &earlier.events) {
            log.event(event);
            self.meter.count(event);
        }
        let task = &self.plan.task;
        let input = RunInput {
            trajectory_id: format!("{}-{}", self.id.task, self.id.attempt),
            initial_messages: task.initial_messages.clone(),
            extra_args: self.plan.extra_args.clone(),
            tools: ToolSources::gateway(environment.mcp_url()),
            config: task.agent.clone(),
            cancel: self.context.cancel.child_token(),
            observer: Arc::new(Follower {
                trial: self.id.clone(),
                log: Arc::clone(&log),
                meter: Arc::clone(&self.meter),
                progress: Arc::clone(&self.context.progress),
            }),
            between_steps: self.context.checkpoint_steps.map(|every| {
                Arc::new(Saver {
                    client: environment.clone(),
                    folder: self.folder.clone(),
                    every,
                    log: Arc::clone(&log),
                    trial: self.id.clone(),
                    progress: Arc::clone(&self.context.progress),
                    asked: AtomicU32::new(0),
                }) as Arc<dyn BetweenSteps>
            }),
            ..RunInput::new(self.budget.model(&self.plan.model))
        };
        let input = match checkpoint {
            Some(checkpoint) => input.continue_from(checkpoint),
            None => input,
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
