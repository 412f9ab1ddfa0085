//! Grading a trial: from the files of its folder to `grades.json`.

use std::path::{Path, PathBuf};

use formats::document;
use formats::grades::{Grades, GradingStatus, VerifierResult};
use formats::owner::{Failure, Owner};
use formats::run::{TrialOutcome, file};
use formats::trajectory::Trajectory;
use grading::{GradeOptions, GradingInput};
use llm_client::Models;
use tokio_util::sync::CancellationToken;

use crate::golden;
use crate::plan::Plan;
use crate::run::{RunError, Services};
use crate::task::Task;
use crate::world::InitialWorld;

/// Grades the trial whose files are in `folder`, and writes `grades.json` there.
///
/// With `only`, results of these grades that are no errors are kept. The judges are among `models`.
/// A cancelled grading of all verifiers does not take the place of grades that are there.
#[expect(
    clippy::too_many_arguments,
    reason = "two callers; each argument is another thing"
)]
pub(crate) async fn grade_folder(
    services: &Services,
    plan: &Plan,
    models: &Models,
    folder: &Path,
    trajectory: Trajectory,
    only: Option<Grades>,
    cancel: &CancellationToken,
    on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
) -> Result<Grades, RunError> {
    let initial = InitialWorld::of(&plan.task)?;
    let input = input(
        &plan.task,
        initial.path().to_owned(),
        folder.join(file::FINAL_SNAPSHOT),
        trajectory,
    );
    let adds = only.is_some();
    let options = GradeOptions {
        only,
        // Programs of verifiers run elsewhere.
        task_folder: std::path::absolute(&plan.task.folder).ok(),
        ..services.grading.clone()
    };
    let grades = grading::grade_with(
        &services.registry,
        input,
        models,
        options,
        cancel.clone(),
        on_result,
    )
    .await;
    let path = folder.join(file::GRADES);
    if adds || grades.grading_run_status != GradingStatus::Cancelled || !path.exists() {
        document::write("grades", &path, &grades)?;
    }
    Ok(grades)
}

/// What grading `task` needs, for the world at `final_snapshot`.
pub(crate) fn input(
    task: &Task,
    initial_snapshot: PathBuf,
    final_snapshot: PathBuf,
    trajectory: Trajectory,
) -> GradingInput {
    GradingInput {
        grading_run_id: format!("gr_{}", uuid::Uuid::new_v4().simple()),
        trajectory_id: task.name.clone(),
        initial_snapshot,
        final_snapshot,
        golden_snapshots: golden::snapshots(&task.folder),
        trajectory,
        settings: task.grading_settings.clone(),
        verifiers: task.verifiers.clone(),
        eval_configs: task.eval_configs.clone(),
        scoring: task.scoring.clone(),
    }
}

/// Puts what `grades` say into the outcome of their trial. A task without verifiers has no score.
pub(crate) fn apply(grades: &Grades, outcome: &mut TrialOutcome) {
    outcome.coverage = grades.coverage;
    outcome.failure = failure(grades);
    // Verifiers that were left out make no score.
    let counts = grades.verifier_results.iter().any(|r| !r.skipped());
    let judged = counts && outcome.failure.is_none();
    outcome.score = judged.then_some(grades.scoring_results.final_score);
}

/// The failure that keeps `grades` from being a score, if there is one.
fn failure(grades: &Grades) -> Option<Failure> {
    let owner = match grades.grading_run_status {
        GradingStatus::Completed => return None,
        GradingStatus::Cancelled => Owner::Cancelled,
        _ => owner_of_errors(grades),
    };
    let message = grades
        .scoring_results
        .scoring_method_result_values
        .get("error")
        .and_then(|error| error.as_str())
        .unwrap_or("grading did not complete")
        .to_owned();
    Some(Failure::new(owner, "grading", message).retryable(true))
}

/// Whose the errors of single verifiers are: the configuration's where one of them is, since no
/// repetition mends that, else the infrastructure's.
fn owner_of_errors(grades: &Grades) -> Owner {
    let configuration = grades.verifier_results.iter().any(|result| {
        let owner = result.verifier_result_values.get("error_owner");
        owner.and_then(|owner| owner.as_str()) == Some(Owner::Configuration.as_str())
    });
    if configuration {
        Owner::Configuration
    } else {
        Owner::Infrastructure
    }
}
