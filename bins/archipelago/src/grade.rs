//! `archipelago grade`.

use std::io::Write as _;
use std::process::ExitCode;

use formats::grades::{GradingStatus, VerifierStatus};
use formats::owner::Owner;
use harness::RegradeRequest;
use program::Refused;
use tokio_util::sync::CancellationToken;

use crate::documents;
use crate::flags::{GradeFlags, Only};
use crate::services;

/// Grades trials again, prints what came of it, and returns the exit code.
pub(crate) async fn grade(flags: &GradeFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let models = services::models(&variables, &flags.models)?;
    let mut services = services::services(models, services::process_sandbox()?);
    services.grading = flags.grading.options(&services.models)?;
    let request = RegradeRequest {
        folder: flags.folder.clone(),
        only_errors: flags.only == Only::Errors,
        judge_model: flags.judge_model.clone(),
    };
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let regraded = harness::regrade(&request, &services, &cancel, &|trial, result| {
        let judged = match result.status {
            VerifierStatus::Error => format!("could not be judged: {}", result.message),
            VerifierStatus::Ok => format!("score {}", result.score),
        };
        program::say(format_args!(
            "{}/{}  {}: {}",
            trial.task,
            trial.attempt,
            report::plain(&result.verifier_id),
            report::plain(&judged)
        ));
    })
    .await
    .map_err(|error| Refused::new(error.owner(), error))?;
    if regraded.grades.is_empty() && !cancel.is_cancelled() {
        return Err(Refused::configuration(format_args!(
            "`{}` has no completed trial to grade",
            flags.folder.display()
        )));
    }
    let verifiers = regraded
        .tasks
        .into_iter()
        .map(|(name, task)| (name, task.verifiers))
        .collect();
    documents::write_pages(&regraded.run_folder, &regraded.summary, &verifiers);

    let mut code = ExitCode::SUCCESS;
    let mut stdout = std::io::stdout().lock();
    for (trial, grades) in &regraded.grades {
        let coverage = grades.coverage.unwrap_or_default();
        let (judged, total) = (coverage.judged, coverage.total);
        let result = if grades.grading_run_status == GradingStatus::Completed {
            let score = grades.scoring_results.final_score;
            format!("score {score}  ({judged} of {total} verifiers judged)")
        } else {
            code = ExitCode::from(Owner::Model.exit_code());
            format!(
                "no score: {judged} of {total} verifiers judged, errors: {}",
                coverage.errors
            )
        };
        // A closed stdout only means that nobody reads; the grades are on disk.
        let _ = writeln!(stdout, "{}/{}  {result}", trial.task, trial.attempt);
    }
    if cancel.is_cancelled() {
        program::say("grading was cancelled; trials without a line here keep their former grades");
        code = ExitCode::from(Owner::Cancelled.exit_code());
    }
    Ok(code)
}
