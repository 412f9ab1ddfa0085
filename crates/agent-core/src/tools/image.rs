//! What a picture is, how large it is, and how many tokens it costs (`spec/agents.md` §15.3).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How much of a picture is looked at to find its size: JPEG files can carry long headers.
const HEADER_BYTES: usize = 256 * 1024;

/// The media type that the data shows, since file names and servers are often wrong.
pub(super) fn media_type(base64: &str) -> Option<&'static str> {
    let head = decode(base64, 32);
    match head.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Estimated prompt tokens of the picture at `url` for a model; 0 where the size or the model's
/// way of counting is not known.
pub(crate) fn tokens(url: &str, provider: &str, model: &str) -> u64 {
    let Some((width, height)) = size(url) else {
        return 0;
    };
    let tiles = |edge: u64| width.div_ceil(edge).saturating_mul(height.div_ceil(edge));
    let model = model.to_lowercase();
    if provider == "anthropic" || model.contains("anthropic") || model.contains("claude") {
        tiles(28).min(4784)
    } else if provider == "openai" || model.contains("gpt-5") || model.contains("openai") {
        tiles(32).saturating_mul(6).div_ceil(5).min(12_000)
    } else if provider == "gemini" || model.contains("gemini") {
        tiles(768).max(1).saturating_mul(258)
    } else {
        0
    }
}

/// Width and height in pixels of the picture in a `data:` URL.
fn size(url: &str) -> Option<(u64, u64)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    if !head.ends_with(";base64") {
        return None;
    }
    let bytes = decode(data, HEADER_BYTES);
    let (width, height) = match bytes.as_slice() {
        [0x89, b'P', b'N', b'G', ..] => (be32(&bytes, 16)?, be32(&bytes, 20)?),
        [b'G', b'I', b'F', b'8', ..] => (le16(&bytes, 6)?, le16(&bytes, 8)?),
        [0xFF, 0xD8, 0xFF, ..] => jpeg_size(&bytes)?,
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => webp_size(&bytes)?,
        _ => return None,
    };
    (width > 0 && height > 0).then_some((width, height))
}

/// Walks the segments of a JPEG file to the frame header (ITU T.81 §B.1.1).
fn jpeg_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        while *bytes.get(at)? == 0xFF && *bytes.get(at + 1)? == 0xFF {
            at += 1;
        }
        if *bytes.get(at)? != 0xFF {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Frame headers, but for the tables DHT, JPG and DAC in the same range.
            0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            // Markers without a length.
            0x01 | 0xD0..=0xD8 => at += 2,
            0xD9 | 0xDA => return None,
            _ => at += 2 + usize::try_from(be16(bytes, at + 2)?).ok()?,
        }
    }
}

/// The size in a VP8X or VP8 chunk (RFC 9649 §2.7, RFC 6386 §9.1).
fn webp_size(bytes: &[u8]) -> Option<(u64, u64)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((le24(bytes, 24)? + 1, le24(bytes, 27)? + 1)),
        b"VP8 " => Some((le16(bytes, 26)? & 0x3FFF, le16(bytes, 28)? & 0x3FFF)),
        _ => None,
    }
}

fn decode(base64: &str, most: usize) -> Vec<u8> {
    let wanted = base64.len().min(most.div_ceil(3) * 4);
    let end = wanted - wanted % 4;
    let head = base64.get(..end).unwrap_or_default();
    STANDARD.decode(head).unwrap_or_default()
}

fn be16(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u64::from(u16::from_be_bytes(bytes)))
}

fn le16(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u64::from(u16::from_le_bytes(bytes)))
}

fn be32(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u64::from(u32::from_be_bytes(bytes)))
}

fn le24(bytes: &[u8], at: usize) -> Option<u64> {
    match *bytes.get(at..at + 3)? {
        [a, b, c] => Some(u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 0]);
        bytes
    }

    /// Start, an application segment of `padding` bytes, frame header.
    fn jpeg(width: u16, height: u16, padding: u16) -> Vec<u8> {
        let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xE0];
        bytes.extend((padding + 2).to_be_bytes());
        bytes.extend(vec![0; usize::from(padding)]);
        bytes.extend([0xFF, 0xC0, 0, 17, 8]);
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes.extend([3, 0, 0, 0]);
        bytes
    }

    fn url(bytes: &[u8]) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(bytes))
    }

    #[test]
    fn the_type_is_read_from_the_data() {
        for (bytes, expected) in [
            (png(1, 1), Some("image/png")),
            (jpeg(1, 1, 14), Some("image/jpeg")),
            (b"GIF89a\x01\0\x01\0\0\0".to_vec(), Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8X".to_vec(), Some("image/webp")),
            (b"%PDF-1.7 and so on".to_vec(), None),
        ] {
            assert_eq!(media_type(&STANDARD.encode(bytes)), expected);
        }
        assert_eq!(media_type("not base64 at all!"), None);
        assert_eq!(media_type(""), None);
    }

    #[test]
    fn sizes_are_read_from_headers() {
        assert_eq!(size(&url(&png(640, 480))), Some((640, 480)));
        assert_eq!(size(&url(&jpeg(220, 221, 5000))), Some((220, 221)));
        let gif = [b"GIF89a".as_slice(), &[0x2C, 1, 0x0A, 0, 0, 0]].concat();
        assert_eq!(size(&url(&gif)), Some((300, 10)));
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
        webp.extend([0xFF, 0x03, 0, 0x0F, 0x27, 0, 0, 0, 0]);
        assert_eq!(size(&url(&webp)), Some((1024, 10_000)));
        assert_eq!(size("https://example.org/a.png"), None);
        assert_eq!(size(&url(&jpeg(1, 1, 14)[..20])), None);
    }

    #[test]
    fn tokens_follow_the_vendor() {
        let url = url(&png(220, 220));
        // 8·8 tiles of 28 px; 7·7 tiles of 32 px times 1.2; one tile of 768 px.
        assert_eq!(tokens(&url, "anthropic", "claude-x"), 64);
        assert_eq!(tokens(&url, "openai", "fake"), 59);
        assert_eq!(tokens(&url, "gemini", "gemini-x"), 258);
        assert_eq!(tokens(&url, "ollama", "llava"), 0);
        assert_eq!(tokens(&url, "openrouter", "claude-x"), 64);
        let huge = format!(
            "data:image/png;base64,{}",
            STANDARD.encode(png(30_000, 30_000))
        );
        assert_eq!(tokens(&huge, "anthropic", "c"), 4784);
        assert_eq!(tokens(&huge, "openai", "o"), 12_000);
    }
}
