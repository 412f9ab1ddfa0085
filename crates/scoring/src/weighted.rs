//! Averages with a weight per verifier, plain and with gates (§7.4, §7.5).

use std::collections::BTreeMap;

use formats::grades::ScoringResults;
use formats::{Object, lenient};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Judged, Scoring, ratio, scored};
use settings::number;

/// Settings of `deep_research_weighted_average`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct AverageConfig {
    /// The custom field of a verifier that holds its weight.
    weight_custom_field_id: Option<String>,
    /// The key of `verifier_values` that holds the weight.
    weight_verifier_value_id: Option<String>,
}

/// Sums over the verifiers whose weight is not 0.
#[derive(Default)]
struct Sums {
    weighted: f64,
    weights: f64,
    used: usize,
    skipped: usize,
}

impl Sums {
    fn add(&mut self, score: f64, weight: f64) {
        if weight == 0.0 {
            self.skipped += 1;
            return;
        }
        self.used += 1;
        self.weighted += score * weight;
        // A negative weight marks a bad criterion: meeting it costs, and it promises nothing.
        self.weights += weight.max(0.0);
    }

    fn average(&self) -> f64 {
        if self.weights > 0.0 {
            (self.weighted / self.weights).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }
}

pub(super) struct WeightedAverage;

impl Scoring for WeightedAverage {
    type Config = AverageConfig;

    fn id(&self) -> &'static str {
        "deep_research_weighted_average"
    }

    fn about(&self) -> &'static str {
        "the average weighted by each verifier's own number; negative weights subtract"
    }

    fn score(
        &self,
        config: &AverageConfig,
        judged: &[Judged<'_>],
    ) -> Result<ScoringResults, String> {
        let mut sums = Sums::default();
        for entry in judged {
            sums.add(entry.score(), weight(config, entry));
        }
        Ok(scored(
            sums.average(),
            json!({
                "weighted_sum": sums.weighted,
                "total_weights": sums.weights,
                "verifier_count": sums.used,
                "skipped_zero_weight": sums.skipped,
            }),
        ))
    }
}

/// The first usable number of: the configured custom field, the configured value,
/// `numerical_weight`, 1.
fn weight(config: &AverageConfig, entry: &Judged<'_>) -> f64 {
    let custom = entry.verifier.verifier_custom_field_values.as_ref();
    let values = &entry.verifier.verifier_values;
    let from =
        |object: Option<&Object>, key: Option<&str>| object?.get(key?).and_then(lenient::number);
    from(custom, config.weight_custom_field_id.as_deref())
        .or_else(|| from(Some(values), config.weight_verifier_value_id.as_deref()))
        .or_else(|| from(Some(values), Some("numerical_weight")))
        .unwrap_or(1.0)
}

/// Settings of `deep_research_weighted_average_with_gates`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct GatesConfig {
    /// Custom field values that mark a verifier as an expert's.
    expert_assessment_values: Vec<String>,
    /// Share of passed expert verifiers below which the floor cap holds.
    #[serde(deserialize_with = "number")]
    expert_assessment_pass_rate_threshold: f64,
    /// The cap when too few expert verifiers pass.
    #[serde(deserialize_with = "number")]
    expert_assessment_floor_cap: f64,
    /// Score from which a verifier counts as passed.
    #[serde(deserialize_with = "number")]
    pass_score_threshold: f64,
    /// The cap of each gate, by custom field value.
    gate_caps: BTreeMap<String, f64>,
    /// Custom field values that mark a critical value.
    critical_value_field_values: Vec<String>,
    /// Factor per failed critical value.
    #[serde(deserialize_with = "number")]
    critical_value_multiplier: f64,
    /// How many critical values authors should use at most; not enforced.
    #[serde(deserialize_with = "number")]
    critical_value_max_count: f64,
}

impl Default for GatesConfig {
    fn default() -> Self {
        Self {
            expert_assessment_values: vec!["Expert Assessment".to_owned()],
            expert_assessment_pass_rate_threshold: 0.25,
            expert_assessment_floor_cap: 0.30,
            pass_score_threshold: 0.5,
            gate_caps: BTreeMap::from([
                ("Gate: Missing Scope".to_owned(), 0.5),
                ("Gate: Ethical / Safety Violation".to_owned(), 0.4),
            ]),
            critical_value_field_values: vec!["Gate: Critical Value".to_owned()],
            critical_value_multiplier: 0.8,
            critical_value_max_count: 5.0,
        }
    }
}

pub(super) struct WithGates;

impl Scoring for WithGates {
    type Config = GatesConfig;

    fn id(&self) -> &'static str {
        "deep_research_weighted_average_with_gates"
    }

    fn about(&self) -> &'static str {
        "a weighted average under caps by expert verifiers, gates and critical values"
    }

    fn score(&self, config: &GatesConfig, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let mut sums = Sums::default();
        for entry in judged {
            sums.add(entry.score(), strict_weight(entry)?);
        }
        let base = sums.average();
        let failed = |entry: &&Judged<'_>| entry.score() < config.pass_score_threshold;

        let experts: Vec<&Judged<'_>> = judged
            .iter()
            .filter(|entry| tag(entry, &config.expert_assessment_values).is_some())
            .collect();
        let experts_passed = experts.iter().filter(|entry| !failed(entry)).count();
        let pass_rate = ratio(as_float(experts_passed), experts.len(), 1.0);
        let floor = !experts.is_empty() && pass_rate < config.expert_assessment_pass_rate_threshold;

        let mut caps: Vec<f64> = floor
            .then_some(config.expert_assessment_floor_cap)
            .into_iter()
            .collect();
        let mut gates = Vec::new();
        let gate_names: Vec<String> = config.gate_caps.keys().cloned().collect();
        for entry in judged.iter().filter(failed) {
            for gate in tags(entry, &gate_names) {
                let cap = config.gate_caps.get(gate).copied().unwrap_or(1.0);
                caps.push(cap);
                gates.push(json!({
                    "verifier_id": entry.verifier.verifier_id,
                    "gate_value": gate,
                    "cap": cap,
                    "score": entry.score(),
                }));
            }
        }
        let before = caps.iter().copied().fold(base, f64::min).clamp(0.0, 1.0);

        let critical: Vec<(&Judged<'_>, &str)> = judged
            .iter()
            .filter_map(|entry| Some((entry, tag(entry, &config.critical_value_field_values)?)))
            .collect();
        let failed_critical: Vec<Value> = critical
            .iter()
            .filter(|(entry, _)| failed(entry))
            .map(|(entry, value)| {
                json!({
                    "verifier_id": entry.verifier.verifier_id,
                    "field_value": value,
                    "score": entry.score(),
                })
            })
            .collect();
        let factor = failed_critical
            .iter()
            .fold(1.0, |factor, _| factor * config.critical_value_multiplier);

        let values = json!({
            "base_score": base,
            "weighted_sum": sums.weighted,
            "total_weights": sums.weights,
            "verifier_count": sums.used,
            "skipped_zero_weight": sums.skipped,
            "expert_assessment_total": experts.len(),
            "expert_assessment_passed": experts_passed,
            "expert_assessment_pass_rate": (!experts.is_empty()).then_some(pass_rate),
            "expert_assessment_floor_triggered": floor,
            "triggered_gates": gates,
            "triggered_caps": caps,
            "critical_value_total": critical.len(),
            "critical_value_failed": failed_critical.len(),
            "critical_value_multiplier_applied": factor,
            "score_before_critical_value": before,
            "failed_critical_values": failed_critical,
        });
        Ok(scored((before * factor).clamp(0.0, 1.0), values))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of verifiers are far below 2^53"
)]
fn as_float(count: usize) -> f64 {
    count as f64
}

/// `numerical_weight`; missing is 1, anything that is no number is a mistake.
fn strict_weight(entry: &Judged<'_>) -> Result<f64, String> {
    match entry.verifier.verifier_values.get("numerical_weight") {
        None | Some(Value::Null) => Ok(1.0),
        Some(value) => lenient::number(value).ok_or_else(|| {
            format!(
                "verifier `{}`: `numerical_weight` must be a number, got {value}",
                entry.verifier.verifier_id
            )
        }),
    }
}

/// Those of `known` that some custom field of the verifier has as its value.
fn tags<'a>(entry: &Judged<'_>, known: &'a [String]) -> Vec<&'a str> {
    let Some(fields) = entry.verifier.verifier_custom_field_values.as_ref() else {
        return Vec::new();
    };
    let known = known.iter().map(String::as_str);
    known
        .filter(|tag| fields.values().any(|value| value.as_str() == Some(*tag)))
        .collect()
}

/// The first of them.
fn tag<'a>(entry: &Judged<'_>, known: &'a [String]) -> Option<&'a str> {
    tags(entry, known).first().copied()
}
