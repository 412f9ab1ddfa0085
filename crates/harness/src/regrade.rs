//! Grading the trials of a run again, from what they left on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use formats::blobs;
use formats::document;
use formats::grades::{Grades, GradingStatus, VerifierResult};
use formats::run::{FORMAT_VERSION, RunRecord, Summary, file};
use formats::trajectory::AgentStatus;
use tokio_util::sync::CancellationToken;

use crate::grade;
use crate::plan::{Overrides, Plan, plan_task};
use crate::run::{RunError, Services};
use crate::summary::summarize;
use crate::task::{Task, TaskError};
use crate::trial::TrialId;

/// What is graded again.
#[derive(Debug, Clone)]
pub struct RegradeRequest {
    /// A run folder, or the folder of one trial in one.
    pub folder: PathBuf,
    /// Only the verifiers that ended in an error.
    pub only_errors: bool,
    /// Takes the place of the judge that the run used.
    pub judge_model: Option<String>,
}

/// A run after some of its trials were graded again.
#[derive(Debug, Clone)]
pub struct Regraded {
    /// The run folder.
    pub run_folder: PathBuf,
    /// The run's new summary, which is also on disk.
    pub summary: Summary,
    /// The tasks of the run, as far as trials of them were graded, by name.
    pub tasks: BTreeMap<String, Task>,
    /// The new grades, which are also on disk.
    pub grades: Vec<(TrialId, Grades)>,
}

/// Grades completed trials again and brings `summary.json` up to date. Neither the model nor an
/// environment is needed: the trajectory, the final snapshot and the task folder are.
///
/// A trial that is being graded when `cancel` comes keeps its former grades, unless only its errors
/// are graded again: then what was judged until then is added to them.
///
/// # Errors
/// [`RunError`] when the folder holds no run, a task is not readable any more, or a file cannot be
/// written.
pub async fn regrade(
    request: &RegradeRequest,
    services: &Services,
    cancel: &CancellationToken,
    on_result: &(dyn Fn(&TrialId, &VerifierResult) + Send + Sync),
) -> Result<Regraded, RunError> {
    let (run_folder, only_trial) = locate(&request.folder)?;
    let record: RunRecord = document::read("run record", &run_folder.join(file::RUN))?;
    let summary: Summary = document::read("summary", &run_folder.join(file::SUMMARY))?;
    if record.format_version != FORMAT_VERSION {
        return Err(RunError::Folder {
            reason: format!(
                "the run was written in format version {}, this program reads {FORMAT_VERSION}",
                record.format_version
            ),
            path: run_folder,
        });
    }
    let overrides = Overrides {
        model: record.model.as_deref(),
        judge_model: request
            .judge_model
            .as_deref()
            .or(record.judge_model.as_deref()),
        agent: None,
    };
    let mut trials = summary.trials.clone();
    let mut tasks = BTreeMap::new();
    let mut all_grades = Vec::new();
    for trial in &mut trials {
        let id = TrialId {
            task: trial.task.clone(),
            attempt: trial.attempt,
        };
        let folder = id.folder(&run_folder);
        if cancel.is_cancelled() {
            // The trials that are left keep the grades that they have.
            break;
        }
        let wanted = only_trial.as_ref().is_none_or(|only| *only == folder);
        if !wanted || trial.outcome.agent_status != Some(AgentStatus::Completed) {
            continue;
        }
        let path = record
            .tasks
            .iter()
            .find(|task| task.task == id.task)
            .map(|task| PathBuf::from(&task.path))
            .ok_or_else(|| {
                TaskError::new(format!("`{}` does not name task `{}`", file::RUN, id.task))
            })?;
        let plan = plan_task(Task::load(&path)?, overrides, services)?;
        let grades =
            regrade_trial(request, services, &plan, &id, &folder, cancel, on_result).await?;
        if grades.grading_run_status == GradingStatus::Cancelled && !request.only_errors {
            // Its former grades still stand.
            break;
        }
        grade::apply(&grades, &mut trial.outcome);
        tasks.insert(id.task.clone(), plan.task);
        all_grades.push((id, grades));
    }
    let budget = summary.budget;
    let mut summary = summarize(
        &summary.run_id,
        summary.finished_at,
        summary.duration,
        trials,
    );
    summary.budget = budget;
    document::write("summary", &run_folder.join(file::SUMMARY), &summary)?;
    Ok(Regraded {
        run_folder,
        summary,
        tasks,
        grades: all_grades,
    })
}

async fn regrade_trial(
    request: &RegradeRequest,
    services: &Services,
    plan: &Plan,
    id: &TrialId,
    folder: &Path,
    cancel: &CancellationToken,
    on_result: &(dyn Fn(&TrialId, &VerifierResult) + Send + Sync),
) -> Result<Grades, RunError> {
    let trajectory = blobs::read_trajectory(&folder.join(file::TRAJECTORY))?;
    let path = folder.join(file::GRADES);
    let only = (request.only_errors && path.exists())
        .then(|| document::read("grades", &path))
        .transpose()?;
    grade::grade_folder(
        services,
        plan,
        &plan.models,
        folder,
        trajectory,
        only,
        cancel,
        &|result| {
            on_result(id, result);
        },
    )
    .await
}

/// The run folder of `folder`, and the trial folder if it is one.
fn locate(folder: &Path) -> Result<(PathBuf, Option<PathBuf>), RunError> {
    if folder.join(file::RUN).is_file() {
        return Ok((folder.to_owned(), None));
    }
    // <run>/trials/<task>/<n>
    let run = folder
        .canonicalize()
        .ok()
        .and_then(|trial| Some(trial.ancestors().nth(3)?.to_owned()))
        .filter(|run| run.join(file::RUN).is_file());
    match run {
        Some(run) => {
            let trial = folder
                .canonicalize()
                .map_err(|source| RunError::io("find", folder, source))?;
            Ok((run, Some(trial)))
        }
        None => Err(RunError::Folder {
            reason: format!(
                "neither a run folder (no `{}`) nor a trial of one",
                file::RUN
            ),
            path: folder.to_owned(),
        }),
    }
}
