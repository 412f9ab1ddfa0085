//! Limits and choices of grading on the command line, the same words for every command that grades.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use formats::Object;
use grading::{GradeOptions, IsolationRule, JudgeOptions, OnVerifierError};
use llm_client::Models;
use program::Refused;

use crate::flags::amount;
use crate::services;

/// Limits and choices of grading one trial.
#[derive(Debug, Args)]
#[command(next_help_heading = "Grading")]
pub(crate) struct GradingFlags {
    /// Folder in which answers of judges are kept, so that the same question is not paid twice
    #[arg(long, value_name = "DIR")]
    judge_cache: Option<PathBuf>,
    /// US dollars that judging one trial may cost
    #[arg(long, value_name = "USD", value_parser = amount)]
    max_judge_usd: Option<f64>,
    /// Seconds that one call of a judge may take
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400), value_name = "SECONDS")]
    judge_timeout: u64,
    /// How often each judge is asked, in place of what the settings say
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=25), value_name = "K")]
    judge_votes: Option<u32>,
    /// `provider/model` of a further judge that votes; may be repeated
    #[arg(long = "judge-panel", value_name = "MODEL")]
    judge_panel: Vec<String>,
    /// Seconds that all verifiers of a trial together may take; no limit if absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=604_800), value_name = "SECONDS")]
    grading_timeout: Option<u64>,
    /// What becomes of the score where a verifier could not be judged
    #[arg(
        long,
        default_value = "fail_run",
        value_name = "fail_run|score_as_zero|exclude"
    )]
    on_verifier_error: OnVerifierError,
    /// Judge a verifier only if all that it depends on passed
    #[arg(long)]
    only_after_passed: bool,
    /// Whether programs of verifiers must be kept from the machine
    #[arg(
        long,
        default_value = "where_possible",
        value_name = "where_possible|required|off"
    )]
    verifier_isolation: IsolationRule,
}

impl GradingFlags {
    /// The options that the flags mean; further judges must be usable.
    pub(crate) fn options(&self, models: &Models) -> Result<GradeOptions, Refused> {
        for judge in &self.judge_panel {
            models.resolve(judge, &Object::new()).map_err(|error| {
                Refused::configuration(format_args!("`--judge-panel` `{judge}`: {error}"))
            })?;
        }
        Ok(GradeOptions {
            judge: JudgeOptions {
                cache: self.judge_cache.clone(),
                max_usd: self.max_judge_usd,
                timeout: Duration::from_secs(self.judge_timeout),
                votes: self.judge_votes,
                panel: self.judge_panel.clone(),
                ..JudgeOptions::default()
            },
            total_timeout: self.grading_timeout.map(Duration::from_secs),
            on_verifier_error: self.on_verifier_error,
            only_after_passed: self.only_after_passed,
            isolation: self.verifier_isolation,
            ..services::grade_options()
        })
    }
}
