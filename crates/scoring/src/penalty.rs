//! Task score minus a bounded penalty for universal criteria (§7.2, §7.3).

use formats::grades::ScoringResults;
use formats::lenient;
use formats::task::Verifier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Judged, Scoring, ratio, scored};
use settings::problem::Findings;
use settings::{flag, number};

/// Settings of `task_score_unweighted_and_universal_penalty`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PenaltyConfig {
    /// The largest part of the score that universal criteria can cost.
    #[serde(deserialize_with = "number")]
    universal_penalty_cap: f64,
    /// Violated points of universal criteria at which the penalty is full.
    #[serde(deserialize_with = "number")]
    universal_total_negative_points: f64,
    /// Whether the score is kept from 0 to 1; without it, it can be negative.
    #[serde(deserialize_with = "flag")]
    clamp_final: bool,
}

impl Default for PenaltyConfig {
    fn default() -> Self {
        Self {
            universal_penalty_cap: 0.2,
            universal_total_negative_points: 100.0,
            clamp_final: false,
        }
    }
}

/// Settings of `task_score_and_universal_penalty_weighted_sum`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(super) struct WeightedConfig {
    /// Weight of a primary objective.
    #[serde(default = "four", deserialize_with = "number")]
    task_primary_objective_scaling_factor: f64,
    /// Weight of any other criterion.
    #[serde(default = "two", deserialize_with = "number")]
    task_non_primary_objective_scaling_factor: f64,
    /// Weight of a negative score.
    #[serde(default = "a_fifth", deserialize_with = "number")]
    task_negative_scaling_factor: f64,
    #[serde(flatten)]
    penalty: PenaltyConfig,
}

const fn four() -> f64 {
    4.0
}

const fn two() -> f64 {
    2.0
}

const fn a_fifth() -> f64 {
    0.2
}

impl PenaltyConfig {
    /// The score of the task minus the penalty, with `values` and those of the penalty beside it.
    fn scored(&self, task_score: f64, judged: &[Judged<'_>], values: Value) -> ScoringResults {
        let penalty = self.penalty(judged);
        let capped = self.universal_penalty_cap * penalty;
        let mut score = task_score - capped;
        if self.clamp_final {
            score = score.clamp(0.0, 1.0);
        }
        let task = judged.iter().filter(|entry| entry.is_task()).count();
        let mut scored = scored(
            score,
            json!({
                "task_score": task_score,
                "universal_penalty": penalty,
                "capped_penalty": capped,
                "task_verifier_count": task,
                "universal_verifier_count": judged.len() - task,
            }),
        );
        if let Value::Object(values) = values {
            scored.scoring_method_result_values.extend(values);
        }
        scored
    }

    /// The share of the full penalty that violated universal criteria cost, 0 to 1.
    fn penalty(&self, judged: &[Judged<'_>]) -> f64 {
        let negative: f64 = judged
            .iter()
            .filter(|entry| !entry.is_task())
            .map(|entry| (-entry.score()).max(0.0))
            .sum();
        if self.universal_total_negative_points <= 0.0 {
            return 0.0;
        }
        (negative / self.universal_total_negative_points).clamp(0.0, 1.0)
    }
}

pub(super) struct Unweighted;

impl Scoring for Unweighted {
    type Config = PenaltyConfig;

    fn id(&self) -> &'static str {
        "task_score_unweighted_and_universal_penalty"
    }

    fn about(&self) -> &'static str {
        "the average of the task's scores minus a bounded penalty for violated universal criteria"
    }

    fn check(&self, _: &PenaltyConfig, verifiers: &[Verifier], findings: &mut Findings) {
        if !verifiers.is_empty() && verifiers.iter().all(|verifier| verifier.task_id.is_none()) {
            findings.warning(
                "scoring_defn_id",
                "no verifier has a `task_id`: the task score is 1 whatever the agent does",
                self.id(),
            );
        }
    }

    fn score(
        &self,
        config: &PenaltyConfig,
        judged: &[Judged<'_>],
    ) -> Result<ScoringResults, String> {
        let task: Vec<f64> = judged
            .iter()
            .filter(|entry| entry.is_task())
            .map(Judged::score)
            .collect();
        let task_score = ratio(task.iter().sum(), task.len(), 1.0);
        Ok(config.scored(task_score, judged, json!({})))
    }
}

pub(super) struct WeightedSum;

impl Scoring for WeightedSum {
    type Config = WeightedConfig;

    fn id(&self) -> &'static str {
        "task_score_and_universal_penalty_weighted_sum"
    }

    fn about(&self) -> &'static str {
        "as task_score_unweighted_and_universal_penalty, with primary objectives counting more"
    }

    fn score(
        &self,
        config: &WeightedConfig,
        judged: &[Judged<'_>],
    ) -> Result<ScoringResults, String> {
        let (mut cumulative, mut max) = (0.0, 0.0);
        for entry in judged.iter().filter(|entry| entry.is_task()) {
            if entry.score() < 0.0 {
                // A violated criterion takes points away and leaves the denominator.
                cumulative += entry.score() * config.task_negative_scaling_factor;
                continue;
            }
            let factor = if is_primary(entry.verifier) {
                config.task_primary_objective_scaling_factor
            } else {
                config.task_non_primary_objective_scaling_factor
            };
            cumulative += entry.score() * factor;
            max += factor;
        }
        let task_score = if max > 0.0 { cumulative / max } else { 0.0 };
        let values = json!({ "cumulative_score": cumulative, "max_possible_score": max });
        Ok(config.penalty.scored(task_score, judged, values))
    }
}

/// Primary unless the key says otherwise; a missing key means primary, null and empty mean not.
fn is_primary(verifier: &Verifier) -> bool {
    match verifier.verifier_values.get("is_primary_objective") {
        None => true,
        Some(Value::Null) => false,
        Some(Value::String(text)) if text.trim().is_empty() => false,
        Some(value) => lenient::flag(value).unwrap_or(true),
    }
}
