//! Trials: one, or many at once; ledger, resume, repetition.
//!
//! A *trial* is one attempt at one task: an environment is started and filled, the agent works,
//! the final state is saved, compared and graded. A *run* is many trials in one folder
//! ([`formats::run`] describes it). [`run()`] does all of it; everything that can be checked before
//! anything starts is checked then, and what goes wrong inside a trial is that trial's outcome,
//! with an owner.
//!
//! The environment is always reached over HTTP, whatever [`sandbox`] it runs in.

mod budget;
mod golden;
mod grade;
mod ledger;
mod meter;
mod plan;
mod progress;
mod regrade;
mod run;
mod summary;
mod task;
mod trial;
pub mod world;

pub use golden::check_golden_state;
pub use plan::check;
pub use progress::{News, Progress, Silent, Stage};
pub use regrade::{RegradeRequest, Regraded, regrade};
pub use run::{Ran, RunBudget, RunError, RunRequest, Services, run};
pub use task::{Task, TaskError};
pub use trial::TrialId;

/// Runs `work` on a thread that may block. A panic in it goes on in the caller.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}
