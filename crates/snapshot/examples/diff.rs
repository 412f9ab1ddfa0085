//! Prints what changed between two worlds, each a zip, a tar.gz or a directory:
//! `cargo run -p snapshot --example diff -- before.zip after.tar.gz`.

use std::io::Write as _;
use std::process::ExitCode;

use snapshot::{CompareOptions, World, WorldError, compare};

fn run(before: &str, after: &str) -> Result<String, WorldError> {
    let diff = compare(
        &World::open(before)?,
        &World::open(after)?,
        &CompareOptions::default(),
    )?;
    let mut text = String::new();
    for change in &diff.changes {
        text += &format!("{:?} {}", change.kind, change.path);
        if let Some(old_path) = &change.old_path {
            text += &format!(" (was {old_path})");
        }
        for note in [&change.note, &change.text_note].into_iter().flatten() {
            text += &format!(" ({note})");
        }
        text += "\n";
        text += change.text_diff.as_deref().unwrap_or_default();
    }
    Ok(text)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [before, after] = arguments.as_slice() else {
        let _ = writeln!(std::io::stderr(), "usage: diff BEFORE AFTER");
        return ExitCode::from(2);
    };
    match run(before, after) {
        Ok(text) => {
            let _ = write!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
