//! What the page of a run shows.

use formats::run::{Summary, TrialSummary};
use serde::Serialize;

use crate::excerpt::one_line;
use crate::figures::{cost, count, number_of, score, seconds};

/// Trials that are listed.
const TRIALS: usize = 5000;

/// The page of a run, as its template takes it.
#[derive(Serialize)]
pub(super) struct Page {
    run: String,
    finished: String,
    mean: Option<String>,
    /// The mean as a share of the ring around it, between 0 and 1.
    share: f64,
    used: Vec<(&'static str, String)>,
    rows: Vec<Row>,
    more: usize,
}

#[derive(Serialize)]
struct Row {
    task: String,
    attempt: u32,
    link: String,
    model: String,
    status: &'static str,
    score: Option<String>,
    good: bool,
    verifiers: String,
    steps: String,
    cost: String,
    time: String,
    failure: Option<String>,
}

impl Page {
    pub(super) fn of(summary: &Summary, trial_page: &str) -> Self {
        let mut used = vec![
            ("trials", count(summary.trials.len() as u64)),
            ("with a score", count(summary.scored as u64)),
            ("failed by the model", count(summary.model_failures as u64)),
            ("failed otherwise", count(summary.other_failures as u64)),
        ];
        let priced: Option<f64> = summary.trials.iter().map(|trial| trial.cost_usd).sum();
        if let Some(usd) = priced {
            used.push(("cost", cost(Some(usd))));
        }
        used.push(("time", seconds(summary.duration)));
        Self {
            run: one_line(&summary.run_id, 100),
            finished: one_line(&summary.finished_at, 40),
            mean: summary.mean_score.map(score),
            share: summary.mean_score.unwrap_or(0.0).clamp(0.0, 1.0),
            used,
            rows: summary
                .trials
                .iter()
                .take(TRIALS)
                .map(|trial| Row::of(trial, trial_page))
                .collect(),
            more: summary.trials.len().saturating_sub(TRIALS),
        }
    }
}

impl Row {
    fn of(trial: &TrialSummary, trial_page: &str) -> Self {
        let outcome = &trial.outcome;
        let verifiers = outcome.coverage.map_or_else(String::new, |coverage| {
            let errors = match coverage.errors {
                0 => String::new(),
                errors => format!(", {}", number_of(errors as u64, "error")),
            };
            format!("{} of {} passed{errors}", coverage.passed, coverage.total)
        });
        Self {
            task: one_line(&trial.task, 80),
            attempt: trial.attempt,
            link: path_of(&format!("{}/{trial_page}", trial.folder)),
            model: one_line(&trial.model, 80),
            status: outcome
                .agent_status
                .map_or("not begun", |status| status.as_str()),
            score: outcome.score.map(score),
            good: outcome.score.is_some_and(|score| score > 0.0),
            verifiers,
            steps: count(trial.steps),
            cost: trial
                .cost_usd
                .map_or_else(String::new, |usd| cost(Some(usd))),
            time: seconds(trial.seconds.total),
            failure: outcome.failure.as_ref().map(|failure| {
                format!(
                    "{} ({}): {}",
                    one_line(&failure.kind, 40),
                    failure.owner,
                    one_line(&failure.message, 300)
                )
            }),
        }
    }
}

/// A relative path as a link, so that no character of a folder's name is read as anything else
/// (RFC 3986, section 2.3).
fn path_of(path: &str) -> String {
    use std::fmt::Write as _;
    let mut link = String::from("./");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            other => {
                // Writing to a string cannot fail.
                let _ = write!(link, "%{other:02X}");
            }
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn a_link_stays_a_relative_path() {
        assert_eq!(path_of("trials/a b/1/x.html"), "./trials/a%20b/1/x.html");
        assert_eq!(path_of("javascript:x"), "./javascript%3Ax");
        assert_eq!(path_of("ü?#"), "./%C3%BC%3F%23");
    }
}
