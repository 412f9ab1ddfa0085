//! PDF: the text of each page, by a parser that is not made for hostile files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::external;
use crate::limits::Limits;
use crate::sink::TextSink;
use crate::untrusted::{self, Parsed};

const FORMAT: &str = "pdf";

/// The text of each page, or why it has none.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Pages(Vec<Result<String, String>>);

impl Parsed for Pages {
    const FORMAT: &'static str = FORMAT;
    const TIME: &'static str = "pdf_time";

    fn time(limits: &Limits) -> Duration {
        limits.pdf_time
    }

    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, String> {
        let mut document = pdf_extract::Document::load_mem(bytes).map_err(|e| e.to_string())?;
        if document.is_encrypted() {
            // Many documents are encrypted only to forbid printing, and open without a password.
            document.decrypt("").map_err(|error| error.to_string())?;
        }
        // The text beyond the limit is left out, its pages are not. One character more than is
        // shown, so that a cut text is known to be one.
        let mut left = limits.text_chars.saturating_add(1);
        let mut pages = Vec::new();
        for number in document.get_pages().into_keys() {
            let mut page = if left == 0 {
                Ok(String::new())
            } else {
                page(&document, number)
            };
            if let Ok(text) = &mut page {
                if let Some((end, _)) = text.char_indices().nth(left) {
                    text.truncate(end);
                }
                left -= text.chars().count();
            }
            pages.push(page);
        }
        Ok(Self(pages))
    }
}

/// How many pages a PDF has that a program of ours made.
pub(crate) fn page_count(bytes: &[u8]) -> Result<usize, String> {
    let count = || pdf_extract::Document::load_mem(bytes).map(|pdf| pdf.get_pages().len());
    match catch_unwind(count) {
        Ok(Ok(count)) => Ok(count),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the parser gave up".to_owned()),
    }
}

/// The text of one page. The parser gives up on some pages, which says nothing about the others.
fn page(document: &pdf_extract::Document, number: u32) -> Result<String, String> {
    let mut text = String::new();
    let read = catch_unwind(AssertUnwindSafe(|| {
        let mut output = pdf_extract::PlainTextOutput::new(&mut text);
        pdf_extract::output_doc_page(document, &mut output, number)
    }));
    match read {
        Ok(Ok(())) => Ok(text),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the parser gave up".to_owned()),
    }
}

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let beginning = &bytes[..bytes.len().min(1024)];
    if !beginning.windows(5).any(|window| window == b"%PDF-") {
        return Err(ExtractError::broken(
            FORMAT,
            "it does not begin with `%PDF-`",
        ));
    }
    let Pages(pages) = untrusted::parse::<Pages>(bytes, limits)?.map_err(|reason| {
        let lower = reason.to_lowercase();
        if lower.contains("password") || lower.contains("decrypt") {
            ExtractError::Encrypted { format: FORMAT }
        } else {
            ExtractError::broken(FORMAT, reason)
        }
    })?;
    let mut sink = TextSink::new(limits);
    let (mut any, mut failed) = (false, 0);
    for (at, page) in pages.iter().enumerate() {
        sink.line(&format!("=== Page {} ===", at + 1));
        match page.as_ref().map(|text| text.trim()) {
            Ok("") => {}
            Ok(text) => {
                any = true;
                sink.line(text);
            }
            Err(reason) => {
                failed += 1;
                sink.line(&format!("[this page cannot be read: {reason}]"));
            }
        }
    }
    let mut document = sink.into_document(Format::Pdf);
    document.pages = Some(pages.len());
    if failed > 0 {
        let all = pages.len();
        document
            .notes
            .push(format!("{failed} of {all} pages cannot be read"));
    } else if !any {
        document
            .notes
            .push("no text on any page: probably a scan, which is not read".to_owned());
    }
    if limits.page_pictures > 0 {
        external::add(&mut document, bytes, limits);
    }
    Ok(document)
}
