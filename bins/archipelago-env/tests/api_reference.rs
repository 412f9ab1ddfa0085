//! `docs/environment-api.md` is what the program says about itself. `UPDATE=1` writes it anew.
#![allow(clippy::unwrap_used, missing_docs, reason = "test code")]

use std::path::Path;
use std::process::Command;

fn printed(format: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_archipelago-env"))
        .args(["openapi", "--format", format])
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_reference_is_that_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/environment-api.md");
    let page = printed("markdown");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/environment-api.md is old: UPDATE=1 cargo test -p archipelago-env --test api_reference"
    );
}

#[test]
fn the_document_is_openapi() {
    let document: serde_json::Value = serde_json::from_str(&printed("json")).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/data/populate/s3/status/{job_id}"]["delete"].is_object());
}
