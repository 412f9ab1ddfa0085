//! The content of one message as parts.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use formats::chat::{Block, Content, KnownBlock, Message};
use serde_json::Value;

use super::wire::{Blob, File, Part, Resolution};
use llm_wire::DataUri;

/// The pictures that Gemini takes.
const PICTURES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
];

/// What may stand within a function response.
const IN_RESULTS: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "text/plain",
];

/// Addresses that are told by their beginning: of the web, of Google's storage.
const ADDRESSES: &[&str] = &["https://", "gs://"];

/// Types of files by the end of their names.
const ENDINGS: &[(&str, &str)] = &[
    (".png", "image/png"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".webp", "image/webp"),
    (".heic", "image/heic"),
    (".heif", "image/heif"),
    (".pdf", "application/pdf"),
    (".txt", "text/plain"),
    (".mp3", "audio/mpeg"),
    (".wav", "audio/wav"),
    (".mp4", "video/mp4"),
];

/// The words of `detail` that ask for another resolution than the usual one.
const RESOLUTIONS: &[(&str, &str)] = &[
    ("low", "MEDIA_RESOLUTION_LOW"),
    ("medium", "MEDIA_RESOLUTION_MEDIUM"),
    ("high", "MEDIA_RESOLUTION_HIGH"),
];

/// Translates blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks {
    /// The resolution of a picture is set on its part.
    pub(super) part_resolution: bool,
}

impl Blocks {
    /// The parts of `content`, blank texts left out: empty ones are refused, and blank ones say nothing.
    pub(super) fn parts(self, content: Option<&Content>) -> Vec<Part<'_>> {
        match content {
            None => Vec::new(),
            Some(Content::Text(text)) if text.trim().is_empty() => Vec::new(),
            Some(Content::Text(text)) => vec![Part::text(text)],
            Some(Content::Blocks(blocks)) => {
                blocks.iter().filter_map(|block| self.part(block)).collect()
            }
        }
    }

    fn part(self, block: &Block) -> Option<Part<'_>> {
        match block {
            Block::Known(KnownBlock::Text { text, .. }) | Block::Other(Value::String(text)) => {
                (!text.trim().is_empty()).then(|| Part::text(text))
            }
            Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
                let detail = image_url.extra.get("detail").and_then(Value::as_str);
                Some(self.picture(&image_url.url, detail))
            }
            Block::Other(value) => self.other(value),
            _ => None,
        }
    }

    fn other(self, block: &Value) -> Option<Part<'_>> {
        let kind = block.get("type").and_then(Value::as_str);
        match kind.unwrap_or("unknown") {
            "image_url" => {
                let url = block.get("image_url")?.as_str()?;
                Some(self.picture(url, None))
            }
            "file" => Some(document(block.get("file")?)),
            "input_audio" => Some(sound(block.get("input_audio")?)),
            // What another provider thought is no content.
            "thinking" | "redacted_thinking" => None,
            kind => Some(Part::text(format!(
                "(a part of type `{kind}` that cannot be shown here)"
            ))),
        }
    }

    fn picture<'a>(self, url: &'a str, detail: Option<&str>) -> Part<'a> {
        if let Some(data) = DataUri::parse(url) {
            let media_type = data.media_type();
            if !PICTURES.contains(&media_type) {
                return hidden("picture", &format!("its type is `{media_type}`"));
            }
            return Part::InlineData {
                inline_data: Blob {
                    mime_type: Cow::Borrowed(media_type),
                    data: data.data,
                },
                media_resolution: resolution(detail)
                    .filter(|_| self.part_resolution)
                    .map(|level| Resolution { level }),
            };
        }
        match at_address(url) {
            Some(part) => part,
            None => {
                let shown: String = url.chars().take(200).collect();
                hidden("picture", &format!("`{shown}` is no https address"))
            }
        }
    }
}

/// Whether a part may stand within a function response rather than beside it.
pub(super) fn fits_in_result(part: &Part<'_>) -> bool {
    match part {
        Part::InlineData { inline_data, .. } => {
            IN_RESULTS.contains(&inline_data.mime_type.as_ref())
        }
        _ => false,
    }
}

/// The finest resolution that a picture of `messages` asks for, for models that have one for the whole
/// request.
pub(super) fn finest_resolution(messages: &[Message]) -> Option<&'static str> {
    let details = messages.iter().flat_map(|message| {
        let blocks = message.content.as_ref().map(Content::blocks);
        blocks
            .into_iter()
            .flatten()
            .filter_map(|block| match block {
                Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
                    Some(image_url.extra.get("detail").and_then(Value::as_str))
                }
                _ => None,
            })
    });
    // One picture that says nothing wants the usual resolution.
    let place = |detail: Option<&str>| {
        RESOLUTIONS
            .iter()
            .position(|(word, _)| Some(*word) == detail)
    };
    let usual = RESOLUTIONS.len() - 1;
    let finest = details
        .map(|detail| place(detail).map_or((usual, false), |place| (place, true)))
        .max()?;
    finest.1.then(|| RESOLUTIONS[finest.0].1)
}

fn resolution(detail: Option<&str>) -> Option<&'static str> {
    let known = |(word, _): &&(&str, &str)| Some(*word) == detail;
    RESOLUTIONS.iter().find(known).map(|(_, level)| *level)
}

fn hidden(what: &str, why: &str) -> Part<'static> {
    Part::text(format!("(a {what} that cannot be shown here: {why})"))
}

/// Content that Google fetches itself.
fn at_address(url: &str) -> Option<Part<'_>> {
    let known = ADDRESSES.iter().any(|beginning| url.starts_with(beginning));
    let path = url.split(['?', '#']).next().unwrap_or(url).to_lowercase();
    known.then(|| Part::FileData {
        file_data: File {
            mime_type: ENDINGS
                .iter()
                .find(|(ending, _)| path.ends_with(ending))
                .map(|(_, kind)| *kind),
            file_uri: url,
        },
    })
}

fn document(file: &Value) -> Part<'_> {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    let shown = match (text("file_data"), text("file_id")) {
        (Some(data), _) => match DataUri::parse(data) {
            Some(uri) => inline_document(uri),
            None => at_address(data),
        },
        // A file that was uploaded to Google is known by its address.
        (None, Some(id)) => at_address(id),
        (None, None) => None,
    };
    shown.unwrap_or_else(|| {
        let name = text("filename").unwrap_or("without a name");
        hidden("file", &format!("`{name}`"))
    })
}

fn inline_document(uri: DataUri<'_>) -> Option<Part<'_>> {
    let media_type = uri.media_type();
    if media_type.starts_with("text/") || media_type == "application/json" {
        let bytes = STANDARD.decode(uri.data).ok()?;
        return Some(Part::text(String::from_utf8(bytes).ok()?));
    }
    let taken = PICTURES.contains(&media_type)
        || media_type == "application/pdf"
        || media_type.starts_with("audio/")
        || media_type.starts_with("video/");
    taken.then_some(Part::InlineData {
        inline_data: Blob {
            mime_type: Cow::Borrowed(media_type),
            data: uri.data,
        },
        media_resolution: None,
    })
}

fn sound(audio: &Value) -> Part<'_> {
    let text = |key: &str| audio.get(key).and_then(Value::as_str);
    match (text("data"), text("format")) {
        (Some(data), Some(format)) => Part::InlineData {
            inline_data: Blob {
                mime_type: Cow::Owned(format!("audio/{format}")),
                data,
            },
            media_resolution: None,
        },
        _ => hidden("sound", "it has no data or no format"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(block: &Value) -> Value {
        let content: Content = serde_json::from_value(json!([block])).unwrap();
        let parts = Blocks {
            part_resolution: true,
        }
        .parts(Some(&content));
        serde_json::to_value(&parts[0]).unwrap()
    }

    #[test]
    fn media_are_inlined_referred_to_or_named() {
        assert_eq!(
            one(&json!({"type": "image_url", "image_url": {"url": "https://h/a.PNG?x=1"}})),
            json!({"fileData": {"mimeType": "image/png", "fileUri": "https://h/a.PNG?x=1"}})
        );
        assert_eq!(
            one(
                &json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAA=="}})
            ),
            json!({"text": "(a picture that cannot be shown here: its type is `image/gif`)"})
        );
        assert_eq!(
            one(
                &json!({"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}})
            ),
            json!({"text": "hi"})
        );
        assert_eq!(
            one(
                &json!({"type": "file", "file": {"filename": "a.bin", "file_data": "data:application/x;base64,AAAA"}})
            ),
            json!({"text": "(a file that cannot be shown here: `a.bin`)"})
        );
        assert_eq!(
            one(&json!({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}})),
            json!({"inlineData": {"mimeType": "audio/wav", "data": "UklG"}})
        );
        assert_eq!(
            one(&json!({"type": "video", "frames": []})),
            json!({"text": "(a part of type `video` that cannot be shown here)"})
        );
    }

    #[test]
    fn the_finest_resolution_counts_for_all() {
        let of = |details: &[Value]| {
            let blocks: Vec<Value> = details
                .iter()
                .map(|detail| json!({"type": "image_url", "image_url": {"url": "x", "detail": detail}}))
                .collect();
            let message: Message =
                serde_json::from_value(json!({"role": "user", "content": blocks})).unwrap();
            finest_resolution(&[message])
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[json!("low")]), Some("MEDIA_RESOLUTION_LOW"));
        assert_eq!(
            of(&[json!("low"), json!("high")]),
            Some("MEDIA_RESOLUTION_HIGH")
        );
        assert_eq!(of(&[json!("low"), json!("auto")]), None);
        assert_eq!(
            of(&[json!("high"), json!("auto")]),
            Some("MEDIA_RESOLUTION_HIGH")
        );
    }
}
