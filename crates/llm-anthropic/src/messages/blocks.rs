//! The content of one message as Anthropic's blocks.

use std::borrow::Cow;

use formats::Object;
use formats::chat::{Block, Content, KnownBlock, Message};
use serde_json::Value;

use super::wire::{Mark, Part, ResultContent, Source, is_thinking};
use llm_wire::DataUri;
use llm_wire::repair::NOTHING;

/// The pictures that Anthropic takes.
const PICTURES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Blocks in Anthropic's own form that may stand in a user's turn or a result.
const NATIVE: &[&str] = &["image", "document", "search_result", "container_upload"];

/// The blocks of `content`, blank texts left out: Anthropic refuses them.
pub(super) fn parts(content: Option<&Content>) -> Vec<Part<'_>> {
    match content {
        None => Vec::new(),
        Some(Content::Text(text)) if text.trim().is_empty() => Vec::new(),
        Some(Content::Text(text)) => vec![Part::text(text)],
        Some(Content::Blocks(blocks)) => blocks.iter().filter_map(part).collect(),
    }
}

/// The content of a tool result.
pub(super) fn result_content(message: &Message) -> ResultContent<'_> {
    match &message.content {
        Some(Content::Text(text)) if !text.trim().is_empty() => {
            ResultContent::Text(Cow::Borrowed(text))
        }
        content => {
            let parts = parts(content.as_ref());
            if parts.is_empty() {
                ResultContent::Text(Cow::Borrowed(NOTHING))
            } else {
                ResultContent::Parts(parts)
            }
        }
    }
}

/// The mark among the further keys of a message, a block or a tool.
pub(super) fn mark_in(extra: &Object) -> Mark<'_> {
    extra
        .get("cache_control")
        .filter(|mark| mark.is_object())
        .map(Cow::Borrowed)
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Known(KnownBlock::Text { text, extra }) => {
            (!text.trim().is_empty()).then(|| Part::Text {
                text: Cow::Borrowed(text),
                cache_control: mark_in(extra),
            })
        }
        Block::Known(KnownBlock::ImageUrl { image_url, extra }) => {
            Some(picture(&image_url.url, mark_in(extra)))
        }
        Block::Other(Value::String(text)) => (!text.trim().is_empty()).then(|| Part::text(text)),
        Block::Other(value) => other(value),
        _ => None,
    }
}

fn other(block: &Value) -> Option<Part<'_>> {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("unknown");
    let mark = || block.as_object().and_then(mark_in);
    match kind {
        "image_url" => block
            .get("image_url")
            .and_then(Value::as_str)
            .map(|url| picture(url, mark())),
        "file" => Some(document(block.get("file")?, mark())),
        _ if NATIVE.contains(&kind) => Some(Part::Native(Cow::Borrowed(block))),
        // It has its own place beside the content, where it is signed.
        _ if is_thinking(block) => None,
        _ => Some(Part::text(format!(
            "(a part of type `{kind}` that cannot be shown here)"
        ))),
    }
}

fn picture<'a>(url: &'a str, cache_control: Mark<'a>) -> Part<'a> {
    let hidden = |what: &str| Part::Text {
        text: Cow::Owned(format!("(a picture that cannot be shown here: {what})")),
        cache_control: None,
    };
    if let Some(data) = DataUri::parse(url) {
        let media_type = data.media_type();
        if !PICTURES.contains(&media_type) {
            return hidden(&format!("its type is `{media_type}`"));
        }
        return Part::Image {
            source: Source::Base64 {
                media_type,
                data: data.data,
            },
            cache_control,
        };
    }
    if url.starts_with("https://") {
        return Part::Image {
            source: Source::Url { url },
            cache_control,
        };
    }
    let shown: String = url.chars().take(200).collect();
    hidden(&format!("`{shown}` is no https address"))
}

fn document<'a>(file: &'a Value, cache_control: Mark<'a>) -> Part<'a> {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    let source = if let Some(data) = text("file_data") {
        match DataUri::parse(data) {
            Some(uri) if PICTURES.contains(&uri.media_type()) => {
                return picture(data, cache_control);
            }
            Some(uri) if uri.media_type() == "application/pdf" => Some(Source::Base64 {
                media_type: "application/pdf",
                data: uri.data,
            }),
            Some(uri) if uri.media_type().starts_with("text/") => plain_text(uri.data),
            Some(_) => None,
            None => data
                .starts_with("https://")
                .then_some(Source::Url { url: data }),
        }
    } else {
        text("file_id").map(|file_id| Source::File { file_id })
    };
    match source {
        Some(source) => Part::Document {
            source,
            cache_control,
        },
        None => {
            let name = text("filename").unwrap_or("without a name");
            Part::text(format!("(a file that cannot be shown here: `{name}`)"))
        }
    }
}

fn plain_text(base64: &str) -> Option<Source<'_>> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(base64)
        .ok()?;
    let data = String::from_utf8(bytes).ok()?;
    Some(Source::Text {
        media_type: "text/plain",
        data: Cow::Owned(data),
    })
}
