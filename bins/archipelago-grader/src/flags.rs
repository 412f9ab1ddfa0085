//! The command line.

use std::path::PathBuf;

use clap::Parser;

/// Grades one trajectory against its verifiers and writes the grades.
///
/// Exit codes: 0 every verifier was judged, 1 grading ended with errors, 2 flags or files are wrong, 3 infrastructure,
/// 130 cancelled. The reference ends with 0 whenever grades were written and with 1 for bad files;
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
    /// Judge only the verifiers that ended in an error in the existing `--output` file
    #[arg(long, requires = "output")]
    pub(crate) only_errors: bool,
    /// End with the exit codes of the reference
    #[arg(long)]
    pub(crate) reference_exit_codes: bool,
}
