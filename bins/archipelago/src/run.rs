//! `archipelago run`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use formats::agent::AgentConfig;
use formats::document::{self, DocumentError};
use formats::owner::Owner;
use formats::run::Summary;
use formats::task::Verifiers;
use grading::GradeOptions;
use harness::{Progress, Ran, RunBudget, RunRequest};
use llm_client::{BudgetLimits, Models};
use program::{Refused, Variables};
use tokio_util::sync::CancellationToken;

use crate::account::{self, Account};
use crate::documents::{self, PAGE, TrialDocuments};
use crate::flags::{Format, RunFlags, SandboxFlags};
use crate::services;

/// Runs the tasks, prints what came of it, and returns the exit code.
pub(crate) async fn run(flags: &RunFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let request = request(flags)?;
    if flags.models.cache.is_some() && flags.attempts > 1 {
        program::say("note: with `--cache`, later attempts at a task get the answers of the first");
    }
    let models = services::models(&variables, &flags.models)?;
    let sandbox = (&flags.sandbox, &variables);
    let grading = flags.grading.options(&models)?;
    let done = carry_out(&request, models, sandbox, grading, flags.format);
    let (summary, cancelled) = Box::pin(done).await?;
    Ok(match cancelled {
        // A run that was ended before its trials began has none to tell of.
        true => ExitCode::from(Owner::Cancelled.exit_code()),
        false => exit_code(&summary),
    })
}

/// Runs what is asked for and prints what came of it. The second value says whether it was ended by
/// a signal.
pub(crate) async fn carry_out(
    request: &RunRequest,
    models: Models,
    (sandbox, variables): (&SandboxFlags, &Variables),
    grading: GradeOptions,
    format: Format,
) -> Result<(Summary, bool), Refused> {
    let trials = request.tasks.len() * request.attempts as usize;
    if sandbox.sandbox.contains("://") && trials > 1 {
        return Err(Refused::configuration(format_args!(
            "the environment at `{}` keeps what a trial leaves in it, so it serves one trial, not \
             {trials}; use `--sandbox process`",
            sandbox.sandbox
        )));
    }
    let mut services = services::services(models, services::sandbox(sandbox, variables)?);
    services.grading = grading;
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let account = Arc::new(Account::new(trials));
    let progress = Arc::clone(&account) as Arc<dyn Progress>;
    let result = harness::run(request, &services, progress, &cancel).await;
    account.end();
    let Ran { summary, tasks } = result.map_err(|error| Refused::new(error.owner(), error))?;
    let verifiers = tasks
        .into_iter()
        .map(|(name, task)| (name, task.verifiers))
        .collect();
    documents::write_pages(&request.output, &summary, &verifiers);
    print(format, request, &summary, &verifiers).map_err(Refused::stdout)?;
    Ok((summary, cancel.is_cancelled()))
}

fn request(flags: &RunFlags) -> Result<RunRequest, DocumentError> {
    let agent = flags
        .agent
        .as_ref()
        .map(|path| document::read::<AgentConfig>("agent configuration", path))
        .transpose()?;
    Ok(RunRequest {
        tasks: flags.tasks.clone(),
        output: flags.output.clone().unwrap_or_else(|| new_folder(flags)),
        model: flags.model.clone(),
        judge_model: flags.judge_model.clone(),
        agent,
        attempts: flags.attempts,
        concurrency: usize::from(flags.concurrency),
        resume: flags.resume,
        budget: RunBudget {
            run: BudgetLimits {
                cost_usd: flags.budget.max_cost,
                tokens: flags.budget.max_tokens,
            },
            trial: BudgetLimits {
                cost_usd: flags.budget.max_cost_per_trial,
                tokens: flags.budget.max_tokens_per_trial,
            },
        },
        recording: flags.models.record.as_deref().map(absolute),
        checkpoint_steps: flags.checkpoint,
        blobs: flags.blobs,
    })
}

/// `path` from the root, as far as that can be told.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A run folder of its own: `runs/<time>-<first task>`, with a number where two runs begin in the
/// same second.
fn new_folder(flags: &RunFlags) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let task = flags
        .tasks
        .first()
        .and_then(|task| task.file_name())
        .unwrap_or_default();
    free_folder(Path::new("runs").join(format!("{time}-{}", task.to_string_lossy())))
}

/// `base`, with a number where that exists.
pub(crate) fn free_folder(base: PathBuf) -> PathBuf {
    (2..)
        .map(|number| PathBuf::from(format!("{}-{number}", base.display())))
        .find(|path| !path.exists())
        .filter(|_| base.exists())
        .unwrap_or(base)
}

fn print(
    format: Format,
    request: &RunRequest,
    summary: &Summary,
    verifiers: &BTreeMap<String, Verifiers>,
) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if format == Format::Json {
        serde_json::to_writer_pretty(&mut stdout, summary)?;
        return writeln!(stdout);
    }
    let style = account::style_of_stdout();
    let (text, page) = match summary.trials.as_slice() {
        [trial] => {
            let folder = request.output.join(&trial.folder);
            let page = folder.join(PAGE);
            let verifiers = verifiers.get(&trial.task).cloned().unwrap_or_default();
            let documents = TrialDocuments::read(folder, verifiers);
            let mut text = report::text::trial(&documents.trial(trial), style);
            text.extend(summary.budget.as_ref().map(report::text::budget));
            (text, page)
        }
        _ => (report::text::run(summary, style), request.output.join(PAGE)),
    };
    write!(stdout, "\n{text}")?;
    writeln!(stdout, "Page   {}", page.display())
}

/// 0 where every trial was done; else the code of the failure that most needs attention: what the
/// user ended, then what the user has to correct, then the machine's, then the model's.
pub(crate) fn exit_code(summary: &Summary) -> ExitCode {
    let owners: Vec<Owner> = summary
        .trials
        .iter()
        .filter_map(|trial| Some(trial.outcome.failure.as_ref()?.owner))
        .collect();
    [
        Owner::Cancelled,
        Owner::Configuration,
        Owner::Infrastructure,
        Owner::Model,
    ]
    .into_iter()
    .find(|owner| owners.contains(owner))
    .map_or(ExitCode::SUCCESS, |owner| ExitCode::from(owner.exit_code()))
}
