//! Sandboxes and the client, against real processes and a checking environment on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod client;
mod process;
mod real;
mod stub;
mod world;
