//! Pictures and documents in messages: where they are, and what they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How many characters of base64 are decoded to recognise a format.
const BEGINNING: usize = 32;

/// The parts of a `data:` URI with base64 content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataUri<'a> {
    /// The media type that it claims, without parameters; may be empty.
    pub claimed: &'a str,
    /// The content as base64.
    pub data: &'a str,
}

impl<'a> DataUri<'a> {
    /// Reads `uri`; `None` if it is no `data:` URI with base64 content.
    pub fn parse(uri: &'a str) -> Option<Self> {
        let scheme = uri.get(..5)?;
        if !scheme.eq_ignore_ascii_case("data:") {
            return None;
        }
        let (head, data) = uri[5..].split_once(',')?;
        let mut parts = head.split(';');
        let claimed = parts.next().unwrap_or_default().trim();
        let is_base64 = parts.any(|part| part.trim().eq_ignore_ascii_case("base64"));
        is_base64.then_some(Self {
            claimed,
            data: data.trim(),
        })
    }

    /// What the content is: as its first bytes say, else as it claims.
    ///
    /// Providers refuse or misread content under a wrong name, and tools get it wrong often.
    pub fn media_type(&self) -> &'a str {
        match sniffed(self.data) {
            Some(found) => found,
            None if self.claimed.eq_ignore_ascii_case("image/jpg") => "image/jpeg",
            None => self.claimed,
        }
    }
}

/// The media type that the first bytes of base64 `data` tell, if they tell one.
fn sniffed(data: &str) -> Option<&'static str> {
    let beginning = data.get(..data.len().min(BEGINNING))?;
    let beginning = &beginning[..beginning.len() / 4 * 4];
    let bytes = STANDARD.decode(beginning).ok()?;
    let is = |magic: &[u8]| bytes.starts_with(magic);
    if is(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if is(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if is(b"GIF87a") || is(b"GIF89a") {
        Some("image/gif")
    } else if is(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else if is(b"%PDF-") {
        Some("application/pdf")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_more_than_its_label() {
        let of = |uri: &'static str| DataUri::parse(uri).unwrap().media_type();
        assert_eq!(
            of("data:image/jpeg;base64,iVBORw0KGgoAAAANSUhEUgAA"),
            "image/png"
        );
        assert_eq!(
            of("DATA:image/png;charset=x;base64,/9j/4AAQSkZJRg=="),
            "image/jpeg"
        );
        assert_eq!(of("data:;base64,R0lGODlhAQABAA=="), "image/gif");
        assert_eq!(of("data:image/x;base64,UklGRiQAAABXRUJQVlA4"), "image/webp");
        assert_eq!(of("data:text/plain;base64,JVBERi0xLjQK"), "application/pdf");
        // What cannot be told is believed.
        assert_eq!(of("data:image/jpg;base64,AAAA"), "image/jpeg");
        assert_eq!(of("data:image/heic;base64,"), "image/heic");
    }

    #[test]
    fn other_addresses_are_no_data() {
        for uri in [
            "https://h/a.png",
            "data:text/plain,hello",
            "data:",
            "",
            "dät",
        ] {
            assert_eq!(DataUri::parse(uri), None, "{uri}");
        }
    }
}
