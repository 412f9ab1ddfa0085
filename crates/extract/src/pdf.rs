//! PDF: the text of each page.
//!
//! The parser may panic, recurse deeply, run long or take much memory on hostile input. Where the
//! program offers it ([`run_child`](crate::run_child)), it runs in a child process with limits on
//! time and memory. Elsewhere it runs on a thread with a large stack, behind a time limit; a thread
//! cannot be ended from outside: one that runs over its time is left to itself.

use std::panic::catch_unwind;
use std::sync::mpsc;
use std::time::Duration;

use crate::child;
use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

/// Stack of the parser's thread.
const STACK: usize = 64 << 20;

pub(crate) type Pages = Result<Vec<String>, String>;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    if !bytes
        .iter()
        .take(1024)
        .copied()
        .collect::<Vec<u8>>()
        .windows(5)
        .any(|w| w == b"%PDF-")
    {
        return Err(ExtractError::broken(
            "pdf",
            "it does not begin with `%PDF-`",
        ));
    }
    let pages = match child::pdf_pages(bytes, limits) {
        Some(pages) => pages,
        None => on_thread(bytes, limits),
    };
    let pages = pages?.map_err(|reason| {
        let lower = reason.to_lowercase();
        if lower.contains("password") || lower.contains("decrypt") {
            ExtractError::Encrypted { format: "pdf" }
        } else {
            ExtractError::broken("pdf", reason)
        }
    })?;
    let mut sink = TextSink::new(limits);
    let mut any = false;
    for (at, page) in pages.iter().enumerate() {
        sink.line(&format!("=== Page {} ===", at + 1));
        let page = page.trim();
        any |= !page.is_empty();
        if !page.is_empty() {
            sink.line(page);
        }
    }
    let mut document = sink.into_document(Format::Pdf);
    document.pages = Some(pages.len());
    if !any {
        document
            .notes
            .push("no text on any page: probably a scan, which is not read".to_owned());
    }
    Ok(document)
}

fn on_thread(bytes: &[u8], limits: &Limits) -> Result<Pages, ExtractError> {
    parse_on_thread(bytes.to_vec(), Some(limits.pdf_time)).map_err(|failure| match failure {
        Failure::Timeout => ExtractError::Timeout {
            format: "pdf",
            limit: "pdf_time",
            seconds: limits.pdf_time.as_secs(),
        },
        other => ExtractError::broken("pdf", other),
    })
}

/// Why the parser gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("no thread to read it: {0}")]
    Thread(std::io::Error),
    #[error("the parser gave up: {0}")]
    Panic(String),
    #[error("the time is over")]
    Timeout,
}

/// Runs the parser on a thread with a large stack, for at most `time`.
pub(crate) fn parse_on_thread(bytes: Vec<u8>, time: Option<Duration>) -> Result<Pages, Failure> {
    let (send, receive) = mpsc::sync_channel(1);
    let work = move || {
        let pages = catch_unwind(|| {
            pdf_extract::extract_text_from_mem_by_pages(&bytes).map_err(|error| error.to_string())
        });
        // The receiver is gone if the time ran out.
        let _ = send.send(pages.map_err(|panic| panic_text(&*panic)));
    };
    std::thread::Builder::new()
        .name("pdf".to_owned())
        .stack_size(STACK)
        .spawn(work)
        .map_err(Failure::Thread)?;
    let pages = match time {
        Some(time) => receive.recv_timeout(time).map_err(|_| Failure::Timeout)?,
        // A thread that ends without an answer has dropped its sender.
        None => receive.recv().map_err(|_| Failure::Timeout)?,
    };
    pages.map_err(Failure::Panic)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "for an unknown reason".to_owned())
}
