//! Grading from end to end: worlds on disk, the judge behind a checking stub.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "test code"
)]

mod answers;
mod case;
mod class_b;
mod class_c;
mod databases;
mod documents;
mod examples;
mod golden;
mod injection;
mod judge;
mod left_out;
mod output_llm;
mod pages;
mod panel;
mod reference_page;
mod rows;
mod run;
mod slides;
mod targets;
mod validation;
