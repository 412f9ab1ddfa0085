//! A run: many trials, side by side, in one folder.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use agent_core::Agents;
use formats::agent::AgentConfig;
use formats::document;
use formats::owner::Owner;
use formats::run::{FORMAT_VERSION, RunRecord, Summary, TaskRecord, TrialSummary, file};
use futures::StreamExt as _;
use grading::{GradeOptions, Registry};
use llm_client::{BudgetLimits, Models};
use sandbox::Sandbox;
use tokio_util::sync::CancellationToken;

use crate::budget::Budgets;
use crate::ledger::{History, Ledger};
use crate::plan::{Plan, plan};
use crate::progress::{News, Progress};
use crate::summary::summarize;
use crate::task::{Task, TaskError};
use crate::trial::{self, TrialId};

/// What is wanted.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// The task folders.
    pub tasks: Vec<PathBuf>,
    /// The run folder; it is made if needed.
    pub output: PathBuf,
    /// Takes the place of the models that the tasks name.
    pub model: Option<String>,
    /// Takes the place of the judges that the tasks name.
    pub judge_model: Option<String>,
    /// Takes the place of the agents that the tasks name.
    pub agent: Option<AgentConfig>,
    /// Attempts per task, at least 1.
    pub attempts: u32,
    /// Trials at the same time, at least 1.
    pub concurrency: usize,
    /// Whether to go on with the run that `output` holds.
    pub resume: bool,
    /// What models may cost.
    pub budget: RunBudget,
    /// Where `services.models` record their exchanges, if they do; written into `run.json`.
    pub recording: Option<PathBuf>,
    /// After how many steps of an agent its world is saved, so that the trial can go on from there
    /// when it is interrupted and the run is resumed. Otherwise it begins anew.
    pub checkpoint_steps: Option<NonZeroU32>,
    /// Whether trajectories keep pictures and long texts in files beside them
    /// ([`formats::blobs`]).
    pub blobs: bool,
}

/// What the models of a run may cost, agents and judges together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunBudget {
    /// All trials of the run. Once a call is refused for it, no further trial begins.
    pub run: BudgetLimits,
    /// Each trial.
    pub trial: BudgetLimits,
}

/// A run that came to its end.
#[derive(Debug, Clone)]
pub struct Ran {
    /// What came of it, which is also in the run folder.
    pub summary: Summary,
    /// The tasks as they were read, by name.
    pub tasks: BTreeMap<String, Task>,
}

/// What a run works with.
pub struct Services {
    /// Finds models by name.
    pub models: Models,
    /// The agents there are.
    pub agents: Agents,
    /// The evals and scoring methods there are.
    pub registry: Registry,
    /// Where environments run.
    pub sandbox: Arc<dyn Sandbox>,
    /// Limits and choices of grading each trial.
    pub grading: GradeOptions,
}

/// Why a run could not begin or not go on. Failures of single trials are in the summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Tasks, models or the request itself are not usable; nothing was started.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A document of the run folder cannot be read or written.
    #[error(transparent)]
    Document(#[from] document::DocumentError),
    /// The run folder holds something else.
    #[error("{reason}: `{path}`", path = .path.display())]
    Folder {
        /// What is in the way, and what to do.
        reason: String,
        /// The run folder.
        path: PathBuf,
    },
    /// A file of the run folder cannot be used.
    #[error("cannot {action} `{path}`: {source}", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl RunError {
    pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Who has to act.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match self {
            Self::Task(error) => error.owner(),
            Self::Document(error) => error.owner(),
            Self::Folder { .. } => Owner::Configuration,
            Self::Io { .. } => Owner::Infrastructure,
        }
    }
}

/// Runs everything that `request` asks for. Everything that can be known before is checked before anything is started.
///
/// When `cancel` fires, running trials save what they have and end; the others do not begin.
///
/// # Errors
/// [`RunError`] when the run cannot begin, or its folder cannot be written.
pub async fn run(
    request: &RunRequest,
    services: &Services,
    progress: Arc<dyn Progress>,
    cancel: &CancellationToken,
) -> Result<Ran, RunError> {
    let started = Instant::now();
    let plans = plan(request, services)?;
    let folder = &request.output;
    let record = open_folder(request, services, &plans)?;
    let ledger = Ledger::open(&folder.join(file::LEDGER))?;
    let history = History::read(&folder.join(file::LEDGER))?;
    let earlier = earlier_summaries(folder);

    let budgets = Budgets::new(request.budget);
    let mut kept = Vec::new();
    let mut wanted = Vec::new();
    for (order, (plan, attempt)) in plans
        .iter()
        .flat_map(|plan| (1..=request.attempts).map(move |attempt| (plan, attempt)))
        .enumerate()
    {
        let id = TrialId {
            task: plan.task.name.clone(),
            attempt,
        };
        let settled = history.settled(&id).is_some();
        match earlier.iter().find(|trial| settled && id.is_of(trial)) {
            Some(summary) => {
                progress.news(&id, News::Kept(summary));
                budgets.count(summary);
                kept.push((order, summary.clone()));
            }
            None => {
                let trial_folder = id.folder(folder);
                let aside = match history.has_begun(&id) {
                    true => set_aside(&trial_folder)?,
                    false => None,
                };
                let aside = aside.filter(|_| history.may_go_on(&id));
                wanted.push((order, id, plan, aside));
            }
        }
    }

    let write_summary = |done: &[(usize, TrialSummary)]| {
        let mut trials = done.to_vec();
        trials.sort_by_key(|(order, _)| *order);
        let trials = trials.into_iter().map(|(_, trial)| trial).collect();
        let mut summary = summarize(
            &record.run_id,
            now(),
            started.elapsed().as_secs_f64(),
            trials,
        );
        summary.budget = budgets.summary();
        document::write("summary", &folder.join(file::SUMMARY), &summary).map(|()| summary)
    };
    let mut done = kept;
    let mut running = futures::stream::iter(wanted)
        .map(|(order, id, plan, aside)| {
            let context = trial::Context {
                services,
                ledger: &ledger,
                progress: Arc::clone(&progress),
                cancel,
                run_folder: folder,
                budgets: &budgets,
                blobs: request.blobs,
                checkpoint_steps: request.checkpoint_steps,
            };
            Box::pin(async move {
                // A trial that has not begun when the run is cancelled leaves no trace.
                if cancel.is_cancelled() || context.budgets.stops() {
                    return Ok(None);
                }
                let found = match aside {
                    Some(aside) => trial::Earlier::take(&aside, &id.folder(folder))?,
                    None => trial::Found::Nothing,
                };
                let earlier = match found {
                    trial::Found::Earlier(earlier) => Some(earlier),
                    trial::Found::Nothing => None,
                    trial::Found::Unusable(reason) => {
                        let remark = format!(
                            "begins anew: the saved world of an earlier attempt cannot be used: {reason}"
                        );
                        context.progress.news(&id, News::Remark(&remark));
                        None
                    }
                };
                let summary = trial::run(&context, &id, plan, earlier).await?;
                context.progress.news(&id, News::Finished(&summary));
                Ok::<_, RunError>(Some((order, summary)))
            })
        })
        .buffer_unordered(request.concurrency.max(1));
    while let Some(trial) = running.next().await {
        done.extend(trial?);
        // Rewritten after each trial, so that a kill loses no finished one.
        write_summary(&done)?;
    }
    drop(running);
    let summary = write_summary(&done)?;
    let tasks = plans
        .into_iter()
        .map(|plan| (plan.task.name.clone(), plan.task));
    Ok(Ran {
        summary,
        tasks: tasks.collect(),
    })
}

/// Makes the run folder with its `run.json`, or checks that an earlier run asked the same.
fn open_folder(
    request: &RunRequest,
    services: &Services,
    plans: &[Plan],
) -> Result<RunRecord, RunError> {
    let folder = &request.output;
    let path = folder.join(file::RUN);
    let earlier: Option<RunRecord> = path
        .exists()
        .then(|| document::read("run record", &path))
        .transpose()?;
    let refuse = |reason: String| {
        Err(RunError::Folder {
            reason,
            path: folder.clone(),
        })
    };
    let record = RunRecord {
        format_version: FORMAT_VERSION,
        run_id: folder.file_name().map_or_else(
            || "run".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        started_at: now(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        tasks: plans
            .iter()
            .map(|plan| Ok(plan.record()?))
            .collect::<Result<_, RunError>>()?,
        attempts: request.attempts,
        model: request.model.clone(),
        judge_model: request.judge_model.clone(),
        agent: request.agent.clone(),
        recording: request
            .recording
            .as_ref()
            .map(|path| path.display().to_string()),
        sandbox: services.sandbox.name(),
    };
    match earlier {
        None if request.resume => refuse("there is no run to resume".to_owned()),
        None => {
            document::write("run record", &path, &record)?;
            Ok(record)
        }
        Some(_) if !request.resume => {
            refuse("the folder holds a run already; resume it or choose another one".to_owned())
        }
        Some(earlier) => match difference(&earlier, &record) {
            Some(what) => refuse(format!(
                "the run in the folder had {what}; it cannot be resumed"
            )),
            None => {
                // The number of attempts may grow.
                document::write(
                    "run record",
                    &path,
                    &RunRecord {
                        attempts: record.attempts,
                        ..earlier.clone()
                    },
                )?;
                Ok(earlier)
            }
        },
    }
}

/// What makes `now` another run than `earlier`, in words; attempts may differ.
fn difference(earlier: &RunRecord, now: &RunRecord) -> Option<String> {
    let word = |value: &Option<String>| value.as_deref().unwrap_or("none").to_owned();
    if earlier.format_version != now.format_version {
        return Some(format!("format version {}", earlier.format_version));
    }
    if earlier.model != now.model {
        return Some(format!(
            "`--model` {}, not {}",
            word(&earlier.model),
            word(&now.model)
        ));
    }
    if earlier.judge_model != now.judge_model {
        return Some(format!(
            "`--judge-model` {}, not {}",
            word(&earlier.judge_model),
            word(&now.judge_model)
        ));
    }
    if earlier.agent != now.agent {
        return Some("another `--agent`".to_owned());
    }
    let names = |tasks: &[TaskRecord]| -> Vec<String> {
        tasks.iter().map(|task| task.task.clone()).collect()
    };
    if names(&earlier.tasks) != names(&now.tasks) {
        return Some(format!("the tasks {}", names(&earlier.tasks).join(", ")));
    }
    earlier
        .tasks
        .iter()
        .zip(&now.tasks)
        .find(|(before, after)| before.sha256 != after.sha256)
        .map(|(before, _)| format!("other files in task {}", before.task))
}

/// The trials of the summary in `folder`, if there is a readable one.
fn earlier_summaries(folder: &Path) -> Vec<TrialSummary> {
    document::read::<Summary>("summary", &folder.join(file::SUMMARY))
        .map(|summary| summary.trials)
        .unwrap_or_default()
}

/// Moves the folder of an interrupted trial out of the way, and tells to where; earlier attempts are
/// kept.
fn set_aside(folder: &Path) -> Result<Option<PathBuf>, RunError> {
    if !folder.exists() {
        return Ok(None);
    }
    let base = folder.as_os_str().to_owned();
    let free = (1..)
        .map(|number| {
            let mut name = base.clone();
            name.push(format!(".interrupted-{number}"));
            PathBuf::from(name)
        })
        .find(|path| !path.exists())
        .unwrap_or_else(|| folder.to_owned());
    std::fs::rename(folder, &free).map_err(|source| RunError::io("set aside", folder, source))?;
    Ok(Some(free))
}

/// Checks that no two tasks share a name, which is also the name of their folder.
pub(crate) fn distinct_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), TaskError> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(TaskError::new(format!(
                "two tasks are named `{name}`; results are kept by name, so run them one by one"
            )));
        }
    }
    Ok(())
}

/// The present time, RFC 3339 in UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().to_string()
}
