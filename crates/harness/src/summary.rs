//! What came of a run, in numbers.

use formats::owner::Owner;
use formats::run::{FORMAT_VERSION, Summary, TrialSummary};

/// The summary of `trials`, which are in the order of the request.
///
/// The mean is over all trials that say something about the model: those with a score, and those
/// that the model failed, which count as 0. Trials that ended for any other reason are left out
/// and counted beside it.
pub(crate) fn summarize(
    run_id: &str,
    finished_at: String,
    duration: f64,
    trials: Vec<TrialSummary>,
) -> Summary {
    let scores: Vec<f64> = trials
        .iter()
        .filter_map(|trial| trial.outcome.score)
        .collect();
    let unscored = trials.iter().filter(|trial| trial.outcome.score.is_none());
    let (by_model, others): (Vec<_>, Vec<_>) = unscored.partition(|trial| {
        trial
            .outcome
            .failure
            .as_ref()
            .is_some_and(|failure| failure.owner == Owner::Model)
    });
    let (model_failures, other_failures) = (by_model.len(), others.len());
    let counted = scores.len() + model_failures;
    #[expect(
        clippy::cast_precision_loss,
        reason = "runs have far fewer than 2^52 trials"
    )]
    let mean_score = (counted > 0).then(|| scores.iter().sum::<f64>() / counted as f64);
    Summary {
        format_version: FORMAT_VERSION,
        run_id: run_id.to_owned(),
        finished_at,
        duration,
        scored: scores.len(),
        mean_score,
        model_failures,
        other_failures,
        trials,
        budget: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::owner::Failure;
    use formats::run::{TrialOutcome, TrialSeconds};

    fn trial(score: Option<f64>, owner: Option<Owner>) -> TrialSummary {
        TrialSummary {
            task: "t".into(),
            attempt: 1,
            folder: "trials/t/1".into(),
            model: "scripted/x".into(),
            outcome: TrialOutcome {
                agent_status: None,
                score,
                coverage: None,
                failure: owner.map(|owner| Failure::new(owner, "k", "m")),
            },
            steps: 0,
            tool_calls: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            cost_usd: None,
            seconds: TrialSeconds::default(),
        }
    }

    #[test]
    fn model_failures_count_as_zero_and_infrastructure_failures_not_at_all() {
        let summary = summarize(
            "r",
            String::new(),
            1.0,
            vec![
                trial(Some(1.0), None),
                trial(Some(0.5), None),
                trial(None, Some(Owner::Model)),
                trial(None, Some(Owner::Infrastructure)),
                trial(None, Some(Owner::Cancelled)),
            ],
        );
        assert_eq!(summary.mean_score, Some(0.5));
        assert_eq!(
            (
                summary.scored,
                summary.model_failures,
                summary.other_failures
            ),
            (2, 1, 2)
        );
    }

    #[test]
    fn without_a_trial_that_counts_there_is_no_mean() {
        let summary = summarize(
            "r",
            String::new(),
            1.0,
            vec![trial(None, Some(Owner::Infrastructure))],
        );
        assert_eq!(summary.mean_score, None);
    }
}
