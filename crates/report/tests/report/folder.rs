//! The run folder in `tests/run`.

use std::path::{Path, PathBuf};

use formats::diff::WorldDiff;
use formats::document::read;
use formats::event::{Event, EventKind};
use formats::grades::Grades;
use formats::run::{Summary, TrialSummary};
use formats::task::Verifier;
use formats::trajectory::Trajectory;
use report::Trial;

/// The documents of its first trial, to be changed by tests.
pub(crate) struct Documents {
    pub(crate) summary: TrialSummary,
    pub(crate) trajectory: Trajectory,
    pub(crate) events: Vec<Event>,
    pub(crate) diff: WorldDiff,
    pub(crate) verifiers: Vec<Verifier>,
    pub(crate) grades: Grades,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run")
}

pub(crate) fn summary() -> Summary {
    read("summary", &root().join("summary.json")).unwrap()
}

impl Documents {
    pub(crate) fn read() -> Self {
        let folder = root().join("trials/animals/1");
        let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
        Self {
            summary: summary().trials.remove(0),
            trajectory: read("trajectory", &folder.join("trajectory.json")).unwrap(),
            events: events
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
            diff: read("diff", &folder.join("diff.json")).unwrap(),
            verifiers: read("verifiers", &root().join("verifiers.json")).unwrap(),
            grades: read("grades", &folder.join("grades.json")).unwrap(),
        }
    }

    /// Puts the whole run, as that of a subagent `reader`, before the event at `place`.
    pub(crate) fn with_subagent(mut self, place: usize) -> Self {
        let around = self.events[place].clone();
        let inside = self.events.clone().into_iter().map(|event| Event {
            kind: EventKind::Subagent {
                name: "reader <b>".into(),
                event: Box::new(event),
            },
            ..around.clone()
        });
        let inside: Vec<Event> = inside.collect();
        self.events.splice(place..place, inside);
        self
    }

    pub(crate) fn trial(&self) -> Trial<'_> {
        Trial {
            trajectory: Some(&self.trajectory),
            events: &self.events,
            diff: Some(&self.diff),
            verifiers: &self.verifiers,
            grades: Some(&self.grades),
            folder: Some(Path::new("runs/r/trials/animals/1")),
            ..Trial::new(&self.summary)
        }
    }
}
