//! `criteria_level_clamped_average`: negative scores count as 0 (§7.7).

use formats::grades::ScoringResults;
use serde_json::json;

use super::{Judged, Scoring, ratio, scored};
use settings::NoSettings;

pub(super) struct ClampedAverage;

impl Scoring for ClampedAverage {
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "criteria_level_clamped_average"
    }

    fn about(&self) -> &'static str {
        "the average of all scores with negative ones counted as 0"
    }

    fn score(&self, _: &NoSettings, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let count = |test: fn(f64) -> bool| judged.iter().filter(|e| test(e.score())).count();
        let original: f64 = judged.iter().map(Judged::score).sum();
        let clamped: f64 = judged.iter().map(|entry| entry.score().max(0.0)).sum();
        let average = ratio(clamped, judged.len(), 0.0);
        Ok(scored(
            average,
            json!({
                "total_count": judged.len(),
                "positive_count": count(|score| score > 0.0),
                "zero_count": count(|score| score <= 0.0),
                "negative_count": count(|score| score < 0.0),
                "original_average": ratio(original, judged.len(), 0.0),
                "final_score_percentage": average * 100.0,
            }),
        ))
    }
}
