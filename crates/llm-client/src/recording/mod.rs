//! Recordings: every exchange with a model, as it happened, without secrets.
//!
//! A recording is a folder of files, one for each program that recorded into it, or one such file. A
//! file has one JSON object per line: first `recording` with the version, then `part` lines (a
//! message or a list of tools, written once and named by its SHA-256) and `exchange` lines (a
//! request, and the reply or the error that it got). It is written while the exchanges happen, so
//! that a kill loses at most those in flight.
//!
//! Requests are the same when their messages, tools and parameters are; addresses, keys, headers,
//! time limits and the number of retries make no difference.

mod difference;
mod question;
mod reader;
mod stored;
mod tape;

pub(crate) use question::{Question, sha256};
pub use reader::{Recording, RecordingError};
pub(crate) use stored::{StoredDelta, StoredReply};
pub(crate) use tape::Happened;
pub use tape::Tape;

/// Raised when the meaning of a line or of a key changes.
pub(crate) const VERSION: u32 = 1;

/// Stands in recordings for what a caller drew at random for one call
/// ([`CallLabels::nonce`](crate::CallLabels::nonce)).
const DRAWN: &str = "[drawn-at-random]";
