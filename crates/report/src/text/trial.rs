//! What came of one trial.

use formats::run::TrialSummary;

use super::{Colour, Style, changes, verifiers};
use crate::excerpt::{Bounds, excerpt, one_line, wrap};
use crate::figures::{cost, count, number_of, seconds};
use crate::{Trial, hint};

/// How much of the answer is shown.
const ANSWER: Bounds = Bounds {
    lines: 40,
    characters: 4000,
};

/// How much of a failure's message is shown.
const MESSAGE: Bounds = Bounds {
    lines: 30,
    characters: 4000,
};

/// What came of `trial`: the answer, what changed in the world, each verifier, the score, what it
/// used, where the files are, and on failure who has to act and how. Ends with a line break.
#[must_use]
pub fn trial(trial: &Trial<'_>, style: Style) -> String {
    let summary = trial.summary;
    let mut sections = vec![vec![title(summary, style)]];
    if let Some(answer) = answer(trial, style) {
        sections.push(answer);
    }
    if let Some(diff) = trial.diff {
        sections.push(changes::lines(diff, style));
    }
    if let Some(grades) = trial.grades {
        sections.push(verifiers::lines(trial, grades, style));
    }
    if let Some(failure) = failure(trial, style) {
        sections.push(failure);
    }
    let mut end = vec![verifiers::score_line(trial, style)];
    end.extend(used(trial, style));
    sections.push(end);
    let sections: Vec<String> = sections.iter().map(|lines| lines.join("\n")).collect();
    format!("{}\n", sections.join("\n\n"))
}

fn title(summary: &TrialSummary, style: Style) -> String {
    let task = style.paint(Colour::Bold, &one_line(&summary.task, 60));
    format!(
        "{task}, attempt {}, {}",
        summary.attempt,
        one_line(&summary.model, 60)
    )
}

fn answer(trial: &Trial<'_>, style: Style) -> Option<Vec<String>> {
    let run = trial.trajectory?;
    let title = style.paint(Colour::Bold, "Answer");
    let Some(answer) = trial.answer() else {
        return Some(vec![format!("{title}  none (agent {})", run.status)]);
    };
    let mut lines = vec![format!("{title}  (agent {})", run.status)];
    lines.extend(wrap(&excerpt(&answer, ANSWER), style.width, "  "));
    Some(lines)
}

fn failure(trial: &Trial<'_>, style: Style) -> Option<Vec<String>> {
    let failure = trial.failure()?;
    let mut lines = vec![format!(
        "{}  {} ({})",
        style.paint(Colour::Red, "Failed"),
        one_line(&failure.kind, 40),
        failure.owner
    )];
    lines.extend(wrap(&excerpt(&failure.message, MESSAGE), style.width, "  "));
    lines.push(format!(
        "{}    {}",
        style.paint(Colour::Bold, "Hint"),
        hint(failure)
    ));
    Some(lines)
}

fn used(trial: &Trial<'_>, style: Style) -> Vec<String> {
    let summary = trial.summary;
    let label = |word: &str| style.paint(Colour::Dim, word);
    let mut lines = vec![format!(
        "{}   {}, {}, {} + {} tokens, {}",
        label("Used"),
        number_of(summary.steps, "step"),
        number_of(summary.tool_calls, "tool call"),
        count(summary.prompt_tokens),
        count(summary.completion_tokens),
        cost(summary.cost_usd),
    )];
    if let Some(judge) = trial.grades.and_then(|grades| grades.judge_usage)
        && judge.calls > 0
    {
        lines.push(format!(
            "{}  {}, {} + {} tokens",
            label("Judge"),
            number_of(judge.calls, "call"),
            count(judge.prompt_tokens),
            count(judge.completion_tokens),
        ));
    }
    let parts = &summary.seconds;
    lines.push(format!(
        "{}   {} (environment {}, agent {}, snapshot {}, grading {})",
        label("Time"),
        seconds(parts.total),
        seconds(parts.environment),
        seconds(parts.agent),
        seconds(parts.snapshot),
        seconds(parts.grading),
    ));
    if let Some(folder) = trial.folder {
        lines.push(format!("{}  {}", label("Files"), folder.display()));
    }
    lines
}
