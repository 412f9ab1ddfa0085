//! The content of one message as parts of the input.

use formats::chat::{Block, Content, KnownBlock};
use serde_json::Value;

use super::items::{Part, Said};

/// How closely a picture is looked at unless the caller says.
const USUAL_DETAIL: &str = "auto";

/// The content of a message of the user or the operator.
pub(super) fn said(content: Option<&Content>) -> Said<'_> {
    Said::Parts(match content {
        None => vec![Part::text("")],
        Some(Content::Text(text)) => vec![Part::text(text)],
        Some(Content::Blocks(blocks)) => parts(blocks),
    })
}

/// The content of a tool's result, in which pictures and files may stand.
pub(super) fn output(content: Option<&Content>) -> Said<'_> {
    match content {
        None => Said::Text("".into()),
        Some(Content::Text(text)) => Said::Text(text.into()),
        Some(Content::Blocks(blocks)) => Said::Parts(parts(blocks)),
    }
}

/// The parts of `blocks`: at least one, since empty lists are refused where empty texts are not.
fn parts(blocks: &[Block]) -> Vec<Part<'_>> {
    let parts: Vec<Part<'_>> = blocks.iter().filter_map(part).collect();
    if parts.is_empty() {
        vec![Part::text("")]
    } else {
        parts
    }
}

fn part(block: &Block) -> Option<Part<'_>> {
    match block {
        Block::Known(KnownBlock::Text { text, .. }) => Some(Part::text(text)),
        Block::Known(KnownBlock::ImageUrl { image_url, .. }) => Some(Part::Image {
            image_url: &image_url.url,
            detail: image_url
                .extra
                .get("detail")
                .and_then(Value::as_str)
                .unwrap_or(USUAL_DETAIL),
        }),
        Block::Other(Value::String(text)) => Some(Part::text(text)),
        Block::Other(value) => other(value),
        _ => None,
    }
}

fn other(block: &Value) -> Option<Part<'_>> {
    let kind = block.get("type").and_then(Value::as_str);
    let hidden = |kind: &str| {
        Part::text(format!(
            "(a part of type `{kind}` that cannot be shown here)"
        ))
    };
    match kind.unwrap_or("unknown") {
        "thinking" | "redacted_thinking" | "reasoning" => None,
        kind @ "image_url" => Some(match block.get("image_url").and_then(Value::as_str) {
            // Some writers give the address without the object around it.
            Some(image_url) => Part::Image {
                image_url,
                detail: USUAL_DETAIL,
            },
            None => hidden(kind),
        }),
        kind @ "file" => Some(file(block.get("file")).unwrap_or_else(|| hidden(kind))),
        kind => Some(hidden(kind)),
    }
}

fn file(file: Option<&Value>) -> Option<Part<'_>> {
    let text = |key: &str| file?.get(key)?.as_str();
    let data = text("file_data");
    // An address in the place of the content is an address.
    let is_address = |data: &&str| data.starts_with("https://") || data.starts_with("http://");
    let file_url = text("file_url").or(data.filter(is_address));
    let file_data = data.filter(|data| !is_address(data));
    let file_id = text("file_id");
    let is_something = file_data.is_some() || file_url.is_some() || file_id.is_some();
    is_something.then_some(Part::File {
        // A name is wanted beside the content and refused beside the others.
        filename: file_data.map(|_| text("filename").unwrap_or("file")),
        file_data,
        file_url,
        file_id,
    })
}
