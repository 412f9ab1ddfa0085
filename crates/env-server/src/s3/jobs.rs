//! Transfers that run in the background, to be asked about, listed and cancelled.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::error::ApiError;

/// How far a transfer is.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    objects: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    pub(super) fn object(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }

    /// Tells in the log how far a transfer is, until the answer is dropped.
    pub(super) fn tell(self: &Arc<Self>, every: Duration, what: String) -> AbortOnDrop {
        let progress = Arc::clone(self);
        AbortOnDrop(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(every);
            // The first one comes at once.
            ticks.tick().await;
            loop {
                ticks.tick().await;
                let shown = progress.shown();
                tracing::info!(
                    what,
                    objects = shown.objects,
                    bytes = shown.bytes,
                    "on the way"
                );
            }
        }))
    }

    fn shown(&self) -> JobProgress {
        JobProgress {
            objects: self.objects.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// A task that ends with this.
pub(super) struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The answer to the start of a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobStarted {
    /// What to ask for.
    pub(crate) job_id: String,
}

/// What a job has moved so far.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobProgress {
    /// Objects that are done.
    objects: u64,
    /// Bytes moved.
    bytes: u64,
}

/// How a job is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobStatus {
    /// `running`, `done` or `error` (a cancelled one too).
    status: &'static str,
    /// What the blocking form would have answered.
    result: Option<Value>,
    /// What the blocking form would have said was wrong.
    error: Option<Value>,
    /// What it has moved so far.
    progress: JobProgress,
}

/// A job in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedJob {
    /// What to ask for.
    job_id: String,
    /// How it is.
    #[serde(flatten)]
    status: JobStatus,
}

/// All jobs that are remembered, in the order of their start.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobList {
    /// The jobs.
    jobs: Vec<ListedJob>,
}

#[derive(Debug)]
enum State {
    Running,
    Done(Value),
    Failed(Value),
}

#[derive(Debug)]
struct Job {
    id: String,
    state: State,
    progress: Arc<Progress>,
    cancel: CancellationToken,
}

impl Job {
    fn status(&self) -> JobStatus {
        let (status, result, error) = match &self.state {
            State::Running => ("running", None, None),
            State::Done(result) => ("done", Some(result.clone()), None),
            State::Failed(error) => ("error", None, Some(error.clone())),
        };
        JobStatus {
            status,
            result,
            error,
            progress: self.progress.shown(),
        }
    }
}

/// The jobs of one kind. They live as long as the process; finished ones beyond `keep` are forgotten,
/// the oldest first.
#[derive(Debug)]
pub(crate) struct Jobs {
    kind: &'static str,
    keep: usize,
    stop: CancellationToken,
    jobs: Mutex<Table>,
}

/// By the number of their start.
#[derive(Debug, Default)]
struct Table {
    next: u64,
    jobs: BTreeMap<u64, Job>,
}

impl Jobs {
    pub(crate) fn new(kind: &'static str, keep: usize) -> Self {
        Self {
            kind,
            keep,
            stop: CancellationToken::new(),
            jobs: Mutex::default(),
        }
    }

    /// Ends all jobs, now and from now on.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Begins a job. `work` gets where to tell its progress; it is dropped when the job is cancelled.
    pub(super) fn start<W, T>(self: &Arc<Self>, work: impl FnOnce(Arc<Progress>) -> W) -> JobStarted
    where
        W: Future<Output = Result<T, ApiError>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let progress = Arc::new(Progress::default());
        let cancel = self.stop.child_token();
        let number = {
            let mut table = self.table();
            let number = table.next;
            table.next += 1;
            let job = Job {
                id: id.clone(),
                state: State::Running,
                progress: Arc::clone(&progress),
                cancel: cancel.clone(),
            };
            table.jobs.insert(number, job);
            table.forget(self.keep);
            number
        };
        let work = Box::pin(work(progress));
        let jobs = Arc::clone(self);
        tokio::spawn(async move {
            // A task of its own, so that a panic is an error of the job.
            let mut working = tokio::spawn(work);
            let result = tokio::select! {
                result = &mut working => result,
                () = cancel.cancelled() => {
                    working.abort();
                    working.await
                }
            };
            let state = match result {
                Ok(Ok(value)) => match serde_json::to_value(&value) {
                    Ok(value) => State::Done(value),
                    Err(error) => State::Failed(json!(error.to_string())),
                },
                Ok(Err(error)) => State::Failed(error.detail().clone()),
                Err(error) if error.is_cancelled() => State::Failed(json!("cancelled")),
                Err(_) => State::Failed(json!("the job failed unexpectedly")),
            };
            if let Some(job) = jobs.table().jobs.get_mut(&number) {
                job.state = state;
            }
        });
        JobStarted { job_id: id }
    }

    pub(super) fn status(&self, id: &str) -> Result<JobStatus, ApiError> {
        let table = self.table();
        let job = table.jobs.values().find(|job| job.id == id);
        job.map(Job::status).ok_or_else(|| self.unknown(id))
    }

    /// Asks a job to end; its status says when it has.
    pub(super) fn cancel(&self, id: &str) -> Result<JobStatus, ApiError> {
        let table = self.table();
        let job = table.jobs.values().find(|job| job.id == id);
        let job = job.ok_or_else(|| self.unknown(id))?;
        job.cancel.cancel();
        Ok(job.status())
    }

    pub(super) fn list(&self) -> JobList {
        let jobs = self
            .table()
            .jobs
            .values()
            .map(|job| ListedJob {
                job_id: job.id.clone(),
                status: job.status(),
            })
            .collect();
        JobList { jobs }
    }

    fn unknown(&self, id: &str) -> ApiError {
        ApiError::new(
            http::StatusCode::NOT_FOUND,
            format!("Unknown {} job: {id}", self.kind),
        )
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn forget(&mut self, keep: usize) {
        while self.jobs.len() > keep {
            let finished = self
                .jobs
                .iter()
                .find(|(_, job)| !matches!(job.state, State::Running))
                .map(|(number, _)| *number);
            let Some(finished) = finished else {
                return;
            };
            self.jobs.remove(&finished);
        }
    }
}
