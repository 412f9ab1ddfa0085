//! Mail messages: the headers people read, the text, and the names of what is attached.

use mail_parser::{Address, MessageParser, MimeHeaders as _, PartType};

use crate::document::{Document, Format};
use crate::error::ExtractError;
use crate::html::html_to_text;
use crate::limits::Limits;
use crate::sink::TextSink;

const FORMAT: &str = "eml";

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let message = MessageParser::new()
        .parse(bytes)
        .ok_or_else(|| ExtractError::broken(FORMAT, "it has no header"))?;
    let mut sink = TextSink::new(limits);
    for (name, addresses) in [
        ("From", message.from()),
        ("To", message.to()),
        ("Cc", message.cc()),
        ("Reply-To", message.reply_to()),
    ] {
        if let Some(addresses) = addresses {
            sink.line(&format!("{name}: {}", listed(addresses)));
        }
    }
    if let Some(date) = message.date() {
        sink.line(&format!("Date: {}", date.to_rfc3339()));
    }
    if let Some(subject) = message.subject() {
        sink.line(&format!("Subject: {}", one_line(subject)));
    }
    sink.line("");
    for &id in &message.text_body {
        match message.part(id).map(|part| &part.body) {
            Some(PartType::Text(text)) => sink.line(text.trim_end()),
            Some(PartType::Html(html)) => sink.line(html_to_text(html, limits).trim_end()),
            _ => {}
        }
    }
    let mut attachments = message.attachments().peekable();
    if attachments.peek().is_some() {
        sink.line("=== Attachments ===");
    }
    for part in attachments {
        let name = part.attachment_name().unwrap_or("(without name)");
        let kind = part.content_type().map_or_else(
            || "unknown type".to_owned(),
            |kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("*")),
        );
        sink.line(&format!("{}\t{kind}\t{} bytes", one_line(name), part.len()));
    }
    Ok(sink.into_document(Format::Mail))
}

fn listed(addresses: &Address<'_>) -> String {
    let all: Vec<String> = addresses
        .iter()
        .map(|address| match (address.name(), address.address()) {
            (Some(name), Some(address)) => format!("{} <{}>", one_line(name), one_line(address)),
            (Some(only), None) | (None, Some(only)) => one_line(only),
            (None, None) => String::new(),
        })
        .collect();
    all.join(", ")
}

/// A header value without line breaks, which could look like further headers.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
