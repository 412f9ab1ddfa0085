//! Parsers that hostile files can hang, crash or fill the memory with.
//!
//! Where the program offers it ([`run_child`](crate::run_child)), they run in a child process with
//! limits on time and memory. Elsewhere they run on a thread with a large stack, behind a time
//! limit; a thread cannot be ended from outside: one that runs over its time is left to itself.

use std::panic::catch_unwind;
use std::sync::mpsc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::child;
use crate::error::ExtractError;
use crate::limits::Limits;

/// Stack of the parser's thread.
const STACK: usize = 64 << 20;

/// What such a parser makes of a document.
pub(crate) trait Parsed: Serialize + DeserializeOwned + Send + 'static {
    /// The format, as errors and the argument of the child name it.
    const FORMAT: &'static str;

    /// The name of the limit on its time.
    const TIME: &'static str;

    /// How long it may take.
    fn time(limits: &Limits) -> Duration;

    /// The parser.
    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, String>;
}

/// Runs the parser for `T`; the inner error is what it says of the document.
pub(crate) fn parse<T: Parsed>(
    bytes: &[u8],
    limits: &Limits,
) -> Result<Result<T, String>, ExtractError> {
    if let Some(answer) = child::ask::<T>(bytes, limits) {
        return answer;
    }
    on_thread::<T>(bytes.to_vec(), limits, Some(T::time(limits))).map_err(|failure| match failure {
        Failure::Timeout => ExtractError::Timeout {
            format: T::FORMAT,
            limit: T::TIME,
            seconds: T::time(limits).as_secs(),
        },
        other => ExtractError::broken(T::FORMAT, other),
    })
}

/// Why the parser gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no thread to read it: {0}")]
    Thread(std::io::Error),
    #[error("the parser gave up: {0}")]
    Panic(String),
    #[error("the time is over")]
    Timeout,
}

/// Runs the parser on a thread with a large stack, for at most `time`.
pub(crate) fn on_thread<T: Parsed>(
    bytes: Vec<u8>,
    limits: &Limits,
    time: Option<Duration>,
) -> Result<Result<T, String>, Failure> {
    let (send, receive) = mpsc::sync_channel(1);
    let limits = limits.clone();
    let work = move || {
        let parsed = catch_unwind(|| T::parse(&bytes, &limits));
        // The receiver is gone if the time ran out.
        let _ = send.send(parsed.map_err(|panic| panic_text(&*panic)));
    };
    std::thread::Builder::new()
        .name(T::FORMAT.to_owned())
        .stack_size(STACK)
        .spawn(work)
        .map_err(Failure::Thread)?;
    let parsed = match time {
        Some(time) => receive.recv_timeout(time).map_err(|_| Failure::Timeout)?,
        // A thread that ends without an answer has dropped its sender.
        None => receive.recv().map_err(|_| Failure::Timeout)?,
    };
    parsed.map_err(Failure::Panic)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "for an unknown reason".to_owned())
}
