//! The account of a run, told on stderr while it goes on.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use formats::event::EventKind;
use formats::grades::{VerifierResult, VerifierStatus};
use formats::run::TrialSummary;
use harness::{News, Progress, TrialId};
use indicatif::{ProgressBar, ProgressStyle};
use report::text::{Steps, Style};

/// Style of what goes to stderr: coloured on a terminal, unless `NO_COLOR` is set.
pub(crate) fn style_of_stderr() -> Style {
    style(std::io::stderr().is_terminal())
}

/// Style of what goes to stdout.
pub(crate) fn style_of_stdout() -> Style {
    style(std::io::stdout().is_terminal())
}

fn style(terminal: bool) -> Style {
    if terminal && std::env::var_os("NO_COLOR").is_none() {
        Style::coloured()
    } else {
        Style::default()
    }
}

/// Tells what happens: every step of a single trial, one line per trial of many. On a terminal, a
/// progress line stands below.
pub(crate) struct Account {
    single: bool,
    style: Style,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    steps: BTreeMap<String, Steps>,
    finished: u32,
}

impl Account {
    /// The account of a run of `trials` trials.
    pub(crate) fn new(trials: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            single: trials == 1,
            style: style_of_stderr(),
            bar,
            state: Mutex::new(State::default()),
        }
    }

    /// Takes the progress line away.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, trial: &TrialId, line: &str) {
        let line = if self.single {
            line.to_owned()
        } else {
            format!("{}/{}  {line}", trial.task, trial.attempt)
        };
        match &self.bar {
            Some(bar) => bar.suspend(|| program::say(&line)),
            None => program::say(&line),
        }
    }

    fn now(&self, trial: &TrialId, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}/{}: {what}", trial.task, trial.attempt));
        }
    }

    fn event(&self, trial: &TrialId, event: &formats::event::Event) {
        match (&event.kind, event.step) {
            (EventKind::Request { .. }, Some(step)) => {
                self.now(trial, &format!("step {step}, asking the model"));
            }
            (EventKind::ToolCall { call }, Some(step)) => {
                let tool = report::plain(&call.function.name);
                self.now(trial, &format!("step {step}, {tool}"));
            }
            _ => {}
        }
        if !self.single {
            return;
        }
        let line = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state
                .steps
                .entry(format!("{}/{}", trial.task, trial.attempt))
                .or_insert_with(|| Steps::new(self.style))
                .line(event)
        };
        if let Some(line) = line {
            self.line(trial, &line);
        }
    }

    fn finished(&self, trial: &TrialId, summary: &TrialSummary, how: &str) {
        let number = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.finished += 1;
            state.finished
        };
        if self.single {
            return;
        }
        let outcome = &summary.outcome;
        let result = match (&outcome.failure, outcome.score) {
            (Some(failure), _) => format!("{} failure: {}", failure.owner, failure.kind),
            (None, Some(score)) => format!("score {score:.3}"),
            (None, None) => "no score: nothing is checked".to_owned(),
        };
        self.line(
            trial,
            &format!("{how} ({number}): {result}, {:.1} s", summary.seconds.total),
        );
    }
}

impl Progress for Account {
    fn news(&self, trial: &TrialId, news: News<'_>) {
        match news {
            News::Stage(stage) => self.now(trial, stage.as_str()),
            News::Remark(remark) => {
                self.line(trial, &format!("note     {}", report::plain(remark)));
            }
            News::Agent(event) => self.event(trial, event),
            News::Verdict(result) if self.single => self.line(trial, &verdict(result)),
            News::Kept(summary) => self.finished(trial, summary, "kept"),
            News::Finished(summary) => self.finished(trial, summary, "finished"),
            _ => {}
        }
    }
}

fn verdict(result: &VerifierResult) -> String {
    let judged = match result.status {
        VerifierStatus::Error => "could not be judged".to_owned(),
        VerifierStatus::Ok => format!("score {}", result.score),
    };
    format!("verdict  {}: {judged}", report::plain(&result.verifier_id))
}
