//! From flags to grades.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use formats::blobs;
use formats::document::{self, DocumentError};
use formats::grades::{Grades, GradingStatus, VerifierResult, VerifierStatus};
use formats::owner::Owner;
use grading::{GradeOptions, GradingInput, GradingPlan, JudgeOptions, Problem, Registry, Severity};
use llm_client::Models;
use program::{Refused, Variables};
use tokio_util::sync::CancellationToken;

use crate::flags::Flags;

/// Grades and returns the exit code.
pub(crate) async fn grade(flags: &Flags) -> ExitCode {
    match Box::pin(attempt(flags)).await {
        Ok(grades) => end(&grades, flags.reference_exit_codes),
        Err(refused) => refused.tell(flags.reference_exit_codes),
    }
}

async fn attempt(flags: &Flags) -> Result<Grades, Refused> {
    let variables = Variables::load()?;
    program::start_logs("warn", variables.is_deployed());
    let input = input(flags)?;
    let options = GradeOptions {
        only: former(flags)?,
        skip_trajectory_verifiers: flags.skip_trajectory_verifiers,
        on_verifier_error: flags.on_verifier_error,
        only_after_passed: flags.only_after_passed,
        judge: JudgeOptions {
            cache: flags.judge_cache.clone(),
            max_usd: flags.max_judge_usd,
            timeout: Duration::from_secs(flags.judge_timeout),
            votes: flags.judge_votes,
            panel: flags.judge_panel.clone(),
            ..JudgeOptions::default()
        },
        isolation: flags.verifier_isolation,
        total_timeout: flags.total_timeout.map(Duration::from_secs),
        program_path: std::env::var_os("PATH").unwrap_or_default(),
        ..GradeOptions::default()
    };
    let models = Models::from_variables(|name| variables.get(name))
        .and_then(|models| models.with_folders(flags.record.as_deref(), None))
        .map_err(|error| Refused::new(error.owner(), error))?;
    for judge in &flags.judge_panel {
        models
            .resolve(judge, &formats::Object::new())
            .map_err(|error| {
                Refused::configuration(format_args!("`--judge-panel` `{judge}`: {error}"))
            })?;
    }
    let registry = Registry::builtin();
    let plan = GradingPlan {
        program_path: &options.program_path,
        ..input.plan()
    };
    match grading::validate(&registry, plan, &models) {
        Ok(validated) => warn(&validated.warnings),
        Err(problems) => return Err(refuse(&problems)),
    }
    if let Some(output) = &flags.output {
        // Found out now, not after the judge has been paid.
        check_writable(output)?;
    }
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let grades = grading::grade_with(&registry, input, &models, options, cancel, &tell).await;
    match &flags.output {
        Some(output) => document::write("grades", output, &grades)?,
        None => print(&grades).map_err(Refused::stdout)?,
    }
    Ok(grades)
}

fn input(flags: &Flags) -> Result<GradingInput, Refused> {
    for (flag, path) in [
        ("--initial-snapshot", &flags.initial_snapshot),
        ("--final-snapshot", &flags.final_snapshot),
    ]
    .into_iter()
    .chain(
        flags
            .golden_snapshots
            .iter()
            .map(|path| ("--golden-snapshot", path)),
    ) {
        if let Err(error) = std::fs::metadata(path) {
            return Err(Refused::configuration(format!(
                "cannot read `{flag}` `{}`: {error}",
                path.display()
            )));
        }
    }
    Ok(GradingInput {
        grading_run_id: flags.grading_run_id.clone(),
        trajectory_id: flags.trajectory_id.clone(),
        initial_snapshot: flags.initial_snapshot.clone(),
        final_snapshot: flags.final_snapshot.clone(),
        golden_snapshots: flags.golden_snapshots.clone(),
        trajectory: blobs::read_trajectory(&flags.trajectory)?,
        settings: Some(document::read("grading settings", &flags.grading_settings)?),
        verifiers: document::read("verifiers", &flags.verifiers)?,
        eval_configs: document::read("eval configurations", &flags.eval_configs)?,
        scoring: document::read("scoring configuration", &flags.scoring_config)?,
    })
}

/// The grades that `--only-errors` goes on from.
fn former(flags: &Flags) -> Result<Option<Grades>, DocumentError> {
    match &flags.output {
        Some(output) if flags.only_errors => document::read("grades", output).map(Some),
        _ => Ok(None),
    }
}

fn refuse(problems: &[Problem]) -> Refused {
    let errors: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    Refused {
        owner: Owner::Configuration,
        message: errors.join("\n"),
    }
}

fn warn(warnings: &[Problem]) {
    for warning in warnings {
        program::say(format_args!("warning: {warning}"));
    }
}

/// Whether a file can be made beside `output`; leaves nothing behind.
fn check_writable(output: &Path) -> Result<(), Refused> {
    let folder = match output.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let probe = folder.join(format!(".archipelago-grader-{}", std::process::id()));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&probe, b""))
        .and_then(|()| std::fs::remove_file(&probe))
        .map_err(|error| {
            Refused::configuration(format!(
                "cannot write `--output` `{}`: {error}",
                output.display()
            ))
        })
}

/// One line per verifier, as it is judged.
fn tell(result: &VerifierResult) {
    let verdict = match result.status {
        VerifierStatus::Error => format!("error: {}", result.message),
        VerifierStatus::Ok => format!("score {}", result.score),
    };
    program::say(format_args!("{}: {verdict}", result.verifier_id));
}

fn print(grades: &Grades) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, grades)?;
    writeln!(stdout)
}

fn end(grades: &Grades, reference_codes: bool) -> ExitCode {
    if grades.grading_run_status == GradingStatus::Completed || reference_codes {
        return ExitCode::SUCCESS;
    }
    let reason = grades
        .scoring_results
        .scoring_method_result_values
        .get("error")
        .and_then(|error| error.as_str())
        .unwrap_or("grading did not complete");
    let owner = if grades.grading_run_status == GradingStatus::Cancelled {
        Owner::Cancelled
    } else {
        // 1: the grade failed. Whose fault each verifier's error is stands in its result.
        Owner::Model
    };
    program::fail(owner, reason)
}
