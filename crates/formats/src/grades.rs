//! `grades.json`: what grading leaves behind (`spec/grading.md` §1.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Object;

/// How a grading run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GradingStatus {
    /// Not started.
    Pending,
    /// Under way.
    Running,
    /// Every verifier was judged and the score computed.
    Completed,
    /// Ended from outside.
    Cancelled,
    /// Not used by our programs.
    Failed,
    /// A verifier or the scoring could not be judged; there is no score to trust.
    Error,
}

/// Whether a verifier could be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifierStatus {
    /// Judged; `score` says how.
    #[default]
    Ok,
    /// Not judged; `message` says why, and `score` means nothing.
    Error,
}

/// The result of one verifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifierResult {
    /// Which verifier.
    pub verifier_id: String,
    /// Its version.
    pub verifier_version: i64,
    /// Usually 0 or 1; may be a fraction or, for penalties, negative.
    pub score: f64,
    /// What the eval says beside the score, such as `judge_grade` and `grade_rationale`.
    pub verifier_result_values: Object,
    /// Whether it could be judged.
    #[serde(default)]
    pub status: VerifierStatus,
    /// A sentence for people, empty where there is nothing to add.
    #[serde(default)]
    pub message: String,
}

impl VerifierResult {
    /// Whether it counts as passed in statistics.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.status == VerifierStatus::Ok && self.score > 0.0
    }

    /// Whether it was left out; it has no part in the score then.
    #[must_use]
    pub fn skipped(&self) -> bool {
        self.status == VerifierStatus::Ok
            && self.verifier_result_values.get("skipped") == Some(&serde_json::Value::Bool(true))
    }
}

/// The score of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoringResults {
    /// The score.
    pub final_score: f64,
    /// What the scoring method says beside it; `error` where it failed.
    pub scoring_method_result_values: Object,
}

/// The grades of one trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grades {
    /// The id that the caller gave.
    pub grading_run_id: String,
    /// How grading ended.
    pub grading_run_status: GradingStatus,
    /// One result per verifier, in the order of `verifiers.json`.
    pub verifier_results: Vec<VerifierResult>,
    /// The score.
    pub scoring_results: ScoringResults,
    /// How many verifiers were judged. Not in files of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// What the judge calls used. Not in files of the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_usage: Option<JudgeUsage>,
    /// How far the votes of the judges agree, where several were asked. Not in files of the
    /// reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge_agreement: Option<JudgeAgreement>,
}

/// How far the votes on the verdicts of one grading run agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAgreement {
    /// Verifiers with more than one vote.
    pub verifiers: usize,
    /// Verifiers whose votes were not all the same.
    pub split: usize,
    /// All votes on them.
    pub votes: usize,
    /// The share of pairs of votes on the same verifier that are equal, 0 to 1.
    pub agreement: f64,
    /// The share of votes that differ from the majority on their verifier, 0 to 1.
    pub flip_rate: f64,
}

/// How much of a task was judged: a score without it hides errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// All verifiers of the task.
    pub total: usize,
    /// Those that were judged.
    pub judged: usize,
    /// Those judged with a score above 0.
    pub passed: usize,
    /// Those that ended in an error.
    pub errors: usize,
    /// Those that were not judged because they cannot be or need not be: without a transcript, or
    /// after a failed dependency. They have no part in the score.
    #[serde(default, skip_serializing_if = "is_none_skipped")]
    pub skipped: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
const fn is_none_skipped(count: &usize) -> bool {
    *count == 0
}

impl Coverage {
    /// Counts `results`.
    #[must_use]
    pub fn of(results: &[VerifierResult]) -> Self {
        let errors = results
            .iter()
            .filter(|result| result.status == VerifierStatus::Error)
            .count();
        let skipped = results.iter().filter(|result| result.skipped()).count();
        Self {
            total: results.len(),
            judged: results.len() - errors - skipped,
            passed: results.iter().filter(|result| result.passed()).count(),
            errors,
            skipped,
        }
    }
}

/// What the judge calls of one grading run used together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeUsage {
    /// Calls that were answered.
    pub calls: u64,
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the replies.
    pub completion_tokens: u64,
    /// Cost in US dollars of the calls whose price is known.
    pub cost_usd: f64,
    /// Calls whose price is not known.
    pub unpriced_calls: u64,
    /// Answers that came from a cache, without a call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_answers: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(score: f64, status: VerifierStatus) -> VerifierResult {
        VerifierResult {
            verifier_id: "v".into(),
            verifier_version: 1,
            score,
            verifier_result_values: Object::new(),
            status,
            message: String::new(),
        }
    }

    #[test]
    fn an_errored_verifier_is_neither_judged_nor_passed() {
        let coverage = Coverage::of(&[
            result(1.0, VerifierStatus::Ok),
            result(0.0, VerifierStatus::Ok),
            result(1.0, VerifierStatus::Error),
        ]);
        assert_eq!(
            coverage,
            Coverage {
                total: 3,
                judged: 2,
                passed: 1,
                errors: 1,
                skipped: 0
            }
        );
    }
}
