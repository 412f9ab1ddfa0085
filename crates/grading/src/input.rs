//! What is graded, and how.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use evidence::EvidenceLimits;
use formats::grades::Grades;
use formats::task::{EvalConfig, GradingSettings, ScoringConfig, Verifier};
use formats::trajectory::Trajectory;
use judge::JudgeOptions;

use crate::eval::IsolationRule;
use crate::scoring::OnVerifierError;

/// Where programs are looked for if nothing else is said.
const PROGRAM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Everything that grading one trajectory needs.
#[derive(Debug, Clone)]
pub struct GradingInput {
    /// Echoed into the grades.
    pub grading_run_id: String,
    /// The trajectory's id, for logs and judge calls.
    pub trajectory_id: String,
    /// The world before the agent worked: an archive or a folder that `snapshot` can open.
    pub initial_snapshot: PathBuf,
    /// The world after it.
    pub final_snapshot: PathBuf,
    /// Other correct end states, for evals that compare with them.
    pub golden_snapshots: Vec<PathBuf>,
    /// What the agent said and did.
    pub trajectory: Trajectory,
    /// The judge. May be absent where no verifier needs one.
    pub settings: Option<GradingSettings>,
    /// What is checked.
    pub verifiers: Vec<Verifier>,
    /// How it is checked.
    pub eval_configs: Vec<EvalConfig>,
    /// How the checks make one score.
    pub scoring: ScoringConfig,
}

impl GradingInput {
    /// The part that is known before the agent has worked, with the default place of programs.
    #[must_use]
    pub fn plan(&self) -> GradingPlan<'_> {
        GradingPlan {
            settings: self.settings.as_ref(),
            verifiers: &self.verifiers,
            eval_configs: &self.eval_configs,
            scoring: &self.scoring,
            program_path: OsStr::new(PROGRAM_PATH),
        }
    }
}

/// What is checked and how, without what it is checked against: enough for
/// [`validate`](crate::validate), so that a task can be refused before anything is run or paid.
#[derive(Debug, Clone, Copy)]
pub struct GradingPlan<'a> {
    /// The judge.
    pub settings: Option<&'a GradingSettings>,
    /// What is checked.
    pub verifiers: &'a [Verifier],
    /// How it is checked.
    pub eval_configs: &'a [EvalConfig],
    /// How the checks make one score.
    pub scoring: &'a ScoringConfig,
    /// The `PATH` in which the programs will be looked for that checks need
    /// ([`GradeOptions::program_path`]).
    pub program_path: &'a OsStr,
}

impl<'a> From<&'a GradingInput> for GradingPlan<'a> {
    fn from(input: &'a GradingInput) -> Self {
        input.plan()
    }
}

/// Limits and choices of one grading run. All have defaults.
#[derive(Debug, Clone)]
pub struct GradeOptions {
    /// Keep the results of these grades that are not errors and judge only the rest.
    pub only: Option<Grades>,
    /// Verifiers that run at once. Default 15.
    pub concurrency: usize,
    /// Limits and choices for judge calls.
    pub judge: JudgeOptions,
    /// Limit of one verifier, judge calls and waiting for them included. Default 2 hours.
    pub verifier_timeout: Duration,
    /// Limit of all verifiers together; those not judged by then are errors. Default: none.
    pub total_timeout: Option<Duration>,
    /// Leave out verifiers that need a transcript, because there is none (§3.4). They have no part
    /// in the score. Default false.
    pub skip_trajectory_verifiers: bool,
    /// The final world is one that is known to be right and there is no trajectory: leave out the
    /// verifiers that look at the answer (§3.9). Set by
    /// [`check_golden_state`](crate::check_golden_state).
    pub golden_state: bool,
    /// What becomes of the score where a verifier could not be judged. Default: there is none.
    pub on_verifier_error: OnVerifierError,
    /// Judge a verifier only if all verifiers that it depends on passed; others are left out and
    /// have no part in the score. Default false: dependencies only set the order.
    pub only_after_passed: bool,
    /// The folder of the task, to which `{task}` in the settings of `command` refers. Default: none.
    pub task_folder: Option<PathBuf>,
    /// The `PATH` of programs that verifiers run; they get no other variable of this program.
    /// Default `/usr/local/bin:/usr/bin:/bin`.
    pub program_path: OsString,
    /// Whether such programs must be isolated from the machine. Default: where it is possible.
    pub isolation: IsolationRule,
    /// Limits of what is read out of the worlds.
    pub evidence: EvidenceLimits,
}

impl Default for GradeOptions {
    fn default() -> Self {
        Self {
            only: None,
            concurrency: 15,
            judge: JudgeOptions::default(),
            verifier_timeout: Duration::from_secs(7200),
            total_timeout: None,
            skip_trajectory_verifiers: false,
            golden_state: false,
            on_verifier_error: OnVerifierError::default(),
            only_after_passed: false,
            task_folder: None,
            program_path: PROGRAM_PATH.into(),
            isolation: IsolationRule::default(),
            evidence: EvidenceLimits::default(),
        }
    }
}
