//! Real containers, made here, and hostile ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod archives;
mod hostile;
mod made;
mod office;
mod pdf;
mod pictures;
mod spreadsheets;

use extract::{Document, ExtractError, Limits};
use testkit::documents::package;

fn read(name: &str, bytes: &[u8]) -> Result<Document, ExtractError> {
    extract::extract(name, bytes, &Limits::default())
}
