//! `ace_criterion_score`: +1, 0 or −1 per criterion, with hurdles (§7.8).

use formats::grades::ScoringResults;
use serde_json::{Value, json};

use super::{Judged, Scoring, ratio, scored, task_or_all};
use settings::NoSettings;

pub(super) struct CriterionScore;

impl Scoring for CriterionScore {
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "ace_criterion_score"
    }

    fn about(&self) -> &'static str {
        "met criteria minus violated ones over all, and 0 where a hurdle is not met"
    }

    fn score(&self, _: &NoSettings, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let counted = task_or_all(judged);
        let points: Vec<i64> = counted.iter().map(|entry| points(entry.score())).collect();
        let of = |wanted: i64| points.iter().filter(|points| **points == wanted).count();
        let hurdles: Vec<bool> = counted
            .iter()
            .zip(&points)
            .filter(|(entry, _)| hurdle_tag(entry) == Some("Hurdle"))
            .map(|(_, points)| *points == 1)
            .collect();
        let all_hurdles = hurdles.iter().all(|passed| *passed);
        let total: i64 = points.iter().sum();
        let total_after = if all_hurdles { total } else { 0 };
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of verifiers are far below 2^53"
        )]
        let normalized = ratio(total_after as f64, counted.len(), 0.0).max(0.0);
        let details: Vec<Value> = counted
            .iter()
            .zip(&points)
            .map(|(entry, points)| detail(entry, *points))
            .collect();
        Ok(scored(
            normalized,
            json!({
                "total_score": total,
                "total_hurdle_score": total_after,
                "pass_count": of(1),
                "fail_response_count": of(0),
                "fail_source_count": of(-1),
                "hurdle_count": hurdles.len(),
                "hurdle_pass_count": hurdles.iter().filter(|passed| **passed).count(),
                "hurdle_all_pass": all_hurdles,
                "total_count": counted.len(),
                "normalized_score": normalized,
                "criteria_details": details,
            }),
        ))
    }
}

fn points(score: f64) -> i64 {
    if score < 0.0 {
        -1
    } else {
        i64::from(score >= 0.99)
    }
}

fn hurdle_tag<'a>(entry: &'a Judged<'_>) -> Option<&'a str> {
    entry.verifier.verifier_values.get("hurdle_tag")?.as_str()
}

fn detail(entry: &Judged<'_>, points: i64) -> Value {
    let description: String = entry
        .result
        .verifier_result_values
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .chars()
        .take(80)
        .collect();
    json!({
        "verifier_id": entry.verifier.verifier_id,
        "raw_score": entry.score(),
        "ace_score": points,
        "hurdle_tag": hurdle_tag(entry).unwrap_or("Not"),
        "description": description,
    })
}
