//! What the template is given.

use formats::diff::{ChangeKind, FileChange};
use formats::grades::{Coverage, VerifierResult, VerifierStatus};
use serde::Serialize;

use super::timeline::{self, Part, Placed};
use super::{PageLimits, parts, picture};
use crate::excerpt::{Bounds, excerpt, one_line};
use crate::figures::{bytes, cost, count, number_of, score, seconds};
use crate::inside;
use crate::text::{changes, verifiers};
use crate::trial::{criteria, reason};
use crate::{Trial, hint};

/// Everything that a page shows, as text.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    task: String,
    attempt: u32,
    model: String,
    status: String,
    score: Option<String>,
    /// The score within 0 and 1, for the ring around it.
    share: f64,
    judged: String,
    used: Vec<(&'static str, String)>,
    times: Vec<Time>,
    failure: Option<FailureView>,
    answer: Option<String>,
    coverage: String,
    verifiers: Vec<VerifierView>,
    more_verifiers: usize,
    changed: Option<String>,
    files: Vec<FileView>,
    more_files: usize,
    opening: Vec<timeline::Said>,
    entries: Vec<Placed>,
    more_steps: usize,
    folder: Option<String>,
}

#[derive(Debug, Serialize)]
struct Time {
    name: &'static str,
    text: String,
    /// Its share of the sum, in per cent.
    share: f64,
}

#[derive(Debug, Serialize)]
struct FailureView {
    kind: String,
    owner: &'static str,
    message: String,
    hint: &'static str,
}

#[derive(Debug, Serialize)]
struct VerifierView {
    id: String,
    verdict: &'static str,
    score: String,
    criteria: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct FileView {
    mark: char,
    kind: &'static str,
    path: String,
    sizes: String,
    note: String,
    /// Class and text of each line.
    diff: Vec<(&'static str, String)>,
    /// The picture before and after, where the file is one, with a word for each.
    pictures: Vec<(&'static str, Part)>,
}

/// What may still be put into a page.
#[derive(Debug)]
pub(super) struct Space {
    limits: PageLimits,
    text: usize,
    pictures: usize,
}

impl Space {
    pub(super) const fn new(limits: PageLimits) -> Self {
        Self {
            text: limits.text_bytes,
            pictures: limits.pictures_bytes,
            limits,
        }
    }

    /// Takes the place of one step, where there is one.
    pub(super) const fn step(&mut self) -> bool {
        let there = self.limits.steps > 0;
        self.limits.steps = self.limits.steps.saturating_sub(1);
        there
    }

    /// `text` made plain and bounded, within what is left.
    pub(super) fn text(&mut self, text: &str) -> String {
        let bounds = Bounds {
            lines: self.limits.lines,
            characters: self.limits.characters,
        };
        let text = excerpt(text, bounds);
        if text.len() > self.text {
            return format!(
                "[left out: the texts of this page reach the limit of {}]",
                bytes(self.limits.text_bytes as u64)
            );
        }
        self.text -= text.len();
        text
    }

    /// The picture at `uri`, or a note in its place.
    pub(super) fn picture(&mut self, uri: &str) -> Part {
        let size = uri.len();
        if !picture::is_embedded(uri) {
            let uri = one_line(uri, 80);
            return Part::Note(format!("a picture that is not embedded: {uri}"));
        }
        if size > self.limits.picture_bytes || size > self.pictures {
            return Part::Note(format!("a picture of {} is left out", bytes(size as u64)));
        }
        self.pictures -= size;
        Part::Picture(uri.to_owned())
    }
}

impl Page {
    pub(super) fn of(trial: &Trial<'_>, limits: PageLimits) -> Self {
        let (files, most) = (limits.files, limits.verifiers);
        let mut space = Space::new(limits);
        let (summary, outcome) = (trial.summary, &trial.summary.outcome);
        let results = trial
            .grades
            .map(|grades| grades.verifier_results.as_slice());
        let results = results.unwrap_or_default();
        let changes = trial
            .diff
            .map(|diff| diff.changes.as_slice())
            .unwrap_or_default();
        let coverage = outcome.coverage.unwrap_or_else(|| Coverage::of(results));
        let timeline = timeline::of(trial, &mut space);
        Self {
            task: one_line(&summary.task, 120),
            attempt: summary.attempt,
            model: one_line(&summary.model, 80),
            status: outcome
                .agent_status
                .map_or_else(|| "not begun".to_owned(), |status| status.to_string()),
            score: outcome.score.map(score),
            share: outcome.score.unwrap_or(0.0).clamp(0.0, 1.0),
            judged: format!("{} of {} judged", coverage.judged, coverage.total),
            used: used(trial),
            times: times(trial),
            failure: trial.failure().map(|failure| FailureView {
                kind: one_line(&failure.kind, 60),
                owner: failure.owner.as_str(),
                message: space.text(&failure.message),
                hint: hint(failure),
            }),
            answer: trial.answer().map(|answer| space.text(&answer)),
            coverage: verifiers::coverage(coverage),
            verifiers: results
                .iter()
                .take(most)
                .map(|result| verifier(trial, result, &mut space))
                .collect(),
            more_verifiers: results.len().saturating_sub(most),
            changed: trial.diff.map(changes::totals),
            files: changes
                .iter()
                .take(files)
                .map(|change| file(change, &mut space))
                .collect(),
            more_files: changes.len().saturating_sub(files),
            opening: timeline.opening,
            entries: timeline.entries,
            more_steps: timeline.more,
            folder: trial.folder.map(|folder| folder.display().to_string()),
        }
    }
}

fn used(trial: &Trial<'_>) -> Vec<(&'static str, String)> {
    let summary = trial.summary;
    let tokens = |asked, replied| format!("{} + {}", count(asked), count(replied));
    let mut used = vec![
        ("steps", count(summary.steps)),
        ("tool calls", count(summary.tool_calls)),
        (
            "tokens",
            tokens(summary.prompt_tokens, summary.completion_tokens),
        ),
        ("cost", cost(summary.cost_usd)),
        ("time", seconds(summary.seconds.total)),
    ];
    let judge = trial.grades.and_then(|grades| grades.judge_usage);
    if let Some(judge) = judge.filter(|judge| judge.calls > 0) {
        let tokens = tokens(judge.prompt_tokens, judge.completion_tokens);
        used.push((
            "judge",
            format!("{}, {tokens} tokens", number_of(judge.calls, "call")),
        ));
    }
    used
}

fn times(trial: &Trial<'_>) -> Vec<Time> {
    let parts = parts(&trial.summary.seconds);
    let valid = |part: f64| if part.is_finite() { part.max(0.0) } else { 0.0 };
    let sum: f64 = parts.iter().map(|(_, part)| valid(*part)).sum();
    let share = |part: f64| {
        if sum > 0.0 {
            100.0 * valid(part) / sum
        } else {
            0.0
        }
    };
    parts
        .into_iter()
        .map(|(name, part)| Time {
            name,
            text: seconds(part),
            share: share(part),
        })
        .collect()
}

fn verifier(trial: &Trial<'_>, result: &VerifierResult, space: &mut Space) -> VerifierView {
    VerifierView {
        id: one_line(&result.verifier_id, 80),
        verdict: verifiers::verdict(result),
        score: match result.status {
            VerifierStatus::Ok => score(result.score),
            VerifierStatus::Error => "–".to_owned(),
        },
        criteria: space.text(trial.verifier(result).and_then(criteria).unwrap_or("")),
        reason: space.text(reason(result).trim()),
    }
}

fn file(change: &FileChange, space: &mut Space) -> FileView {
    let (mark, kind) = changes::mark(change.kind);
    let inside = inside::lines(change).join("\n");
    let diff = if inside.is_empty() {
        changes::without_header(change.text_diff.as_deref().unwrap_or(""))
    } else {
        &inside
    };
    let diff = space.text(diff);
    let sides = [
        ("before", &change.old_picture),
        ("after", &change.new_picture),
    ];
    let mut pictures = Vec::new();
    for (when, facts) in sides {
        if let Some(uri) = facts.as_ref().and_then(|facts| facts.preview.as_deref()) {
            pictures.push((when, space.picture(uri)));
        }
    }
    FileView {
        mark,
        // A kind that this version does not know is shown as a modification.
        kind: match change.kind {
            ChangeKind::Modified => "modified",
            _ => kind,
        },
        path: changes::path(change, 300),
        sizes: changes::sizes(change),
        note: one_line(change.note.as_deref().unwrap_or(""), 200),
        diff: diff
            .lines()
            .map(|line| {
                let class = match line.as_bytes().first() {
                    Some(b'+') => "add",
                    Some(b'-') => "del",
                    Some(b'~') => "mod",
                    Some(b'@' | b'[' | b'\\') => "meta",
                    _ => "same",
                };
                (class, line.to_owned())
            })
            .collect(),
        pictures,
    }
}
