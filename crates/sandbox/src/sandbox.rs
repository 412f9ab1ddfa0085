//! The trait that every back end fulfils.

use std::path::PathBuf;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{Needs, RunningEnvironment, SandboxError};

/// Where an environment serves `filesystem`, unless it is told otherwise.
pub(crate) const FILESYSTEM: &str = "/filesystem";

/// Where an environment serves `.apps_data`, unless it is told otherwise.
pub(crate) const APPS_DATA: &str = "/.apps_data";

/// A place where environments can be started, one per trial.
///
/// It is shared by all trials of a run, so `start` may be called many times at once.
pub trait Sandbox: Send + Sync {
    /// The word that stands in `run.json`: `process`, `docker` or an address.
    fn name(&self) -> String;

    /// Starts an environment and waits until it answers.
    ///
    /// Nothing is left behind when this fails, when it is cancelled, or when its future is
    /// dropped.
    ///
    /// # Errors
    /// [`SandboxError`] that says who owns the failure.
    fn start(
        &self,
        request: StartRequest,
    ) -> BoxFuture<'_, Result<RunningEnvironment, SandboxError>>;
}

/// What a trial asks of a sandbox.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StartRequest {
    /// A name that no other trial in flight has; it becomes part of folder names.
    pub trial: String,
    /// The file to which everything that the environment prints is appended.
    pub log: PathBuf,
    /// What the task asks for.
    pub needs: Needs,
    /// Ends the start early.
    pub cancel: CancellationToken,
}

impl StartRequest {
    /// A request without needs, that nobody cancels.
    pub fn new(trial: impl Into<String>, log: impl Into<PathBuf>) -> Self {
        Self {
            trial: trial.into(),
            log: log.into(),
            needs: Needs::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// The same request, for a task with these needs.
    #[must_use]
    pub fn with_needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    /// The same request, ended early by `cancel`.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }
}
