//! `ledger.jsonl`: every state change of every trial, append-only.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use formats::owner::Owner;
use formats::run::{LedgerEntry, TrialOutcome, TrialState};
use formats::trajectory::AgentStatus;

use crate::run::{RunError, now};
use crate::trial::TrialId;

/// Longest line that is read back; a longer one is damage.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The ledger of a run, open for appending.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Mutex<std::fs::File>,
}

impl Ledger {
    /// Opens the ledger at `path`, making it if needed.
    pub(crate) fn open(path: &Path) -> Result<Self, RunError> {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|source| RunError::io("open the ledger", path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    /// Appends one entry. It is on disk when this returns: a killed run has to know what it
    /// reached.
    pub(crate) fn record(
        &self,
        trial: &TrialId,
        state: TrialState,
        outcome: Option<TrialOutcome>,
    ) -> Result<(), RunError> {
        let entry = LedgerEntry {
            time: now(),
            task: trial.task.clone(),
            attempt: trial.attempt,
            state,
            outcome,
        };
        let failed = |source| RunError::io("write the ledger", &self.path, source);
        let mut line = serde_json::to_vec(&entry).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        // A poisoned lock means that another trial panicked while writing; its line may be torn,
        // which reading back tolerates.
        let mut file = self
            .file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        file.write_all(&line)
            .and_then(|()| file.sync_data())
            .map_err(failed)
    }
}

/// What a ledger says of each trial.
#[derive(Debug, Default)]
pub(crate) struct History {
    outcomes: HashMap<TrialId, Option<TrialOutcome>>,
}

impl History {
    /// Reads the ledger at `path`; a missing one is empty.
    ///
    /// A torn last line, left by a kill, is skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, RunError> {
        let failed = |source| RunError::io("read the ledger", path, source);
        let mut history = Self::default();
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(history),
            Err(error) => return Err(failed(error)),
        };
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(failed)?;
            if line.len() > MAX_LINE_BYTES {
                continue;
            }
            if let Ok(entry) = serde_json::from_slice::<LedgerEntry>(&line) {
                let trial = TrialId {
                    task: entry.task,
                    attempt: entry.attempt,
                };
                // A trial that starts again has no outcome until it ends again.
                history.outcomes.insert(trial, entry.outcome);
            }
        }
        Ok(history)
    }

    /// Whether `trial` has begun in an earlier run.
    pub(crate) fn has_begun(&self, trial: &TrialId) -> bool {
        self.outcomes.contains_key(trial)
    }

    /// The outcome of `trial`, if it needs no repetition: it was scored without an error of the
    /// grading, or the model failed it.
    pub(crate) fn settled(&self, trial: &TrialId) -> Option<&TrialOutcome> {
        let outcome = self.outcomes.get(trial)?.as_ref()?;
        is_settled(outcome).then_some(outcome)
    }

    /// Whether `trial` may go on from a world that was saved while its agent worked: it was
    /// interrupted, and not by the limit of its time, which would begin anew.
    pub(crate) fn may_go_on(&self, trial: &TrialId) -> bool {
        match self.outcomes.get(trial) {
            None => false,
            Some(None) => true,
            Some(Some(outcome)) => {
                let kind = outcome
                    .failure
                    .as_ref()
                    .map(|failure| failure.kind.as_str());
                outcome.agent_status != Some(AgentStatus::Completed)
                    && !matches!(kind, Some("run_timeout" | "outer_limit"))
            }
        }
    }
}

/// Whether an outcome needs no repetition.
pub(crate) fn is_settled(outcome: &TrialOutcome) -> bool {
    let failure = outcome.failure.as_ref();
    failure.is_none_or(|failure| failure.owner == Owner::Model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::owner::Failure;

    fn trial(attempt: u32) -> TrialId {
        TrialId {
            task: "t".into(),
            attempt,
        }
    }

    fn outcome(score: Option<f64>, owner: Option<Owner>) -> TrialOutcome {
        TrialOutcome {
            agent_status: None,
            score,
            coverage: None,
            failure: owner.map(|owner| Failure::new(owner, "kind", "message")),
        }
    }

    /// Pitfall A13: passed, failed by the model, infrastructure error, started without an end,
    /// nothing — the last three have to run.
    #[test]
    fn resume_repeats_what_says_nothing_about_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let ledger = Ledger::open(&path).unwrap();
        for attempt in 1..=4 {
            ledger
                .record(&trial(attempt), TrialState::Started, None)
                .unwrap();
        }
        let end = |attempt, outcome| {
            ledger
                .record(&trial(attempt), TrialState::Finished, Some(outcome))
                .unwrap();
        };
        end(1, outcome(Some(1.0), None));
        end(2, outcome(None, Some(Owner::Model)));
        end(3, outcome(None, Some(Owner::Infrastructure)));
        // A kill tears the last line.
        std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"time\":\"2026")
            .unwrap();

        let history = History::read(&path).unwrap();
        let settled: Vec<bool> = (1..=5)
            .map(|attempt| history.settled(&trial(attempt)).is_some())
            .collect();
        assert_eq!(settled, [true, true, false, false, false]);
        assert!(history.has_begun(&trial(4)) && !history.has_begun(&trial(5)));
        let goes_on: Vec<bool> = (1..=5)
            .map(|attempt| history.may_go_on(&trial(attempt)))
            .collect();
        assert_eq!(goes_on[2..], [true, true, false]);

        // More time is not given by going on, and an answer is not given twice.
        let ended = |attempt, kind: &str, status| {
            let mut outcome = outcome(None, Some(Owner::Infrastructure));
            outcome.agent_status = Some(status);
            if let Some(failure) = &mut outcome.failure {
                failure.kind = kind.into();
            }
            ledger
                .record(&trial(attempt), TrialState::Finished, Some(outcome))
                .unwrap();
        };
        ended(6, "run_timeout", AgentStatus::Error);
        ended(7, "grading", AgentStatus::Completed);
        ended(8, "rate_limit", AgentStatus::Error);
        let history = History::read(&path).unwrap();
        let goes_on: Vec<bool> = (6..=8)
            .map(|attempt| history.may_go_on(&trial(attempt)))
            .collect();
        assert_eq!(goes_on, [false, false, true]);
    }
}
