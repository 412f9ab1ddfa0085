//! One trial: sandbox, world, servers, agent, snapshot, grades.

mod agent;
mod checkpoint;
mod grading;
mod snapshot;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use formats::blobs;
use formats::document::{self, DocumentError};
use formats::owner::{Failure, Owner};
use formats::run::{TrialOutcome, TrialSeconds, TrialState, TrialSummary, file};
use formats::trajectory::{AgentStatus, Trajectory};
use sandbox::{RunningEnvironment, StartRequest};
use tokio_util::sync::CancellationToken;

use crate::budget::{Budgets, TrialBudget};
use crate::ledger::{Ledger, is_settled};
use crate::meter::Meter;
use crate::plan::Plan;
use crate::progress::{News, Progress, Stage};
use crate::run::{RunError, Services};

pub(crate) use checkpoint::{Earlier, Found};

/// Which trial.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrialId {
    /// The task.
    pub task: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
}

impl TrialId {
    /// The folder of the trial in `run_folder`.
    #[must_use]
    pub fn folder(&self, run_folder: &Path) -> PathBuf {
        run_folder.join(self.relative_folder())
    }

    fn relative_folder(&self) -> String {
        format!("{}/{}/{}", file::TRIALS, self.task, self.attempt)
    }

    pub(crate) fn is_of(&self, summary: &TrialSummary) -> bool {
        summary.task == self.task && summary.attempt == self.attempt
    }
}

/// What all trials of a run share.
pub(crate) struct Context<'a> {
    pub(crate) services: &'a Services,
    pub(crate) ledger: &'a Ledger,
    pub(crate) progress: Arc<dyn Progress>,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) run_folder: &'a Path,
    pub(crate) budgets: &'a Budgets,
    /// Whether trajectories keep pictures and long texts in files beside them.
    pub(crate) blobs: bool,
    /// After how many steps the world is saved to go on from.
    pub(crate) checkpoint_steps: Option<NonZeroU32>,
}

/// How long a cancelled trial may take to save the final state.
const SNAPSHOT_AFTER_CANCEL: Duration = Duration::from_secs(10);

/// Runs one trial to its end, from what an `earlier` attempt left where there is such. What goes wrong inside is in the summary's outcome.
///
/// # Errors
/// [`RunError`] only when the run folder cannot be written.
pub(crate) async fn run(
    context: &Context<'_>,
    id: &TrialId,
    plan: &Plan,
    earlier: Option<Earlier>,
) -> Result<TrialSummary, RunError> {
    let folder = id.folder(context.run_folder);
    std::fs::create_dir_all(&folder)
        .map_err(|source| RunError::io("make the trial folder", &folder, source))?;
    context.ledger.record(id, TrialState::Started, None)?;
    let mut trial = Trial {
        context,
        id,
        plan,
        earlier,
        folder,
        meter: Arc::new(Meter::default()),
        seconds: TrialSeconds::default(),
        outcome: TrialOutcome {
            agent_status: None,
            score: None,
            coverage: None,
            failure: None,
        },
        judge_cost: Some(0.0),
        budget: context.budgets.of_trial(),
    };
    let started = Instant::now();
    // Boxed: the future of a whole trial is large, and hundreds of them may wait side by side.
    if let Err(stopped) = Box::pin(trial.work()).await {
        match stopped {
            Stopped::Failure(failure) => trial.outcome.failure = Some(failure),
            Stopped::Run(error) => return Err(error),
        }
    }
    trial.seconds.total = started.elapsed().as_secs_f64();
    let summary = trial.summary();
    if is_settled(&summary.outcome) {
        checkpoint::discard(&trial.folder);
    }
    context
        .ledger
        .record(id, TrialState::Finished, Some(summary.outcome.clone()))?;
    Ok(summary)
}

/// Why a trial stopped early.
enum Stopped {
    /// Something inside it failed: the outcome.
    Failure(Failure),
    /// The run folder cannot be written: the end of the run.
    Run(RunError),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<RunError> for Stopped {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<DocumentError> for Stopped {
    fn from(error: DocumentError) -> Self {
        Self::Run(error.into())
    }
}

/// A trial under way.
struct Trial<'a> {
    context: &'a Context<'a>,
    id: &'a TrialId,
    plan: &'a Plan,
    earlier: Option<Earlier>,
    folder: PathBuf,
    meter: Arc<Meter>,
    seconds: TrialSeconds,
    outcome: TrialOutcome,
    /// Cost of the judge calls so far; `None` once one of them has no known price.
    judge_cost: Option<f64>,
    budget: TrialBudget,
}

impl Trial<'_> {
    async fn work(&mut self) -> Result<(), Stopped> {
        self.stage(Stage::Environment);
        let started = Instant::now();
        let request = StartRequest::new(
            format!("{}-{}", self.id.task, self.id.attempt),
            self.folder.join(file::ENVIRONMENT_LOG),
        )
        .with_needs(self.plan.task.needs.clone())
        .cancelled_by(self.context.cancel.clone());
        let environment = self
            .context
            .services
            .sandbox
            .start(request)
            .await
            .map_err(|error| error.failure())?;
        for remark in environment.remarks() {
            self.remark(remark);
        }
        let result = self.work_in(&environment, started).await;
        let stopped = environment.stop().await;
        for remark in &stopped.remarks {
            self.remark(remark);
        }
        if let Some(kept) = &stopped.kept {
            self.remark(&format!(
                "the environment's folder is kept: {}",
                kept.display()
            ));
        }
        let trajectory = result?;
        if trajectory.status == AgentStatus::Completed {
            self.grade(trajectory).await?;
        }
        Ok(())
    }

    /// The part that needs the environment: everything up to the final snapshot.
    async fn work_in(
        &mut self,
        environment: &RunningEnvironment,
        started: Instant,
    ) -> Result<Trajectory, Stopped> {
        let prepared = tokio::select! {
            prepared = self.prepare(environment) => prepared,
            () = self.context.cancel.cancelled() => Err(cancelled()),
        };
        self.seconds.environment = started.elapsed().as_secs_f64();
        prepared?;
        self.record(TrialState::EnvironmentReady)?;

        self.stage(Stage::Agent);
        let started = Instant::now();
        let trajectory = self.run_agent(&environment.client()).await?;
        self.seconds.agent = started.elapsed().as_secs_f64();
        let path = self.folder.join(file::TRAJECTORY);
        match self.context.blobs {
            true => blobs::write_trajectory(&path, trajectory.clone())?,
            false => document::write("trajectory", &path, &trajectory)?,
        }
        self.record(TrialState::AgentEnded)?;
        self.outcome.agent_status = Some(trajectory.status);
        self.outcome.failure = trajectory.error.clone();

        // What killed the environment explains what the agent ran into.
        if let Err(died) = environment.check().await {
            return Err(died.failure().into());
        }
        self.stage(Stage::Snapshot);
        let started = Instant::now();
        let saved = self.save_snapshot(environment);
        let saved = if self.context.cancel.is_cancelled() {
            tokio::time::timeout(SNAPSHOT_AFTER_CANCEL, saved)
                .await
                .unwrap_or_else(|_| Err(cancelled().into()))
        } else {
            saved.await
        };
        self.seconds.snapshot = started.elapsed().as_secs_f64();
        match saved {
            Ok(()) => self.record(TrialState::SnapshotSaved)?,
            // How the agent ended weighs more than a snapshot that failed after it.
            Err(Stopped::Failure(failure)) if self.outcome.failure.is_some() => {
                self.remark(&format!("no final snapshot: {failure}"));
            }
            Err(stopped) => return Err(stopped),
        }
        Ok(trajectory)
    }

    /// Loads the world and starts the MCP servers.
    async fn prepare(&self, environment: &RunningEnvironment) -> Result<(), Failure> {
        let client = environment.client();
        let world = match &self.earlier {
            Some(earlier) => {
                self.remark(&format!(
                    "goes on from the world and the events of an earlier attempt, step {}",
                    earlier.steps()
                ));
                Some(&earlier.world)
            }
            None => self.plan.task.original_snapshot.as_ref(),
        };
        if let Some(world) = world {
            self.stage(Stage::World);
            client
                .populate_world(world)
                .await
                .map_err(|error| error.failure())?;
        }
        self.stage(Stage::Servers);
        let mut apps = self.plan.task.apps.clone();
        for remark in environment.rewrite(&mut apps) {
            self.remark(&remark);
        }
        client.apps(&apps).await.map_err(|error| error.failure())?;
        Ok(())
    }

    fn stage(&self, stage: Stage) {
        self.context.progress.news(self.id, News::Stage(stage));
    }

    fn remark(&self, remark: &str) {
        self.context.progress.news(self.id, News::Remark(remark));
    }

    fn record(&self, state: TrialState) -> Result<(), RunError> {
        self.context.ledger.record(self.id, state, None)
    }

    fn summary(&self) -> TrialSummary {
        let usage = self.meter.usage();
        TrialSummary {
            task: self.id.task.clone(),
            attempt: self.id.attempt,
            folder: self.id.relative_folder(),
            model: self.plan.model.name().to_owned(),
            outcome: self.outcome.clone(),
            steps: usage.steps,
            tool_calls: usage.tool_calls,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cost_usd: usage
                .known_cost()
                .zip(self.judge_cost)
                .map(|(agent, judge)| agent + judge),
            seconds: self.seconds,
        }
    }
}

/// The failure of a trial that the user ended.
fn cancelled() -> Failure {
    Failure::new(Owner::Cancelled, "cancelled", "the trial was cancelled")
}
