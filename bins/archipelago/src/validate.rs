//! `archipelago validate`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use formats::grades::VerifierStatus;
use formats::owner::Owner;
use harness::Services;
use program::Refused;
use tokio_util::sync::CancellationToken;

use crate::flags::{ModelFlags, ValidateFlags};
use crate::services;

/// Explains what is wrong with each task; 0 where all of them could run and, with a state that is
/// right, their verifiers pass on it.
pub(crate) async fn validate(flags: &ValidateFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let models = services::models(&variables, &ModelFlags::default())?;
    let services = services::services(models, services::process_sandbox()?);
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let (mut wrong, mut failed) = (0, 0);
    for task in &flags.tasks {
        let warnings = match harness::check(task, &services) {
            Ok(warnings) => warnings,
            Err(error) => {
                wrong += 1;
                for problem in error.problems {
                    program::say(format_args!("error: {problem}"));
                }
                continue;
            }
        };
        for warning in warnings {
            program::say(format_args!("warning: {warning}"));
        }
        // A closed stdout only means that nobody reads.
        let _ = writeln!(std::io::stdout().lock(), "{}: ok", task.display());
        if let Some(state) = &flags.golden_snapshot {
            failed += Box::pin(on_golden_state(task, state, &services, &cancel)).await?;
        }
    }
    let code = match (wrong, failed, cancel.is_cancelled()) {
        (_, _, true) => Owner::Cancelled.exit_code(),
        (0, 0, _) => return Ok(ExitCode::SUCCESS),
        (0, _, _) => Owner::Model.exit_code(),
        _ => Owner::Configuration.exit_code(),
    };
    Ok(ExitCode::from(code))
}

/// Judges the verifiers of the task on the state, prints each, and counts those that do not pass.
async fn on_golden_state(
    task: &Path,
    state: &Path,
    services: &Services,
    cancel: &CancellationToken,
) -> Result<usize, Refused> {
    let results = harness::check_golden_state(task, state, services, cancel, &|_| {})
        .await
        .map_err(|error| Refused::new(error.owner(), error))?;
    let mut failed = 0;
    let mut stdout = std::io::stdout().lock();
    for result in &results {
        let word = match result.status {
            VerifierStatus::Error => format!("error: {}", result.message),
            VerifierStatus::Ok if result.skipped() => result.message.clone(),
            VerifierStatus::Ok => format!("score {}", result.score),
        };
        failed += usize::from(!result.skipped() && !result.passed());
        let id = report::plain(&result.verifier_id);
        let _ = writeln!(stdout, "  {id}: {}", report::plain(&word));
    }
    Ok(failed)
}
