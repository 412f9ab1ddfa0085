//! `apex_v1_grade_score`: the share of criteria that are met in full (§7.6).

use formats::grades::ScoringResults;
use serde_json::json;

use super::{Judged, Scoring, ratio, scored, task_or_all};
use settings::NoSettings;

/// Scores from here on count as met.
const PASS: f64 = 0.99;

pub(super) struct GradeScore;

impl Scoring for GradeScore {
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "apex_v1_grade_score"
    }

    fn about(&self) -> &'static str {
        "the share of the task's criteria that are met in full"
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of verifiers are far below 2^53"
    )]
    fn score(&self, _: &NoSettings, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let counted = task_or_all(judged);
        let passed = counted.iter().filter(|entry| entry.score() >= PASS).count();
        let share = ratio(passed as f64, counted.len(), 0.0);
        Ok(scored(
            share,
            json!({
                "passed_count": passed,
                "failed_count": counted.len() - passed,
                "total_count": counted.len(),
                "grade_score_percentage": share * 100.0,
            }),
        ))
    }
}
