//! PDF: the text of each page.
//!
//! The parser may panic, recurse deeply or run long on hostile input. It runs on a thread of its
//! own with a large stack, behind a time limit; a panic becomes an error. A thread cannot be ended
//! from outside: one that runs over its time is left to itself.

use std::panic::catch_unwind;
use std::sync::mpsc;

use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

/// Stack of the parser's thread.
const STACK: usize = 64 << 20;

type Pages = Result<Vec<String>, String>;

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
    let pages = parse(bytes.to_vec(), limits)?.map_err(|reason| {
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
    if !any {
        document
            .notes
            .push("no text on any page: probably a scan, which is not read".to_owned());
    }
    Ok(document)
}

/// Runs the parser; outer error: it did not come to an end or died.
fn parse(bytes: Vec<u8>, limits: &Limits) -> Result<Pages, ExtractError> {
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
        .map_err(|error| ExtractError::broken("pdf", format!("no thread to read it: {error}")))?;
    match receive.recv_timeout(limits.pdf_time) {
        Ok(Ok(pages)) => Ok(pages),
        Ok(Err(panic)) => Err(ExtractError::broken(
            "pdf",
            format!("the parser gave up: {panic}"),
        )),
        Err(_) => Err(ExtractError::Timeout {
            format: "pdf",
            limit: "pdf_time",
            seconds: limits.pdf_time.as_secs(),
        }),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "for an unknown reason".to_owned())
}
