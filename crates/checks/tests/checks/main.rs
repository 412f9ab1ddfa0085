//! Checks from end to end: worlds on disk, a trajectory, one verifier.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

mod calendar;
mod case;
mod data;
mod evals;
mod golden_db;
mod layout;
mod looks;
mod milestones;
mod programs;
mod sheets;
