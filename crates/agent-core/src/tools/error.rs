//! How a tool call can fail without a result of the tool.

use std::time::Duration;

use formats::owner::Failure;

use super::arguments::BadArguments;

/// A call that gave no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// Its arguments cannot be used: no tool saw it; the model is told.
    #[error(transparent)]
    BadArguments(BadArguments),
    /// The server refused it; the model is told.
    #[error("{0}")]
    Rejected(String),
    /// No result within the limit.
    #[error("no result within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection broke while the call was running: it may have taken effect or not, so it is
    /// not repeated. The model is told.
    #[error("the connection to the tool server broke before the result arrived ({0})")]
    Broken(String),
    /// The server never saw the call; a new session can try again.
    #[error("{}", .0.message)]
    NotSent(Failure),
    /// The session cannot be used and a new one cannot be had: the run ends.
    #[error("{}", .0.message)]
    Fatal(Failure),
}

impl CallError {
    /// A stable word for it.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::BadArguments(_) => "bad_arguments",
            Self::Rejected(_) => "rejected",
            Self::TimedOut(_) => "timeout",
            Self::Broken(_) => "connection_broken",
            Self::NotSent(failure) | Self::Fatal(failure) => &failure.kind,
        }
    }
}
