//! Reading the events of a run: its trajectory, for runs whose process ended before it was written.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use formats::event::Event;
use formats::trajectory::Trajectory;

use crate::checkpoint::Checkpoint;

/// Reads `events.jsonl`. A last line that was not written to its end is left out.
///
/// # Errors
/// When the file cannot be read or a line before the last is no event.
pub fn read_events(path: impl AsRef<Path>) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut lines = BufReader::new(std::fs::File::open(path)?)
        .lines()
        .peekable();
    let mut number = 0;
    while let Some(line) = lines.next() {
        number += 1;
        match serde_json::from_str(&line?) {
            Ok(event) => events.push(event),
            Err(_) if lines.peek().is_none() => break,
            Err(error) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {number} is no event: {error}"),
                ));
            }
        }
    }
    Ok(events)
}

/// The trajectory that the events tell of, as far as they go.
///
/// A run without an end was interrupted: its status is `error`, and calls that have no answer get
/// one that says so. What only the agent knows (budgets in `usage`) is not in it. Nothing comes of
/// events without a `run_started`.
#[must_use]
pub fn rebuild(events: &[Event]) -> Option<Trajectory> {
    Checkpoint::from_events(events).map(Checkpoint::into_trajectory)
}
