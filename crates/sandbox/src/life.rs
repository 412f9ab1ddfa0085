//! What is known of a running environment, whatever it runs in.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use crate::error::{EnvironmentDied, LastLines};
use crate::log::LastLog;

/// How long the log may take to be read to its end once the environment is gone. Something else
/// may hold the other end of the pipe.
const LOG_END: Duration = Duration::from_millis(500);

/// For everyone who may have to report the end of an environment.
#[derive(Debug)]
pub(crate) struct Life {
    exit: watch::Receiver<Option<String>>,
    log_ended: watch::Receiver<bool>,
    last: LastLog,
    log: PathBuf,
}

/// For the tasks that watch an environment.
#[derive(Debug)]
pub(crate) struct Watch {
    /// How it ended.
    pub(crate) exit: watch::Sender<Option<String>>,
    /// Whether its log has been read to the end.
    pub(crate) log_ended: watch::Sender<bool>,
    /// Where its last lines go.
    pub(crate) last: LastLog,
}

impl Life {
    /// Of an environment whose output goes to `log`.
    pub(crate) fn new(log: PathBuf) -> (Self, Watch) {
        let (exit_sender, exit) = watch::channel(None);
        let (log_sender, log_ended) = watch::channel(false);
        let last = LastLog::default();
        let watch = Watch {
            exit: exit_sender,
            log_ended: log_sender,
            last: last.clone(),
        };
        let life = Self {
            exit,
            log_ended,
            last,
            log,
        };
        (life, watch)
    }

    /// How the environment ended, if that happens within `limit`.
    pub(crate) async fn ended_within(&self, limit: Duration) -> Option<EnvironmentDied> {
        let exit = self.exit_within(limit).await?;
        let mut log_ended = self.log_ended.clone();
        let _ = tokio::time::timeout(LOG_END, log_ended.wait_for(|ended| *ended)).await;
        Some(EnvironmentDied {
            exit,
            last_lines: self.last_lines(),
            log: self.log.clone(),
        })
    }

    /// The same without waiting for the end of the log.
    pub(crate) async fn exit_within(&self, limit: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        match tokio::time::timeout(limit, exit.wait_for(Option::is_some)).await {
            Ok(Ok(exit)) => exit.clone(),
            // The watching task went with its runtime; there is nothing to learn any more.
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// How it ended, if it did.
    pub(crate) fn exit(&self) -> Option<String> {
        self.exit.borrow().clone()
    }

    /// What it printed last.
    pub(crate) fn last_lines(&self) -> LastLines {
        LastLines(self.last.lines())
    }

    /// See [`crate::RunningEnvironment::check`].
    pub(crate) async fn check(&self) -> Result<(), EnvironmentDied> {
        if self.exit().is_none() {
            return Ok(());
        }
        match self.ended_within(Duration::ZERO).await {
            Some(died) => Err(died),
            None => Ok(()),
        }
    }
}
