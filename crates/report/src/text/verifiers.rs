//! What was checked, and how it came out.

use formats::grades::{Coverage, Grades, VerifierResult, VerifierStatus};

use super::{Colour, Style};
use crate::Trial;
use crate::excerpt::{Bounds, excerpt, one_line, wrap};
use crate::figures::{number_of, score};
use crate::trial::{criteria, reason};

/// Verifiers that are listed.
const VERIFIERS: usize = 100;

/// How much of a reason is shown.
const REASON: Bounds = Bounds {
    lines: 8,
    characters: 800,
};

/// `2 of 3 passed, 1 could not be judged`.
pub(crate) fn coverage(coverage: Coverage) -> String {
    let mut text = format!("{} of {} passed", coverage.passed, coverage.total);
    if coverage.errors > 0 {
        text.push_str(&format!(", {} could not be judged", coverage.errors));
    }
    text
}

/// The word of a result.
pub(crate) fn verdict(result: &VerifierResult) -> &'static str {
    match result.status {
        VerifierStatus::Error => "ERROR",
        VerifierStatus::Ok if result.passed() => "PASS",
        // A penalty that applies is no check that was missed.
        VerifierStatus::Ok if result.score < 0.0 => "PENALTY",
        VerifierStatus::Ok => "FAIL",
    }
}

/// The section's lines.
pub(super) fn lines(trial: &Trial<'_>, grades: &Grades, style: Style) -> Vec<String> {
    let all = grades.coverage;
    let all = all.unwrap_or_else(|| Coverage::of(&grades.verifier_results));
    let title = style.paint(Colour::Bold, "Verifiers");
    let mut lines = vec![format!("{title}  {}", coverage(all))];
    for result in grades.verifier_results.iter().take(VERIFIERS) {
        let verdict = verdict(result);
        let colour = match verdict {
            "PASS" => Colour::Green,
            "ERROR" => Colour::Yellow,
            _ => Colour::Red,
        };
        let shown = match result.status {
            VerifierStatus::Ok => score(result.score),
            VerifierStatus::Error => "–".to_owned(),
        };
        let asked = trial.verifier(result).and_then(criteria).unwrap_or("");
        let id = one_line(&result.verifier_id, 30);
        let space = style.width.saturating_sub(26 + id.len()).max(20);
        let line = format!(
            "  {} {shown:>5}  {id}  {}",
            style.paint(colour, &format!("{verdict:<7}")),
            one_line(asked, space)
        );
        lines.push(line.trim_end().to_owned());
        let reason = excerpt(reason(result).trim(), REASON);
        lines.extend(wrap(&reason, style.width, "                 "));
    }
    if grades.verifier_results.len() > VERIFIERS {
        let more = grades.verifier_results.len() - VERIFIERS;
        lines.push(format!("  … and {more} more"));
    }
    lines
}

/// `Score  0.667  (2 of 3 verifiers judged)`, or that there is none.
pub(super) fn score_line(trial: &Trial<'_>, style: Style) -> String {
    let outcome = &trial.summary.outcome;
    let title = style.paint(Colour::Bold, "Score");
    let of_grades = || {
        trial
            .grades
            .map(|grades| Coverage::of(&grades.verifier_results))
    };
    let coverage = outcome.coverage.or_else(of_grades);
    let judged = coverage.map_or_else(
        || "nothing was judged".to_owned(),
        |coverage| {
            let all = number_of(coverage.total as u64, "verifier");
            format!("{} of {all} judged", coverage.judged)
        },
    );
    match outcome.score {
        Some(value) => {
            let value = style.paint(Colour::Bold, &score(value));
            format!("{title}  {value}  ({judged})")
        }
        None => format!("{title}  none  ({judged})"),
    }
}
