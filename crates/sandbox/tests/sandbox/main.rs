//! Sandboxes and the client, against real processes and a checking environment on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    missing_docs,
    reason = "test code"
)]

mod client;
mod containers;
mod docker;
mod engine;
mod isolation;
mod process;
mod real;
mod stub;
mod world;
