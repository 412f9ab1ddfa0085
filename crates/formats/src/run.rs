//! The run folder: `run.json`, `ledger.jsonl` and `summary.json`.
//!
//! ```text
//! runs/<run-id>/run.json               what was asked
//!               ledger.jsonl           every state change of every trial, append-only
//!               trials/<task>/<n>/     events.jsonl, trajectory.json, final_snapshot.zip, diff.json, …
//!               summary.json
//! ```

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentConfig;
use crate::owner::Failure;
use crate::trajectory::AgentStatus;

/// The version of the run folder that we write.
pub const FORMAT_VERSION: u32 = 1;

/// Names of the files of a run folder and of its trial folders.
pub mod file {
    /// What was asked.
    pub const RUN: &str = "run.json";
    /// Every state change of every trial.
    pub const LEDGER: &str = "ledger.jsonl";
    /// What came of it.
    pub const SUMMARY: &str = "summary.json";
    /// Folder of the trials.
    pub const TRIALS: &str = "trials";
    /// The events of the agent.
    pub const EVENTS: &str = "events.jsonl";
    /// The agent's record.
    pub const TRAJECTORY: &str = "trajectory.json";
    /// The world after the agent worked, as the environment gave it.
    pub const FINAL_SNAPSHOT_TAR: &str = "final_snapshot.tar.gz";
    /// The world after the agent worked.
    pub const FINAL_SNAPSHOT: &str = "final_snapshot.zip";
    /// What changed.
    pub const DIFF: &str = "diff.json";
    /// The grades.
    pub const GRADES: &str = "grades.json";
    /// Up to where the saved world of a trial under way goes.
    pub const CHECKPOINT: &str = "checkpoint.json";
    /// What the environment logged.
    pub const ENVIRONMENT_LOG: &str = "environment.log";
}

/// `run.json`: what was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The id of the run, also the name of its folder.
    pub run_id: String,
    /// RFC 3339 time in UTC.
    pub started_at: String,
    /// Version of the program that wrote it.
    pub tool_version: String,
    /// The tasks in order.
    pub tasks: Vec<TaskRecord>,
    /// Attempts per task.
    pub attempts: u32,
    /// The model that took the place of the one that the tasks name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The judge that took the place of the one that the tasks name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// The agent that took the place of the one that the tasks name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentConfig>,
    /// The folder in which the exchanges with models are recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// `process`, `docker` or an address.
    pub sandbox: String,
}

/// One task of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRecord {
    /// The name of the task and of its folder below `trials/`.
    pub task: String,
    /// The folder that it was read from.
    pub path: String,
    /// SHA-256 of every file of the task folder, in hexadecimal, by file name.
    pub sha256: BTreeMap<String, String>,
}

/// Where a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TrialState {
    /// Begun.
    Started,
    /// The environment answers and holds the world.
    EnvironmentReady,
    /// The agent ended; its trajectory is on disk.
    AgentEnded,
    /// The final snapshot and the diff are on disk.
    SnapshotSaved,
    /// The grades are on disk.
    Graded,
    /// Everything is done and cleaned up.
    Finished,
}

/// One line of `ledger.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// RFC 3339 time in UTC.
    pub time: String,
    /// The task.
    pub task: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// What was reached.
    pub state: TrialState,
    /// Set in the last entry of a trial: how it came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TrialOutcome>,
}

/// `checkpoint.json`: a world that was saved while the agent worked, so that the trial can go on from
/// there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorldCheckpoint {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// RFC 3339 time in UTC.
    pub time: String,
    /// The world is as the events below this number left it.
    pub next_seq: u64,
    /// The file beside this one that holds the world.
    pub world: String,
}

/// How a trial came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialOutcome {
    /// How the agent ended; absent where it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_status: Option<AgentStatus>,
    /// The score; absent where nothing could be graded. An infrastructure failure has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Verifiers judged and verifiers in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<crate::grades::Coverage>,
    /// The failure that ended the trial or spoiled its grade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// `summary.json`: what came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The id of the run.
    pub run_id: String,
    /// RFC 3339 time in UTC.
    pub finished_at: String,
    /// Seconds of wall time.
    pub duration: f64,
    /// One entry per trial that began.
    pub trials: Vec<TrialSummary>,
    /// Mean of the scores of the trials that have one; absent where none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_score: Option<f64>,
    /// Trials with a score.
    pub scored: usize,
    /// Trials without one that the model owns; they count as 0 in a pass rate.
    pub model_failures: usize,
    /// Trials without one for any other reason; they say nothing about the model.
    pub other_failures: usize,
    /// What the run was allowed to spend and did spend; absent where it was not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSummary>,
}

/// The budget of a run in `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetSummary {
    /// Most US dollars of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Most tokens of the run, of requests and replies together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Most US dollars of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd_per_trial: Option<f64>,
    /// Most tokens of each trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_trial: Option<u64>,
    /// US dollars of agents and judges; calls of unknown price are counted at an assumed one, so
    /// this may be more than the sum of the trials.
    pub spent_usd: f64,
    /// Tokens of agents and judges.
    pub spent_tokens: u64,
    /// Model calls for which the budget of the run had no room.
    pub refused_calls: u64,
    /// Trials that were not begun, because a call had been refused before.
    pub trials_not_begun: u64,
}

/// One trial in `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSummary {
    /// The task.
    pub task: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The folder of the trial, relative to the run folder.
    pub folder: String,
    /// `provider/model` of the agent.
    pub model: String,
    /// How it came out.
    #[serde(flatten)]
    pub outcome: TrialOutcome,
    /// Steps that the agent took.
    pub steps: u64,
    /// Tool calls that it made.
    pub tool_calls: u64,
    /// Tokens of its requests.
    pub prompt_tokens: u64,
    /// Tokens of its replies.
    pub completion_tokens: u64,
    /// Cost of agent and judge in US dollars; absent where a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Seconds of each part of the trial.
    pub seconds: TrialSeconds,
}

/// Seconds of each part of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialSeconds {
    /// Start of the environment, populate and `POST /apps`.
    pub environment: f64,
    /// The agent.
    pub agent: f64,
    /// Snapshot, conversion and diff.
    pub snapshot: f64,
    /// Grading.
    pub grading: f64,
    /// All of it.
    pub total: f64,
}
