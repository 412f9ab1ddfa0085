//! Pictures: kind, size, and the data URI that judges and browsers take.

use std::io::Cursor;

use base64::Engine as _;

use crate::document::{Document, Format, Picture};
use crate::limits::Limits;

/// Extensions of pictures that models take.
pub(crate) const EXTENSIONS: &[&str] = &["gif", "jpeg", "jpg", "png", "webp"];

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Document {
    let Some(mime) = mime(bytes) else {
        return Document {
            notes: vec!["the content is no PNG, JPEG, GIF or WebP picture".to_owned()],
            ..Document::default()
        };
    };
    let size = dimensions(bytes);
    let mut notes = Vec::new();
    let data_uri = if bytes.len() <= limits.picture_bytes {
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        Some(format!("data:{mime};base64,{data}"))
    } else {
        notes.push(format!(
            "the picture has {} bytes and is not shown, limit `picture_bytes` is {}",
            bytes.len(),
            limits.picture_bytes
        ));
        None
    };
    Document {
        format: Format::Picture,
        notes,
        picture: Some(Picture {
            mime,
            width: size.map(|size| size.0),
            height: size.map(|size| size.1),
            data_uri,
        }),
        ..Document::default()
    }
}

/// The bytes that a `data:` URI in Base64 holds.
#[must_use]
pub fn data_bytes(uri: &str) -> u64 {
    let data = uri.split_once(',').map_or(uri, |(_, data)| data);
    let padding = data.len() - data.trim_end_matches('=').len();
    ((data.len() / 4 * 3).saturating_sub(padding)) as u64
}

/// Width and height. Only the header is read, so a picture of a billion pixels costs nothing here.
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    image::ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .ok()
        .and_then(|reader| reader.into_dimensions().ok())
}

/// The MIME type by the first bytes; names lie, and providers refuse a picture whose type is not
/// the stated one.
pub(crate) fn mime(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_uri_are_those_of_its_data() {
        for (uri, bytes) in [
            ("data:image/png;base64,", 0),
            ("data:image/png;base64,AA==", 1),
            ("data:image/png;base64,AAA=", 2),
            ("data:image/png;base64,AAAA", 3),
            ("data:image/png;base64,AAAAAA==", 4),
        ] {
            assert_eq!(data_bytes(uri), bytes, "{uri}");
        }
    }
}
