//! `difficulty_weighted_average`: the weight follows the criterion's difficulty (§7.9).

use formats::grades::ScoringResults;
use formats::lenient;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Judged, Scoring, scored};

/// Settings of `difficulty_weighted_average`. A weight that is no number counts as absent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct DifficultyConfig {
    /// Weight of low difficulty; 1 if absent.
    low_weight: Option<Value>,
    /// Weight of medium difficulty; 3 if absent.
    medium_weight: Option<Value>,
    /// Weight of high difficulty; 5 if absent.
    high_weight: Option<Value>,
    /// The difficulty of verifiers that name none; Medium if absent.
    default_difficulty: Option<String>,
}

#[derive(Clone, Copy)]
enum Difficulty {
    Low,
    Medium,
    High,
}

impl Difficulty {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_lowercase().as_str() {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }
}

pub(super) struct DifficultyWeighted;

impl Scoring for DifficultyWeighted {
    type Config = DifficultyConfig;

    fn id(&self) -> &'static str {
        "difficulty_weighted_average"
    }

    fn about(&self) -> &'static str {
        "the average weighted by each criterion's difficulty"
    }

    fn score(
        &self,
        config: &DifficultyConfig,
        judged: &[Judged<'_>],
    ) -> Result<ScoringResults, String> {
        let weight = |setting: &Option<Value>, default: f64| {
            setting
                .as_ref()
                .and_then(lenient::number)
                .unwrap_or(default)
        };
        let weights = [
            weight(&config.low_weight, 1.0),
            weight(&config.medium_weight, 3.0),
            weight(&config.high_weight, 5.0),
        ];
        let default = config
            .default_difficulty
            .as_deref()
            .and_then(Difficulty::parse)
            .unwrap_or(Difficulty::Medium);
        let (mut sum, mut total, mut skipped) = (0.0, 0.0, 0_usize);
        let mut counts = [0_usize; 3];
        for entry in judged {
            let difficulty = entry
                .verifier
                .verifier_values
                .get("difficulty")
                .and_then(Value::as_str)
                .and_then(Difficulty::parse)
                .unwrap_or(default);
            let weight = weights[difficulty as usize];
            if weight == 0.0 {
                skipped += 1;
                continue;
            }
            counts[difficulty as usize] += 1;
            sum += entry.score() * weight;
            total += weight;
        }
        let average = if total > 0.0 {
            (sum / total).clamp(0.0, 1.0)
        } else {
            0.0
        };
        let [low, medium, high] = counts;
        Ok(scored(
            average,
            json!({
                "weighted_sum": sum,
                "total_weights": total,
                "verifier_count": low + medium + high,
                "low_count": low,
                "medium_count": medium,
                "high_count": high,
                "skipped_zero_weight": skipped,
                "low_weight": weights[0],
                "medium_weight": weights[1],
                "high_weight": weights[2],
                "final_score_percentage": average * 100.0,
            }),
        ))
    }
}
