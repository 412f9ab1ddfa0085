//! Reports of a run folder that was written by hand, and of what is hostile or huge.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod folder;
mod html;
mod inside;
mod text;
