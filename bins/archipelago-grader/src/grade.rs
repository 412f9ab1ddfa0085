//! From flags to grades.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use formats::blobs;
use formats::document::{self, DocumentError};
use formats::grades::{Grades, GradingStatus, VerifierResult, VerifierStatus};
use formats::owner::Owner;
use formats::task::file;
use grading::{
    GradeOptions, GradingInput, GradingPlan, JudgeOptions, Problem, Registry, Severity, Sources,
};
use llm_client::Models;
use program::{Refused, Variables};
use tokio_util::sync::CancellationToken;

use crate::flags::{Flags, Format};

/// Grades and returns the exit code.
pub(crate) async fn grade(flags: &Flags) -> ExitCode {
    match Box::pin(attempt(flags)).await {
        Ok(grades) => end(&grades, flags),
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
        Ok(validated) => warn(&validated.warnings, flags),
        Err(problems) => return Err(refuse(&problems, flags)),
    }
    if let Some(output) = &flags.output {
        // Found out now, not after the judge has been paid.
        check_writable(output)?;
    }
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let grades = grading::grade_with(&registry, input, &models, options, cancel, &tell).await;
    if let Some(output) = &flags.output {
        document::write("grades", output, &grades)?;
    }
    match (flags.format, &flags.output) {
        (Format::Text, _) => print_text(&grades).map_err(Refused::stdout)?,
        (Format::Json, None) => print(&grades).map_err(Refused::stdout)?,
        (Format::Json, Some(_)) => {}
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

fn refuse(problems: &[Problem], flags: &Flags) -> Refused {
    let sources = sources(flags);
    let errors: Vec<String> = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| located(problem, &sources))
        .collect();
    Refused {
        owner: Owner::Configuration,
        message: errors.join("\n"),
    }
}

fn warn(warnings: &[Problem], flags: &Flags) {
    if warnings.is_empty() {
        return;
    }
    let sources = sources(flags);
    for warning in warnings {
        program::say(format_args!("warning: {}", located(warning, &sources)));
    }
}

/// The files in which problems stand.
fn sources(flags: &Flags) -> Sources {
    Sources::read([
        (file::VERIFIERS, flags.verifiers.clone()),
        (file::EVAL_CONFIGS, flags.eval_configs.clone()),
        (file::SCORING_CONFIG, flags.scoring_config.clone()),
        (file::GRADING_SETTINGS, flags.grading_settings.clone()),
    ])
}

fn located(problem: &Problem, sources: &Sources) -> String {
    match sources.place(problem) {
        Some((path, line)) => format!("`{}`, line {line}: {problem}", path.display()),
        None => problem.to_string(),
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
    // Messages quote what agents and judges wrote.
    let line = format!("{}: {verdict}", result.verifier_id);
    program::say(report::plain(&line));
}

fn print(grades: &Grades) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut stdout, grades)?;
    writeln!(stdout)
}

/// One line per verifier, then how many of them count and the score.
fn print_text(grades: &Grades) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    for result in &grades.verifier_results {
        let word = match result.status {
            VerifierStatus::Error => format!("error: {}", result.message),
            VerifierStatus::Ok if result.skipped() => result.message.clone(),
            VerifierStatus::Ok if result.message.is_empty() => format!("score {}", result.score),
            VerifierStatus::Ok => format!("score {}: {}", result.score, result.message),
        };
        let line = format!("{}  {word}", result.verifier_id);
        // Messages quote what agents and judges wrote.
        writeln!(stdout, "{}", report::plain(&line))?;
    }
    if let Some(coverage) = grades.coverage {
        writeln!(
            stdout,
            "{} of {} verifiers judged, {} passed, {} errors, {} left out",
            coverage.judged, coverage.total, coverage.passed, coverage.errors, coverage.skipped
        )?;
    }
    match grades.grading_run_status {
        GradingStatus::Completed => {
            writeln!(stdout, "score {}", grades.scoring_results.final_score)
        }
        _ => writeln!(stdout, "no score"),
    }
}

fn end(grades: &Grades, flags: &Flags) -> ExitCode {
    if flags.reference_exit_codes {
        return ExitCode::SUCCESS;
    }
    if grades.grading_run_status == GradingStatus::Completed {
        let score = grades.scoring_results.final_score;
        return match flags.fail_below {
            Some(least) if score < least => {
                let reason = format!("the score {score} is below {least} (`--fail-below`)");
                program::fail(Owner::Model, reason)
            }
            _ => ExitCode::SUCCESS,
        };
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
