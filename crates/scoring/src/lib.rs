//! Scoring methods: from the results of verifiers to one score (`spec/grading.md` §7).
//!
//! [`all`] are the methods of this crate; implement [`Scoring`] to make another. [`score`] applies
//! one to results: it leaves out what was left out of the grading, and refuses where a verifier
//! could not be judged, unless [`OnVerifierError`] says otherwise.

mod ace;
mod apex;
mod clamped;
mod difficulty;
mod mean;
mod on_error;
mod pass;
mod penalty;
mod positions;
mod weighted;

use std::collections::HashMap;
use std::sync::Arc;

use formats::Object;
use formats::grades::{ScoringResults, VerifierResult, VerifierStatus};
use formats::task::Verifier;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;

use settings::problem::Findings;

pub use crate::on_error::OnVerifierError;
pub use crate::positions::display_positions;

/// A way to make one score of many. Implement it and
/// register it to add one.
///
/// It is only asked when every verifier could be judged.
pub trait Scoring: Send + Sync + 'static {
    /// Settings (`scoring_config_values`).
    type Config: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The id by which scoring configs name it (`scoring_defn_id`).
    fn id(&self) -> &str;

    /// What it computes, in one sentence.
    fn about(&self) -> &str;

    /// Reports what is wrong or surprising about these settings for these verifiers.
    fn check(&self, config: &Self::Config, verifiers: &[Verifier], findings: &mut Findings) {
        let _ = (config, verifiers, findings);
    }

    /// Computes the score.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn score(&self, config: &Self::Config, judged: &[Judged<'_>])
    -> Result<ScoringResults, String>;
}

/// A verifier with its result.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The verifier.
    pub verifier: &'a Verifier,
    /// Its result; its status is `ok`.
    pub result: &'a VerifierResult,
}

impl Judged<'_> {
    /// Whether the verifier belongs to the task; the others are universal and only cost points.
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.verifier.task_id.is_some()
    }

    /// The score.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.result.score
    }
}

/// A scoring method whose settings type is hidden.
pub trait AnyScoring: Send + Sync {
    /// The id by which scoring configs name it.
    fn id(&self) -> &str;
    /// What it computes, in one sentence.
    fn about(&self) -> &str;
    /// JSON Schema of `scoring_config_values`.
    fn schema(&self) -> Schema;
    /// Reports what is wrong or surprising about `config` for these verifiers.
    fn inspect(&self, config: &Object, verifiers: &[Verifier], findings: &mut Findings);
    /// Computes the score.
    ///
    /// # Errors
    /// A sentence that says why there is none, such as settings that cannot be read.
    fn score(&self, config: &Object, judged: &[Judged<'_>]) -> Result<ScoringResults, String>;
}

/// A scoring method on its way into a table.
pub struct TypedScoring<S>(pub S);

impl<S: Scoring> AnyScoring for TypedScoring<S> {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn about(&self) -> &str {
        self.0.about()
    }

    fn schema(&self) -> Schema {
        schemars::schema_for!(S::Config)
    }

    fn inspect(&self, config: &Object, verifiers: &[Verifier], findings: &mut Findings) {
        if let Some(typed) = settings::parse::<S::Config>(config, findings) {
            self.0.check(&typed, verifiers, findings);
        }
        settings::warn_of_unknown_keys(config, &self.schema(), &[], findings);
    }

    fn score(&self, config: &Object, judged: &[Judged<'_>]) -> Result<ScoringResults, String> {
        let mut findings = Findings::default();
        let typed = settings::parse::<S::Config>(config, &mut findings);
        match (typed, findings.errors()) {
            (_, Some(errors)) => Err(errors),
            (Some(typed), None) => self.0.score(&typed, judged),
            (None, None) => Err("the settings cannot be read".to_owned()),
        }
    }
}

/// Short names of scoring methods, with their ids.
pub const ALIASES: [(&str, &str); 3] = [
    ("mean", "template"),
    ("pass_rate", "apex_v1_grade_score"),
    ("weighted", "deep_research_weighted_average"),
];

/// The scoring methods of this crate.
#[must_use]
pub fn all() -> Vec<Arc<dyn AnyScoring>> {
    vec![
        Arc::new(TypedScoring(mean::Template)),
        Arc::new(TypedScoring(penalty::Unweighted)),
        Arc::new(TypedScoring(penalty::WeightedSum)),
        Arc::new(TypedScoring(weighted::WeightedAverage)),
        Arc::new(TypedScoring(weighted::WithGates)),
        Arc::new(TypedScoring(apex::GradeScore)),
        Arc::new(TypedScoring(clamped::ClampedAverage)),
        Arc::new(TypedScoring(ace::CriterionScore)),
        Arc::new(TypedScoring(difficulty::DifficultyWeighted)),
        Arc::new(TypedScoring(pass::PassRate)),
        Arc::new(TypedScoring(pass::AllPass)),
    ]
}

/// Scores `results` (each belongs to a verifier of `verifiers`) by `method`. Those that were left
/// out have no part in it.
///
/// Where a verifier ended in an error there is no score unless `on_error` says otherwise: a number
/// that leaves it out would look like one that does not.
///
/// # Errors
/// A sentence that says why there is no score.
pub fn score(
    method: &dyn AnyScoring,
    config: &Object,
    verifiers: &[Verifier],
    results: &[VerifierResult],
    on_error: OnVerifierError,
) -> Result<ScoringResults, String> {
    let is_error = |result: &&VerifierResult| result.status == VerifierStatus::Error;
    let errors = results.iter().filter(is_error).count();
    if on_error == OnVerifierError::FailRun
        && let Some(refusal) = refusal(verifiers, results)
    {
        return Err(refusal);
    }
    let by_id: HashMap<&str, &Verifier> = verifiers
        .iter()
        .map(|verifier| (verifier.verifier_id.as_str(), verifier))
        .collect();
    let counted: Vec<VerifierResult> = results
        .iter()
        .filter(|result| !result.skipped())
        .filter(|result| on_error != OnVerifierError::Exclude || !is_error(result))
        .cloned()
        .map(|mut result| {
            if result.status == VerifierStatus::Error {
                result.status = VerifierStatus::Ok;
                result.score = 0.0;
            }
            result
        })
        .collect();
    let judged: Vec<Judged<'_>> = counted
        .iter()
        .filter_map(|result| {
            let verifier = by_id.get(result.verifier_id.as_str())?;
            Some(Judged { verifier, result })
        })
        .collect();
    let mut scored = method.score(config, &judged)?;
    if !scored.final_score.is_finite() {
        return Err(format!(
            "`{}` gave the score {}, which is not a number to work with",
            method.id(),
            scored.final_score
        ));
    }
    if errors > 0 {
        let values = &mut scored.scoring_method_result_values;
        values.insert("verifier_errors".to_owned(), errors.into());
        values.insert("on_verifier_error".to_owned(), on_error.as_str().into());
    }
    Ok(scored)
}

/// The text that stands in place of a score when verifiers could not be judged (§3.6).
fn refusal(verifiers: &[Verifier], results: &[VerifierResult]) -> Option<String> {
    let positions = display_positions(verifiers);
    let lines: Vec<String> = results
        .iter()
        .filter(|result| result.status == VerifierStatus::Error)
        .map(|result| {
            let position = positions
                .get(result.verifier_id.as_str())
                .map_or_else(|| "?".to_owned(), ToString::to_string);
            let message = cut(&result.message);
            format!("verifier #{position} (`{}`): {message}", result.verifier_id)
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(format!(
        "no score: {} of {} verifiers could not be judged\n{}",
        lines.len(),
        results.len(),
        lines.join("\n")
    ))
}

/// At most 2000 characters of `message`.
fn cut(message: &str) -> String {
    match message.char_indices().nth(2000) {
        Some((end, _)) => format!("{}… (cut)", &message[..end]),
        None if message.is_empty() => "?".to_owned(),
        None => message.to_owned(),
    }
}

/// `sum / count`, or `empty` where there is nothing to count.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of verifiers are far below 2^53"
)]
fn ratio(sum: f64, count: usize, empty: f64) -> f64 {
    if count == 0 {
        empty
    } else {
        sum / count as f64
    }
}

/// The members of `judged` that belong to the task, or all of them if none does.
fn task_or_all<'a>(judged: &[Judged<'a>]) -> Vec<Judged<'a>> {
    let task: Vec<Judged<'a>> = judged.iter().copied().filter(Judged::is_task).collect();
    if task.is_empty() {
        judged.to_vec()
    } else {
        task
    }
}

/// A result with `values` (a JSON object) beside the score.
fn scored(final_score: f64, values: serde_json::Value) -> ScoringResults {
    let scoring_method_result_values = match values {
        serde_json::Value::Object(values) => values,
        _ => Object::new(),
    };
    ScoringResults {
        final_score,
        scoring_method_result_values,
    }
}

#[cfg(test)]
mod tests;
