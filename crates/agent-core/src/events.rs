//! What a run says while it happens: observers, the log file, numbering and time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use formats::event::{Event, EventKind, FORMAT_VERSION};
use futures::future::BoxFuture;

/// Someone who follows a run.
///
/// It is called in the order of [`Event::seq`], from within the run, so it should return soon.
pub trait Observer: Send + Sync {
    /// Something happened.
    fn event(&self, event: &Event);
}

/// Something that is done before each model call, when every call of the turn before is answered
/// and none is on its way: such as saving the world, so that it fits the events up to there.
pub trait BetweenSteps: Send + Sync {
    /// The run waits until it is done. `next_seq` is the number of the next event.
    fn between_steps(&self, next_seq: u64) -> BoxFuture<'_, ()>;
}

/// The observer that does not listen.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn event(&self, _: &Event) {}
}

/// Several observers, told in order.
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn event(&self, event: &Event) {
        for observer in &self.0 {
            observer.event(event);
        }
    }
}

/// Writes `events.jsonl`: one line per event, handed to the operating system before the run goes
/// on, so that the end of the process loses at most the step in flight.
///
/// An error of the file does not end the run; the first one is kept for [`EventLog::finish`], and
/// nothing is written after it, so that the file never has a gap.
#[derive(Debug)]
pub struct EventLog {
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    file: File,
    error: Option<io::Error>,
}

impl EventLog {
    /// Creates the file, replacing an earlier one.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            state: Mutex::new(LogState {
                file: File::create(path)?,
                error: None,
            }),
        })
    }

    /// Opens the file of a run that is to be continued, so that its events follow. A last line that
    /// was not written to its end is taken away, as [`read_events`](crate::read_events) leaves it
    /// out.
    ///
    /// # Errors
    /// When the file cannot be opened, read or cut.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = File::options().read(true).write(true).open(path)?;
        let end = end_of_whole_lines(&mut file)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(Self {
            state: Mutex::new(LogState { file, error: None }),
        })
    }

    /// Makes sure that everything is on the disk.
    ///
    /// # Errors
    /// The first error that writing met, or that of the final synchronisation.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.error.take() {
            Some(error) => Err(error),
            None => state.file.sync_data(),
        }
    }
}

/// Where the last line that has its end ends.
fn end_of_whole_lines(file: &mut File) -> io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut bytes = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        bytes.clear();
        Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut bytes)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

impl Observer for EventLog {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.error.is_some() {
            return;
        }
        // One write call per line: a reader or a kill never sees half of a line in between.
        let written = serde_json::to_vec(event)
            .map_err(io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                state.file.write_all(&line)
            });
        if let Err(error) = written {
            tracing::error!(%error, seq = event.seq, "failed to write the event log");
            state.error = Some(error);
        }
    }
}

/// Numbers and dates the events of one run.
pub(crate) struct Recorder {
    observer: Arc<dyn Observer>,
    started: Instant,
    /// How long earlier parts of the run took.
    earlier: Duration,
    /// The next sequence number and the current step; held while an observer is told, so that
    /// events arrive in order also when tools run side by side.
    place: Mutex<(u64, Option<u64>)>,
}

impl Recorder {
    pub(crate) fn new(observer: Arc<dyn Observer>) -> Self {
        Self {
            observer,
            started: Instant::now(),
            earlier: Duration::ZERO,
            place: Mutex::new((0, None)),
        }
    }

    /// Goes on where the events of a run end: with `seq`, behind `steps` steps, `earlier` after the
    /// run began.
    pub(crate) fn go_on(
        observer: Arc<dyn Observer>,
        seq: u64,
        steps: u64,
        earlier: Duration,
    ) -> Self {
        Self {
            earlier,
            place: Mutex::new((seq, (steps > 0).then_some(steps))),
            ..Self::new(observer)
        }
    }

    /// Begins the next step and returns its number, counted from 1.
    pub(crate) fn next_step(&self) -> u64 {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let step = place.1.unwrap_or(0) + 1;
        place.1 = Some(step);
        step
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event {
            v: FORMAT_VERSION,
            seq: place.0,
            time: jiff::Timestamp::now().to_string(),
            elapsed: (self.earlier + self.started.elapsed()).as_secs_f64(),
            step: place.1,
            kind,
        };
        place.0 += 1;
        self.observer.event(&event);
    }

    /// The number of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        self.place.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    pub(crate) fn warn(&self, message: impl Into<String>) {
        let message = message.into();
        tracing::warn!("{message}");
        self.emit(EventKind::Warning { message });
    }
}
