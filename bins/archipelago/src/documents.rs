//! The documents that a trial left on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use formats::blobs;
use formats::diff::WorldDiff;
use formats::document;
use formats::event::Event;
use formats::grades::Grades;
use formats::run::{Summary, TrialSummary, file};
use formats::task::Verifiers;
use formats::trajectory::Trajectory;
use report::Trial;

/// Name of the page of a trial, and of a run, in its folder.
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
            trajectory: blobs::read_trajectory(&path(file::TRAJECTORY)).ok(),
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

    /// Writes the page of the trial into its folder.
    fn write_page(&self, summary: &TrialSummary) -> Result<(), String> {
        write_page(&self.folder, report::html::trial_page(&self.trial(summary)))
    }
}

/// Leaves a page in the run folder and in the folder of every trial of `summary` whose task is in
/// `verifiers`. What goes wrong is warned of: a page is an extra.
pub(crate) fn write_pages(
    folder: &Path,
    summary: &Summary,
    verifiers: &BTreeMap<String, Verifiers>,
) {
    let trials = summary.trials.iter().filter_map(|trial| {
        let verifiers = verifiers.get(&trial.task)?.clone();
        let documents = TrialDocuments::read(folder.join(&trial.folder), verifiers);
        documents.write_page(trial).err()
    });
    let run = write_page(folder, report::html::run_page(summary, PAGE)).err();
    for problem in trials.chain(run) {
        program::say(format_args!("warning: no page: {problem}"));
    }
}

fn write_page(folder: &Path, page: Result<String, report::html::PageError>) -> Result<(), String> {
    let page = page.map_err(|error| error.to_string())?;
    let path = folder.join(PAGE);
    document::write_atomically(&path, |file| {
        std::io::Write::write_all(file, page.as_bytes())
    })
    .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
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
