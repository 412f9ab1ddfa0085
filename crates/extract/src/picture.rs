//! Pictures: kind, size, and the data URI that judges and browsers take, made smaller where it has to be.

use std::io::Cursor;
use std::panic::catch_unwind;

use base64::Engine as _;
use image::{DynamicImage, ImageFormat, ImageReader};

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
    let (data_uri, notes) = match shown(bytes, mime, limits) {
        Ok((uri, note)) => (Some(uri), note.into_iter().collect()),
        Err(note) => (None, vec![note]),
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

/// The picture as `data:` URI, within the pixels and bytes that every provider takes, with a note
/// where it had to be made smaller for that. The error is a note why it is not shown: one that
/// cannot be decoded would be refused, and the whole question with it.
fn shown(
    bytes: &[u8],
    mime: &'static str,
    limits: &Limits,
) -> Result<(String, Option<String>), String> {
    if bytes.len() > limits.picture_bytes {
        return Err(format!(
            "the picture has {} bytes and is not shown, limit `picture_bytes` is {}",
            bytes.len(),
            limits.picture_bytes
        ));
    }
    let picture = decoded(bytes, limits.picture_memory_bytes).ok_or_else(|| {
        let most = limits.picture_memory_bytes;
        format!(
            "the picture is not shown: it cannot be decoded with {most} bytes (limit `picture_memory_bytes`)"
        )
    })?;
    let (width, height) = (picture.width(), picture.height());
    let mut edge = limits.picture_edge;
    if width.max(height) <= edge && bytes.len() <= limits.picture_data_bytes {
        return Ok((uri(mime, bytes), None));
    }
    while edge >= SMALLEST_EDGE {
        // Only downwards.
        let small = if width.max(height) > edge {
            picture.thumbnail(edge, edge)
        } else {
            picture.clone()
        };
        let size = (small.width(), small.height());
        match encoded(small) {
            Some((mime, data)) if data.len() <= limits.picture_data_bytes => {
                let note = format!(
                    "the picture of {width} by {height} pixels is shown with {} by {} (limits `picture_edge`, `picture_data_bytes`)",
                    size.0, size.1
                );
                return Ok((uri(mime, &data), Some(note)));
            }
            _ => edge = edge.min(width.max(height)) / 4 * 3,
        }
    }
    Err(
        "the picture is not shown: it cannot be made small enough (limit `picture_data_bytes`)"
            .to_owned(),
    )
}

/// Below this many pixels of the longer edge a picture is not made smaller.
const SMALLEST_EDGE: u32 = 64;

/// The picture itself, decoded within so much memory.
pub(crate) fn decoded(bytes: &[u8], memory: u64) -> Option<DynamicImage> {
    // Decoders may panic on damaged pictures.
    catch_unwind(|| {
        let mut reader = ImageReader::new(Cursor::new(bytes))
            .with_guessed_format()
            .ok()?;
        let mut bounds = image::Limits::default();
        bounds.max_alloc = Some(memory);
        reader.limits(bounds);
        reader.decode().ok()
    })
    .ok()?
}

/// The picture as JPEG, or as PNG where it has transparent places.
pub(crate) fn encoded(picture: DynamicImage) -> Option<(&'static str, Vec<u8>)> {
    let mut out = Cursor::new(Vec::new());
    if picture.color().has_alpha() {
        let picture = DynamicImage::ImageRgba8(picture.into_rgba8());
        picture.write_to(&mut out, ImageFormat::Png).ok()?;
        return Some(("image/png", out.into_inner()));
    }
    let picture = DynamicImage::ImageRgb8(picture.into_rgb8());
    picture.write_to(&mut out, ImageFormat::Jpeg).ok()?;
    Some(("image/jpeg", out.into_inner()))
}

pub(crate) fn uri(mime: &str, bytes: &[u8]) -> String {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    format!("data:{mime};base64,{data}")
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
    ImageReader::new(Cursor::new(bytes))
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
