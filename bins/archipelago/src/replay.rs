//! `archipelago replay`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use formats::document;
use formats::owner::Owner;
use formats::run::{FORMAT_VERSION, RunRecord, Summary, TrialSummary, file};
use grading::GradeOptions;
use harness::{RunBudget, RunRequest};
use llm_client::Recording;
use program::Refused;

use crate::flags::{ModelFlags, ReplayFlags};
use crate::run::{carry_out, exit_code, free_folder};
use crate::services;

/// Runs the tasks of a recorded run again with what its models said then, says where trials came out
/// otherwise, and returns the exit code: 0 where all came out as before.
pub(crate) async fn replay(flags: &ReplayFlags) -> Result<ExitCode, Refused> {
    let variables = services::variables()?;
    let record: RunRecord = document::read("run record", &flags.run.join(file::RUN))?;
    if record.format_version != FORMAT_VERSION {
        return Err(Refused::configuration(format_args!(
            "the run was written in format version {}, this program reads {FORMAT_VERSION}",
            record.format_version
        )));
    }
    let before: Summary = document::read("summary", &flags.run.join(file::SUMMARY))?;
    let path = flags.recording.clone();
    let path = path.or_else(|| record.recording.as_ref().map(PathBuf::from));
    let path = path.ok_or_else(|| {
        Refused::configuration(format_args!(
            "the run `{}` names no recording: make it with `--record DIR`, or give `--recording`",
            flags.run.display()
        ))
    })?;
    let recording = Recording::open(&path).map_err(|error| Refused::new(error.owner(), error))?;
    let recording = Arc::new(recording);
    let models =
        services::models(&variables, &ModelFlags::default())?.with_replay(Arc::clone(&recording));
    let request = request(flags, record);
    let sandbox = (&flags.sandbox, &variables);
    let grading = GradeOptions::default();
    let done = carry_out(&request, models, sandbox, grading, flags.format);
    let (after, cancelled) = Box::pin(done).await?;
    if cancelled {
        return Ok(ExitCode::from(Owner::Cancelled.exit_code()));
    }
    let differences = differences(&before, &after);
    for difference in &differences {
        program::say(report::plain(difference));
    }
    if recording.left() > 0 {
        program::say(format_args!(
            "note: {} of the {} recorded exchanges were not played",
            recording.left(),
            recording.len()
        ));
    }
    if differences.is_empty() {
        program::say(format_args!(
            "all trials came out as in `{}`",
            flags.run.display()
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let code = exit_code(&after);
    Ok(if code == ExitCode::SUCCESS {
        ExitCode::from(Owner::Model.exit_code())
    } else {
        code
    })
}

/// The run that `record` tells of, in a folder of its own.
fn request(flags: &ReplayFlags, record: RunRecord) -> RunRequest {
    let output = flags.output.clone().unwrap_or_else(|| {
        let mut name = flags.run.as_os_str().to_owned();
        name.push("-replay");
        free_folder(PathBuf::from(name))
    });
    RunRequest {
        tasks: record
            .tasks
            .iter()
            .map(|task| PathBuf::from(&task.path))
            .collect(),
        output,
        model: record.model,
        judge_model: record.judge_model,
        agent: record.agent,
        attempts: record.attempts,
        concurrency: usize::from(flags.concurrency),
        resume: false,
        budget: RunBudget::default(),
        recording: None,
        checkpoint_steps: None,
        blobs: false,
    }
}

/// Where trials came out otherwise, one sentence each.
fn differences(before: &Summary, after: &Summary) -> Vec<String> {
    let mut differences = Vec::new();
    for now in &after.trials {
        let then = before
            .trials
            .iter()
            .find(|then| (&then.task, then.attempt) == (&now.task, now.attempt));
        // A trial that the first run did not come to has nothing to be compared with.
        let Some(then) = then else { continue };
        let (was, is) = (result(then), result(now));
        if was != is {
            differences.push(format!(
                "{}/{} was {was}, and is {is}",
                now.task, now.attempt
            ));
        }
    }
    differences
}

/// What a trial came to, without what differs from time to time.
fn result(trial: &TrialSummary) -> String {
    let outcome = &trial.outcome;
    let status = outcome
        .agent_status
        .map_or("not begun", |status| status.as_str());
    let score = outcome
        .score
        .map_or_else(|| "no score".to_owned(), |score| format!("score {score}"));
    let failure = outcome
        .failure
        .as_ref()
        .map_or_else(String::new, |failure| {
            format!(", {} failure: {}", failure.owner, failure.kind)
        });
    format!(
        "{status} after {} steps and {} tool calls, {score}{failure}",
        trial.steps, trial.tool_calls
    )
}
