//! PDF: the text of each page, by a parser that is not made for hostile files.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::page_pictures;
use crate::sink::TextSink;
use crate::untrusted::{self, Parsed};

const FORMAT: &str = "pdf";

/// The text of each page.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Pages(Vec<String>);

impl Parsed for Pages {
    const FORMAT: &'static str = FORMAT;
    const TIME: &'static str = "pdf_time";

    fn time(limits: &Limits) -> Duration {
        limits.pdf_time
    }

    fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, String> {
        let mut pages = pdf_extract::extract_text_from_mem_by_pages(bytes)
            .map_err(|error| error.to_string())?;
        // The text beyond the limit is left out, its pages are not. One character more than is
        // shown, so that a cut text is known to be one.
        let mut left = limits.text_chars.saturating_add(1);
        for page in &mut pages {
            if let Some((end, _)) = page.char_indices().nth(left) {
                page.truncate(end);
            }
            left -= page.chars().count();
        }
        Ok(Self(pages))
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
    if limits.page_pictures > 0 {
        page_pictures::add(&mut document, bytes, limits);
    }
    Ok(document)
}
