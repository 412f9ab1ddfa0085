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

use std::io::{Cursor, Write as _};

use extract::{Document, ExtractError, Limits};

/// A zip of these files.
fn package(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read(name: &str, bytes: &[u8]) -> Result<Document, ExtractError> {
    extract::extract(name, bytes, &Limits::default())
}
