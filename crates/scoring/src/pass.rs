//! `auxiliary_pass_rate` and `all_pass`: how many verifiers passed, and whether all did (§7.10,
//! §7.11).

use formats::Object;
use formats::grades::ScoringResults;
use formats::task::Verifier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Judged, Scoring, ratio, scored};
use settings::number;
use settings::problem::Findings;

/// Settings of `auxiliary_pass_rate` and `all_pass`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct PassConfig {
    /// Score from which a verifier counts as passed.
    #[serde(deserialize_with = "number")]
    pass_threshold: f64,
    /// Only verifiers with this `evaluation_target`; all if absent or empty.
    evaluation_target: Option<String>,
}

impl Default for PassConfig {
    fn default() -> Self {
        Self {
            pass_threshold: 0.99,
            evaluation_target: None,
        }
    }
}

/// What was counted.
struct Count {
    passed: usize,
    total: usize,
}

impl PassConfig {
    fn counts(&self, verifier: &Verifier) -> bool {
        match self.evaluation_target.as_deref().map(str::trim) {
            None | Some("") => true,
            Some(target) => verifier.evaluation_target == target,
        }
    }

    fn check(&self, verifiers: &[Verifier], findings: &mut Findings) {
        if !verifiers.iter().any(|verifier| self.counts(verifier)) {
            let target = self.evaluation_target.clone();
            findings.warning("evaluation_target", "no verifier counts", target);
        }
    }

    /// The verifiers that count, and those of them that passed.
    fn count(&self, judged: &[Judged<'_>]) -> Result<Count, String> {
        let mut count = Count {
            passed: 0,
            total: 0,
        };
        for entry in judged.iter().filter(|entry| self.counts(entry.verifier)) {
            count.total += 1;
            count.passed += usize::from(entry.score() >= self.pass_threshold);
        }
        if count.total == 0 {
            return Err("no verifier counts, so there is no share of passed ones".to_owned());
        }
        Ok(count)
    }
}

impl Count {
    fn values(&self, config: &PassConfig) -> Object {
        let mut values = Object::new();
        values.insert("passed_count".to_owned(), self.passed.into());
        values.insert("failed_count".to_owned(), (self.total - self.passed).into());
        values.insert("total_count".to_owned(), self.total.into());
        values.insert("pass_threshold".to_owned(), config.pass_threshold.into());
        values
    }
}

pub(super) struct PassRate;

impl Scoring for PassRate {
    type Config = PassConfig;

    fn id(&self) -> &'static str {
        "auxiliary_pass_rate"
    }

    fn about(&self) -> &'static str {
        "the share of verifiers that passed; no score where none counts"
    }

    fn check(&self, config: &PassConfig, verifiers: &[Verifier], findings: &mut Findings) {
        config.check(verifiers, findings);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of verifiers are far below 2^53"
    )]
    fn score(&self, config: &PassConfig, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let count = config.count(judged)?;
        let share = ratio(count.passed as f64, count.total, 0.0);
        let mut values = count.values(config);
        values.insert("final_score_percentage".to_owned(), json!(share * 100.0));
        Ok(scored(share, values.into()))
    }
}

pub(super) struct AllPass;

impl Scoring for AllPass {
    type Config = PassConfig;

    fn id(&self) -> &'static str {
        "all_pass"
    }

    fn about(&self) -> &'static str {
        "1 if every verifier passed, else 0; no score where none counts"
    }

    fn check(&self, config: &PassConfig, verifiers: &[Verifier], findings: &mut Findings) {
        config.check(verifiers, findings);
    }

    fn score(&self, config: &PassConfig, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let count = config.count(judged)?;
        let score = f64::from(u8::from(count.passed == count.total));
        Ok(scored(score, count.values(config).into()))
    }
}
