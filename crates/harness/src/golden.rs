//! A task's verifiers on a state that is known to be right, without an agent.

use std::path::{Path, PathBuf};

use formats::grades::VerifierResult;
use grading::GradeOptions;
use tokio_util::sync::CancellationToken;

use crate::grade;
use crate::plan;
use crate::run::{RunError, Services};
use crate::world::InitialWorld;

/// Files and folders of a task whose names begin so are correct end states.
const GOLDEN: &str = "golden_snapshot";

/// The correct end states of the task at `folder`, by name.
pub(crate) fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(GOLDEN))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Judges the verifiers of the task at `folder` as if its agent had left `state`: an archive or a
/// folder. Verifiers that look at the answer are left out; there is no score. A task whose
/// verifiers do not pass on a state that is right cannot be passed by an agent either.
///
/// # Errors
/// [`RunError`] where the task cannot be run at all, or the state is not there.
pub async fn check_golden_state(
    folder: &Path,
    state: &Path,
    services: &Services,
    cancel: &CancellationToken,
    on_result: &(dyn Fn(&VerifierResult) + Send + Sync),
) -> Result<Vec<VerifierResult>, RunError> {
    let plan = plan::unchanged(folder, services)?;
    std::fs::metadata(state).map_err(|source| RunError::io("read", state, source))?;
    let initial = InitialWorld::of(&plan.task)?;
    let input = grade::input(
        &plan.task,
        initial.path().to_owned(),
        state.to_owned(),
        grading::no_trajectory(),
    );
    let options = GradeOptions {
        task_folder: std::path::absolute(&plan.task.folder).ok(),
        ..services.grading.clone()
    };
    let judged = grading::check_golden_state(
        &services.registry,
        input,
        &plan.models,
        options,
        cancel.clone(),
        on_result,
    );
    Ok(Box::pin(judged).await)
}
