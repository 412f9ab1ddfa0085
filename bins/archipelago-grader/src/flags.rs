//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use grading::{IsolationRule, OnVerifierError};

/// Grades one trajectory against its verifiers and writes the grades.
///
/// Exit codes: 0 every verifier was judged, 1 grading ended with errors or the score is below `--fail-below`, 2 flags or
/// files are wrong, 3 infrastructure, 130 cancelled. The reference ends with 0 whenever grades were written and with 1 for bad files;
/// `--reference-exit-codes` does the same.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Flags {
    /// Id of the grading run; echoed into the grades
    #[arg(long)]
    pub(crate) grading_run_id: String,
    /// Id of the trajectory, for logs
    #[arg(long)]
    pub(crate) trajectory_id: String,
    /// The world before the agent worked: zip, tar.gz, tar or a folder
    #[arg(long, value_name = "PATH")]
    pub(crate) initial_snapshot: PathBuf,
    /// The world after the agent worked
    #[arg(long, value_name = "PATH")]
    pub(crate) final_snapshot: PathBuf,
    /// JSON file: the trajectory
    #[arg(long, value_name = "FILE")]
    pub(crate) trajectory: PathBuf,
    /// JSON file: the judge
    #[arg(long, value_name = "FILE")]
    pub(crate) grading_settings: PathBuf,
    /// JSON file: array of verifiers
    #[arg(long, value_name = "FILE")]
    pub(crate) verifiers: PathBuf,
    /// JSON file: array of eval configurations
    #[arg(long, value_name = "FILE")]
    pub(crate) eval_configs: PathBuf,
    /// JSON file: the scoring configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) scoring_config: PathBuf,
    /// An alternative correct end state; may be given several times
    #[arg(long = "golden-snapshot", value_name = "PATH")]
    pub(crate) golden_snapshots: Vec<PathBuf>,
    /// Where the grades are written; without it they go to stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What stdout gets: `json`, the grades where no `--output` takes them, or `text`, an account for people
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
    /// End with 1 where the score is below this
    #[arg(long, value_name = "SCORE", value_parser = score, allow_negative_numbers = true)]
    pub(crate) fail_below: Option<f64>,
    /// Judge only the verifiers that ended in an error in the existing `--output` file
    #[arg(long, requires = "output")]
    pub(crate) only_errors: bool,
    /// There is no transcript: leave out the verifiers that need one
    #[arg(long)]
    pub(crate) skip_trajectory_verifiers: bool,
    /// What becomes of the score where a verifier could not be judged
    #[arg(
        long,
        default_value = "fail_run",
        value_name = "fail_run|score_as_zero|exclude"
    )]
    pub(crate) on_verifier_error: OnVerifierError,
    /// Judge a verifier only if all that it depends on passed
    #[arg(long)]
    pub(crate) only_after_passed: bool,
    /// Folder in which answers of the judge are kept, so that the same question is not paid twice
    #[arg(long, value_name = "DIR")]
    pub(crate) judge_cache: Option<PathBuf>,
    /// Record every exchange with the judge in this folder, without secrets; a judge `replay/DIR` plays it
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// US dollars that the judge may cost
    #[arg(long, value_name = "USD", value_parser = amount)]
    pub(crate) max_judge_usd: Option<f64>,
    /// Seconds that one call of the judge may take
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400), value_name = "SECONDS")]
    pub(crate) judge_timeout: u64,
    /// How often each judge is asked, in place of what the settings say
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=25), value_name = "K")]
    pub(crate) judge_votes: Option<u32>,
    /// `provider/model` of a further judge that votes; may be repeated
    #[arg(long = "judge-panel", value_name = "MODEL")]
    pub(crate) judge_panel: Vec<String>,
    /// Whether programs of verifiers must be kept from the machine
    #[arg(
        long,
        default_value = "where_possible",
        value_name = "where_possible|required|off"
    )]
    pub(crate) verifier_isolation: IsolationRule,
    /// Seconds that all verifiers together may take; no limit if absent
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=604_800), value_name = "SECONDS")]
    pub(crate) total_timeout: Option<u64>,
    /// End with the exit codes of the reference
    #[arg(long)]
    pub(crate) reference_exit_codes: bool,
}

/// What stdout gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Text,
}

fn score(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|score: &f64| score.is_finite())
        .ok_or_else(|| "must be a number".to_owned())
}

fn amount(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| "must be a number of at least 0".to_owned())
}
