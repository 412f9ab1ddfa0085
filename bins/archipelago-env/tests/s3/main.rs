//! Worlds in and out of S3 (`spec/environment.md` §13, §15, §16), against an S3 server in this process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod faults;
mod requests;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod worlds;
