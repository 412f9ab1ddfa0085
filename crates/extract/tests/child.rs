//! PDFs and xls workbooks in a child process: a program that is its own reader. No test harness, because the program
//! must be able to start itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

use std::process::ExitCode;
use std::time::Duration;

use extract::{ExtractError, Limits, extract};

const PDF: &[u8] = include_bytes!("fixtures/reportlab.pdf");

const XLS: &[u8] = include_bytes!("fixtures/xlwt.xls");

fn main() -> ExitCode {
    if let Some(code) = extract::run_child() {
        return code;
    }
    pages_come_back();
    long_texts_are_cut();
    memory_is_limited();
    time_is_limited();
    damage_is_reported();
    workbooks_come_back();
    assert_eq!(children(), "", "no child is left");
    eprintln!("child: all checks passed");
    ExitCode::SUCCESS
}

fn children() -> String {
    std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default()
}

fn pages_come_back() {
    let document = extract("x.pdf", PDF, &Limits::default()).unwrap();
    assert_eq!(
        document.text,
        "=== Page 1 ===\nHello PDF 41,250\n=== Page 2 ===\nSecond page\n"
    );
    assert_eq!(document.pages, Some(2));
}

fn long_texts_are_cut() {
    let limits = Limits {
        text_chars: 24,
        ..Limits::default()
    };
    let document = extract("x.pdf", PDF, &limits).unwrap();
    assert_eq!(document.text, "=== Page 1 ===\nHello PDF");
    assert!(document.truncated);
    assert_eq!(document.pages, Some(2));
}

/// The limit holds in the child only: this process goes on.
fn memory_is_limited() {
    let limits = Limits {
        child_memory_bytes: 32 << 20,
        ..Limits::default()
    };
    let error = extract("x.pdf", PDF, &limits).unwrap_err();
    assert!(
        error.to_string().contains("`child_memory_bytes`"),
        "{error}"
    );
    pages_come_back();
}

fn time_is_limited() {
    let limits = Limits {
        pdf_time: Duration::ZERO,
        ..Limits::default()
    };
    let error = extract("x.pdf", PDF, &limits).unwrap_err();
    assert!(
        matches!(
            error,
            ExtractError::Timeout {
                limit: "pdf_time",
                ..
            }
        ),
        "{error:?}"
    );
}

fn damage_is_reported() {
    for length in [40, 400, 1200] {
        let error = extract("x.pdf", &PDF[..length], &Limits::default()).unwrap_err();
        assert!(matches!(error, ExtractError::Broken { .. }), "{error:?}");
    }
}

fn workbooks_come_back() {
    let document = extract("x.xls", XLS, &Limits::default()).unwrap();
    assert_eq!(
        document.text,
        "=== Sheet: Old ===\nName\tZürich\t12.5\t3\tTRUE\n\n\t{=C1*2; not calculated}\n"
    );
    assert_eq!(document.notes, ["hidden sheets are left out: Hidden"]);
    let limits = Limits {
        cell_bytes: 200,
        ..Limits::default()
    };
    let document = extract("x.xls", XLS, &limits).unwrap();
    assert!(
        document.notes[0].contains("`cell_bytes`"),
        "{:?}",
        document.notes
    );
    let limits = Limits {
        workbook_time: Duration::ZERO,
        ..Limits::default()
    };
    let error = extract("x.xls", XLS, &limits).unwrap_err();
    assert!(error.to_string().contains("`workbook_time`"), "{error}");
    let limits = Limits {
        child_memory_bytes: 16 << 20,
        ..Limits::default()
    };
    let error = extract("x.xls", XLS, &limits).unwrap_err();
    assert!(
        error.to_string().contains("`child_memory_bytes`"),
        "{error}"
    );
    for length in [40, 600, 3000] {
        let error = extract("x.xls", &XLS[..length], &Limits::default()).unwrap_err();
        assert!(matches!(error, ExtractError::Broken { .. }), "{error:?}");
    }
}
