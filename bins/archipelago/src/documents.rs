//! The documents that a trial left on disk.

use std::path::{Path, PathBuf};

use formats::diff::WorldDiff;
use formats::document;
use formats::event::Event;
use formats::grades::Grades;
use formats::run::{TrialSummary, file};
use formats::task::Verifiers;
use formats::trajectory::Trajectory;
use report::Trial;

/// Name of the page of a trial in its folder.
pub(crate) const PAGE: &str = "report.html";

/// Longest line of `events.jsonl` that a report reads; longer ones are left out.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// What a report can show of a trial. Whatever is missing or unreadable is left out: a report is
/// made of what there is.
pub(crate) struct TrialDocuments {
    folder: PathBuf,
    trajectory: Option<Trajectory>,
    events: Vec<Event>,
    diff: Option<WorldDiff>,
    grades: Option<Grades>,
    verifiers: Verifiers,
}

impl TrialDocuments {
    /// Reads the documents of the trial in `folder`; `verifiers` are those of its task.
    pub(crate) fn read(folder: PathBuf, verifiers: Verifiers) -> Self {
        let path = |name: &str| folder.join(name);
        Self {
            trajectory: document::read("trajectory", &path(file::TRAJECTORY)).ok(),
            events: read_events(&path(file::EVENTS)),
            diff: document::read("diff", &path(file::DIFF)).ok(),
            grades: document::read("grades", &path(file::GRADES)).ok(),
            verifiers,
            folder,
        }
    }

    /// The trial as reports take it.
    pub(crate) fn trial<'a>(&'a self, summary: &'a TrialSummary) -> Trial<'a> {
        Trial {
            summary,
            trajectory: self.trajectory.as_ref(),
            events: &self.events,
            diff: self.diff.as_ref(),
            verifiers: &self.verifiers,
            grades: self.grades.as_ref(),
            folder: Some(&self.folder),
        }
    }

    /// Writes the page of the trial into its folder and returns where it is.
    pub(crate) fn write_page(&self, summary: &TrialSummary) -> Result<PathBuf, String> {
        let path = self.folder.join(PAGE);
        let page =
            report::html::trial_page(&self.trial(summary)).map_err(|error| error.to_string())?;
        document::write_atomically(&path, |file| {
            std::io::Write::write_all(file, page.as_bytes())
        })
        .map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
        Ok(path)
    }
}

/// The events in the file at `path`, without a torn last line.
fn read_events(path: &Path) -> Vec<Event> {
    let Ok(text) = std::fs::read(path) else {
        return Vec::new();
    };
    text.split(|byte| *byte == b'\n')
        .filter(|line| line.len() <= MAX_EVENT_BYTES)
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}
