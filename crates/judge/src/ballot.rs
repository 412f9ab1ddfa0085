//! Votes of judges and what they decide together.

use formats::Object;
use formats::grades::{JudgeAgreement, VerifierResult};
use serde_json::{Value, json};

use crate::error::{JudgeError, JudgeErrorKind};

/// What a judge says about a criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It is met.
    Met,
    /// It is not met.
    NotMet,
    /// What would decide was not shown.
    CannotAssess,
}

impl Decision {
    /// `Met` or `NotMet`.
    #[must_use]
    pub const fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::NotMet }
    }

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not_met",
            Self::CannotAssess => "cannot_assess",
        }
    }
}

/// One answer of one judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Opinion {
    /// The verdict.
    pub decision: Decision,
    /// Why.
    pub rationale: String,
    /// What else the answer holds.
    pub details: Object,
}

/// What the votes decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// Whether the criterion is met.
    pub met: bool,
    /// The reason of the first vote of the majority.
    pub rationale: String,
    /// What else that vote holds.
    pub details: Object,
    /// Values for the result: `judge_votes` and `judge_split`; empty for a single vote.
    pub votes: Object,
}

/// A vote that was cast, or the error in its place.
pub(crate) struct Vote {
    pub(crate) judge: String,
    pub(crate) outcome: Result<Opinion, JudgeError>,
}

const ALL: [Decision; 3] = [Decision::Met, Decision::NotMet, Decision::CannotAssess];

/// Counts `votes`. A decision needs more than half of all of them, those that failed included.
///
/// # Errors
/// `cannot_assess` where the majority says so, or where there is no majority; the first failed
/// vote's error where that vote could have made one.
pub(crate) fn count(votes: Vec<Vote>) -> Result<Ruling, JudgeError> {
    let of = |decision: Decision| {
        votes
            .iter()
            .filter(|vote| matches!(&vote.outcome, Ok(opinion) if opinion.decision == decision))
            .count()
    };
    let total = votes.len();
    let majority = ALL.into_iter().find(|decision| of(*decision) * 2 > total);
    let split = json!({
        "met": of(Decision::Met),
        "not_met": of(Decision::NotMet),
        "cannot_assess": of(Decision::CannotAssess),
        "errors": votes.iter().filter(|vote| vote.outcome.is_err()).count(),
    });
    let described = if total > 1 {
        described(&votes, split)
    } else {
        Object::new()
    };
    let Some(majority) = majority else {
        return Err(undecided(votes, described));
    };
    let first = votes
        .into_iter()
        .find_map(|vote| vote.outcome.ok().filter(|o| o.decision == majority));
    match first {
        Some(opinion) if majority != Decision::CannotAssess => Ok(Ruling {
            met: majority == Decision::Met,
            rationale: opinion.rationale,
            details: opinion.details,
            votes: described,
        }),
        first => {
            let rationale = first.map(|opinion| opinion.rationale).unwrap_or_default();
            let message = "the judge cannot assess the criterion from what it was shown";
            Err(cannot_assess(message, described).with_value("grade_rationale", rationale))
        }
    }
}

fn undecided(votes: Vec<Vote>, described: Object) -> JudgeError {
    match votes.into_iter().find_map(|vote| vote.outcome.err()) {
        Some(mut error) => {
            error.values.extend(described);
            error
        }
        None => cannot_assess("the judges' votes have no majority", described),
    }
}

fn cannot_assess(message: &str, described: Object) -> JudgeError {
    let mut error = JudgeError::new(JudgeErrorKind::CannotAssess, message);
    error.values = described;
    error.with_value("judge_grade", Decision::CannotAssess.as_str())
}

fn described(votes: &[Vote], split: Value) -> Object {
    let list: Vec<Value> = votes
        .iter()
        .map(|vote| match &vote.outcome {
            Ok(opinion) => json!({
                "judge_model": vote.judge,
                "verdict": opinion.decision.as_str(),
                "rationale": opinion.rationale,
            }),
            Err(error) => json!({
                "judge_model": vote.judge,
                "verdict": "error",
                "error": error.message,
            }),
        })
        .collect();
    let mut object = Object::new();
    object.insert("judge_votes".to_owned(), list.into());
    object.insert("judge_split".to_owned(), split);
    object
}

/// How far the votes behind `results` agree; `None` where no verifier had several.
#[must_use]
pub fn agreement<'a>(results: impl Iterator<Item = &'a VerifierResult>) -> Option<JudgeAgreement> {
    let mut sum = JudgeAgreement::default();
    let (mut pairs, mut equal, mut flipped) = (0_usize, 0_usize, 0_usize);
    for result in results {
        let Some(split) = result.verifier_result_values.get("judge_split") else {
            continue;
        };
        let counts = ALL.map(|decision| {
            let count = split[decision.as_str()].as_u64().unwrap_or_default();
            usize::try_from(count).unwrap_or_default()
        });
        let votes: usize = counts.iter().sum();
        if votes < 2 {
            continue;
        }
        let most = counts.into_iter().max().unwrap_or_default();
        sum.verifiers += 1;
        sum.split += usize::from(most < votes);
        sum.votes += votes;
        flipped += votes - most;
        pairs += votes * (votes - 1) / 2;
        equal += counts
            .iter()
            .map(|count| count * count.saturating_sub(1) / 2)
            .sum::<usize>();
    }
    if sum.verifiers == 0 {
        return None;
    }
    sum.agreement = share(equal, pairs);
    sum.flip_rate = share(flipped, sum.votes);
    Some(sum)
}

#[expect(clippy::cast_precision_loss, reason = "counts of votes are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(words: &[&str]) -> Vec<Vote> {
        words
            .iter()
            .enumerate()
            .map(|(at, word)| Vote {
                judge: format!("j/{at}"),
                outcome: match *word {
                    "error" => Err(JudgeError::new(JudgeErrorKind::Transport, "gone")),
                    word => Ok(Opinion {
                        decision: ALL.into_iter().find(|d| d.as_str() == word).unwrap(),
                        rationale: format!("because {at}"),
                        details: Object::new(),
                    }),
                },
            })
            .collect()
    }

    #[test]
    fn more_than_half_of_all_votes_decide() {
        let ruling = count(votes(&["not_met", "met", "met"])).unwrap();
        assert!(ruling.met);
        assert_eq!(ruling.rationale, "because 1");
        assert_eq!(
            ruling.votes["judge_split"],
            json!({"met": 2, "not_met": 1, "cannot_assess": 0, "errors": 0})
        );
        assert!(!count(votes(&["not_met"])).unwrap().met);
        assert!(count(votes(&["met"])).unwrap().votes.is_empty());
        // The lost vote could not have changed it.
        assert!(count(votes(&["met", "error", "met"])).unwrap().met);
    }

    #[test]
    fn without_a_majority_there_is_no_verdict() {
        for (words, kind) in [
            (vec!["met", "not_met"], JudgeErrorKind::CannotAssess),
            (
                vec!["met", "not_met", "cannot_assess"],
                JudgeErrorKind::CannotAssess,
            ),
            (
                vec!["cannot_assess", "cannot_assess", "met"],
                JudgeErrorKind::CannotAssess,
            ),
            (vec!["cannot_assess"], JudgeErrorKind::CannotAssess),
            // The lost vote could have decided.
            (vec!["met", "not_met", "error"], JudgeErrorKind::Transport),
            (vec!["error"], JudgeErrorKind::Transport),
        ] {
            let error = count(votes(&words)).unwrap_err();
            assert_eq!(error.kind, kind, "{words:?}");
            assert_eq!(error.values.contains_key("judge_votes"), words.len() > 1);
        }
    }

    #[test]
    fn agreement_is_reckoned_over_pairs() {
        let result = |met: u64, not_met: u64| VerifierResult {
            verifier_id: "v".to_owned(),
            verifier_version: 1,
            score: 0.0,
            verifier_result_values: [(
                "judge_split".to_owned(),
                json!({"met": met, "not_met": not_met, "cannot_assess": 0, "errors": 0}),
            )]
            .into_iter()
            .collect(),
            status: formats::grades::VerifierStatus::Ok,
            message: String::new(),
        };
        let results = [result(3, 0), result(2, 1), result(1, 0)];
        let sum = agreement(results.iter()).unwrap();
        assert_eq!((sum.verifiers, sum.split, sum.votes), (2, 1, 6));
        // Pairs: 3 of 3 and 1 of 3.
        assert!((sum.agreement - 4.0 / 6.0).abs() < 1e-12);
        assert!((sum.flip_rate - 1.0 / 6.0).abs() < 1e-12);
        assert_eq!(agreement([result(1, 0)].iter()), None);
    }
}
