//! Shows a run folder: the table of its trials, and its first trial as text and as a page.
//!
//! ```text
//! cargo run -p report --example render -- RUN_FOLDER [PAGE.html]
//! ```

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use formats::document::read;
use formats::event::Event;
use formats::run::{Summary, file};
use report::text::{Steps, Style};
use report::{Trial, html, text};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let run = args.next().ok_or("give a run folder")?;
    let mut out = std::io::stdout().lock();
    let style = Style::default();

    let summary: Summary = read("summary", &run.join(file::SUMMARY))?;
    writeln!(out, "{}", text::run(&summary, style))?;

    let first = summary.trials.first().ok_or("the run has no trial")?;
    let folder = run.join(&first.folder);
    let lines = std::fs::read_to_string(folder.join(file::EVENTS))?;
    let events: Vec<Event> = lines
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let mut steps = Steps::new(style);
    for line in events.iter().filter_map(|event| steps.line(event)) {
        writeln!(out, "{line}")?;
    }

    let trajectory = formats::blobs::read_trajectory(&folder.join(file::TRAJECTORY))?;
    let diff = read("diff", &folder.join(file::DIFF))?;
    let grades = read("grades", &folder.join(file::GRADES))?;
    let trial = Trial {
        trajectory: Some(&trajectory),
        events: &events,
        diff: Some(&diff),
        grades: Some(&grades),
        folder: Some(&folder),
        ..Trial::new(first)
    };
    writeln!(out, "\n{}", text::trial(&trial, style))?;
    if let Some(page) = args.next() {
        std::fs::write(page, html::trial_page(&trial)?)?;
    }
    Ok(())
}
