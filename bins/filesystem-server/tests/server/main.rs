//! The real program over real pipes, called by an MCP client.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod confinement;
mod contract;
mod examples;
mod injected;
mod limits;
mod listing;
mod process;
mod reading;
mod served;
mod unusual;
mod writing;
