//! What came of many trials, as a table.

use formats::run::{BudgetSummary, Summary, TrialSummary};

use super::{Colour, Style};
use crate::excerpt::{column, one_line};
use crate::figures::{cost, count, number_of, score, seconds};

/// Trials that are listed.
const TRIALS: usize = 1000;

/// Columns of the table behind the name of the task.
const FIGURES: usize = 62;

/// A table of the trials of `summary` and their totals. Ends with a line break.
#[must_use]
pub fn run(summary: &Summary, style: Style) -> String {
    let name = name_columns(summary, style);
    let head = format!(
        "{}  {:>3}  {:<10} {:>7}  {:>9}  {:>6}  {:>9}  {:>10}",
        column("task", name),
        "try",
        "agent",
        "score",
        "verifiers",
        "steps",
        "cost",
        "time"
    );
    let mut lines = vec![style.paint(Colour::Bold, head.trim_end())];
    for trial in summary.trials.iter().take(TRIALS) {
        lines.push(row(trial, name, style));
        if let Some(failure) = &trial.outcome.failure {
            let message = one_line(&failure.message, style.width.saturating_sub(20).max(30));
            let text = format!(
                "  {} ({}): {message}",
                one_line(&failure.kind, 40),
                failure.owner
            );
            lines.push(style.paint(Colour::Dim, &text));
        }
    }
    if summary.trials.len() > TRIALS {
        lines.push(format!("… and {} more", summary.trials.len() - TRIALS));
    }
    lines.push(String::new());
    lines.push(totals(summary, style));
    let mut text = lines.join("\n") + "\n";
    text.extend(summary.budget.as_ref().map(budget));
    text
}

/// Columns for the names of the tasks: what the longest needs, within what the line leaves.
fn name_columns(summary: &Summary, style: Style) -> usize {
    use unicode_width::UnicodeWidthStr as _;
    let names = summary.trials.iter().map(|trial| trial.task.width());
    let longest = names.max().unwrap_or(0).max("task".len());
    longest.min(style.width.saturating_sub(FIGURES + 2).max(12))
}

fn row(trial: &TrialSummary, name: usize, style: Style) -> String {
    let outcome = &trial.outcome;
    let status = outcome
        .agent_status
        .map_or("not begun", |status| status.as_str());
    let value = outcome.score.map_or_else(|| "–".to_owned(), score);
    let verifiers = outcome.coverage.map_or_else(
        || "–".to_owned(),
        |coverage| {
            let errors = match coverage.errors {
                0 => String::new(),
                errors => format!(" {errors}!"),
            };
            format!("{}/{}{errors}", coverage.passed, coverage.total)
        },
    );
    let colour = match outcome.score {
        Some(score) if score > 0.0 => Colour::Green,
        Some(_) => Colour::Red,
        None => Colour::Yellow,
    };
    let money = trial
        .cost_usd
        .map_or_else(|| "–".to_owned(), |usd| cost(Some(usd)));
    format!(
        "{}  {:>3}  {status:<10} {}  {verifiers:>9}  {:>6}  {money:>9}  {:>10}",
        column(&trial.task, name),
        trial.attempt,
        style.paint(colour, &format!("{value:>7}")),
        count(trial.steps),
        seconds(trial.seconds.total),
    )
}

fn totals(summary: &Summary, style: Style) -> String {
    let mean = summary.mean_score.map_or_else(|| "none".to_owned(), score);
    let mut parts = vec![format!(
        "mean score {} over {} of {}",
        style.paint(Colour::Bold, &mean),
        summary.scored + summary.model_failures,
        number_of(summary.trials.len() as u64, "trial"),
    )];
    if summary.model_failures > 0 {
        parts.push(format!("{} failed by the model", summary.model_failures));
    }
    if summary.other_failures > 0 {
        parts.push(format!(
            "{} failed for other reasons",
            summary.other_failures
        ));
    }
    let priced: Vec<f64> = summary
        .trials
        .iter()
        .filter_map(|trial| trial.cost_usd)
        .collect();
    if !priced.is_empty() {
        let mut text = cost(Some(priced.iter().sum()));
        if priced.len() < summary.trials.len() {
            text.push_str(" or more");
        }
        parts.push(text);
    }
    parts.push(seconds(summary.duration));
    parts.join(", ")
}

/// What was spent of what was allowed. Ends with a line break.
#[must_use]
pub fn budget(budget: &BudgetSummary) -> String {
    let money = |usd| cost(Some(usd));
    let mut parts = vec![format!(
        "{} and {} tokens spent",
        money(budget.spent_usd),
        count(budget.spent_tokens)
    )];
    let limits = [
        budget.max_cost_usd.map(money),
        budget
            .max_tokens
            .map(|most| format!("{} tokens", count(most))),
        budget
            .max_cost_usd_per_trial
            .map(|most| format!("{} a trial", money(most))),
        budget
            .max_tokens_per_trial
            .map(|most| format!("{} tokens a trial", count(most))),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    parts.push(format!("limit {}", limits.join(" and ")));
    if budget.refused_calls > 0 {
        parts.push(format!(
            "{} refused",
            number_of(budget.refused_calls, "call")
        ));
    }
    if budget.trials_not_begun > 0 {
        parts.push(format!(
            "{} not begun",
            number_of(budget.trials_not_begun, "trial")
        ));
    }
    format!("budget: {}\n", parts.join(", "))
}
