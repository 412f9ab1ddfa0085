//! What is known of a trial, as reports take it.

use std::path::Path;

use formats::diff::WorldDiff;
use formats::event::Event;
use formats::grades::{Grades, VerifierResult};
use formats::owner::Failure;
use formats::run::TrialSummary;
use formats::task::Verifier;
use formats::trajectory::Trajectory;

/// One trial: its summary, and whatever else is on disk.
///
/// A trial that failed early has few of the documents; a report shows what there is.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// How it came out.
    pub summary: &'a TrialSummary,
    /// The agent's record.
    pub trajectory: Option<&'a Trajectory>,
    /// The agent's events; empty for trajectories of other programs.
    pub events: &'a [Event],
    /// What changed in the world.
    pub diff: Option<&'a WorldDiff>,
    /// The checks of the task, for what they ask.
    pub verifiers: &'a [Verifier],
    /// The grades.
    pub grades: Option<&'a Grades>,
    /// Where the files are.
    pub folder: Option<&'a Path>,
}

impl<'a> Trial<'a> {
    /// A trial of which nothing but its summary is known.
    #[must_use]
    pub const fn new(summary: &'a TrialSummary) -> Self {
        Self {
            summary,
            trajectory: None,
            events: &[],
            diff: None,
            verifiers: &[],
            grades: None,
            folder: None,
        }
    }

    /// What failed: in the trial, else in the agent's run.
    pub(crate) fn failure(&self) -> Option<&'a Failure> {
        let of_agent = || self.trajectory.and_then(|run| run.error.as_ref());
        self.summary.outcome.failure.as_ref().or_else(of_agent)
    }

    /// What the agent answered, where it did.
    pub(crate) fn answer(&self) -> Option<String> {
        let run = self.trajectory?;
        let answer = run.final_answer.clone().unwrap_or_else(|| run.answer());
        (!answer.trim().is_empty()).then_some(answer)
    }

    /// The verifier of a result.
    pub(crate) fn verifier(&self, result: &VerifierResult) -> Option<&'a Verifier> {
        self.verifiers
            .iter()
            .find(|verifier| verifier.verifier_id == result.verifier_id)
    }
}

/// What a verifier asks, in words, where its values say so.
pub(crate) fn criteria(verifier: &Verifier) -> Option<&str> {
    ["criteria", "criterion", "description"]
        .iter()
        .find_map(|key| verifier.verifier_values.get(*key)?.as_str())
}

/// Why a verifier was judged as it was: the judge's rationale, and what the eval says beside it.
pub(crate) fn reason(result: &VerifierResult) -> String {
    let rationale = ["grade_rationale", "negative_grade_rationale", "reason"]
        .iter()
        .find_map(|key| result.verifier_result_values.get(*key)?.as_str());
    match (rationale, result.message.as_str()) {
        (Some(rationale), "") => rationale.to_owned(),
        (Some(rationale), message) if rationale.contains(message) => rationale.to_owned(),
        (Some(rationale), message) => format!("{message}\n{rationale}"),
        (None, message) => message.to_owned(),
    }
}
