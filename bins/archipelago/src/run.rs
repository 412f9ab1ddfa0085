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
use harness::{Progress, RunRequest, Task};
use program::Refused;
use tokio_util::sync::CancellationToken;

use crate::account::{self, Account};
use crate::documents::{self, PAGE, TrialDocuments};
use crate::flags::{Format, RunFlags};
use crate::services;

/// Runs the tasks, prints what came of it, and returns the exit code.
pub(crate) async fn run(flags: &RunFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let sandbox = services::sandbox(flags, &variables)?;
    let trials = flags.tasks.len() * flags.attempts as usize;
    if flags.sandbox.contains("://") && trials > 1 {
        return Err(Refused::configuration(format_args!(
            "the environment at `{}` keeps what a trial leaves in it, so it serves one trial, not \
             {trials}; use `--sandbox process`",
            flags.sandbox
        )));
    }
    let request = request(flags)?;
    let cancel = CancellationToken::new();
    program::cancel_on_signals(cancel.clone())?;
    let account = Arc::new(Account::new(trials));
    let result = harness::run(
        &request,
        &services::services(&variables, sandbox),
        Arc::clone(&account) as Arc<dyn Progress>,
        &cancel,
    )
    .await;
    account.end();
    let summary = result.map_err(|error| Refused::new(error.owner(), error))?;
    let verifiers = verifiers(&request);
    documents::write_pages(&request.output, &summary, &verifiers);
    print(flags, &request, &summary, &verifiers).map_err(Refused::stdout)?;
    // A run that was ended before its trials began has none to tell of.
    Ok(if cancel.is_cancelled() {
        ExitCode::from(Owner::Cancelled.exit_code())
    } else {
        exit_code(&summary)
    })
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
    })
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
    let base = Path::new("runs").join(format!("{time}-{}", task.to_string_lossy()));
    (2..)
        .map(|number| PathBuf::from(format!("{}-{number}", base.display())))
        .find(|path| !path.exists())
        .filter(|_| base.exists())
        .unwrap_or(base)
}

/// The verifiers of each task, for what they ask.
fn verifiers(request: &RunRequest) -> BTreeMap<String, Verifiers> {
    request
        .tasks
        .iter()
        .filter_map(|folder| Task::load(folder).ok())
        .map(|task| (task.name, task.verifiers))
        .collect()
}

fn print(
    flags: &RunFlags,
    request: &RunRequest,
    summary: &Summary,
    verifiers: &BTreeMap<String, Verifiers>,
) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if flags.format == Format::Json {
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
            (report::text::trial(&documents.trial(trial), style), page)
        }
        _ => (report::text::run(summary, style), request.output.join(PAGE)),
    };
    write!(stdout, "\n{text}")?;
    writeln!(stdout, "Page   {}", page.display())
}

/// 0 where every trial was done; else the code of the failure that most needs attention: what the
/// user ended, then what the user has to correct, then the machine's, then the model's.
fn exit_code(summary: &Summary) -> ExitCode {
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
