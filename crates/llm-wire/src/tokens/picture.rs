//! Pictures: their size from the first bytes, their tokens from their size.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Tokens of any picture, and of one looked at with low detail.
const BASE: u64 = 85;
/// Tokens of each tile of 512 pixels.
const TILE: u64 = 170;
/// What a picture counts whose size is not known: that of 1024 × 1024 pixels.
const UNKNOWN: u64 = BASE + 4 * TILE;
/// How much of a picture is decoded to find its size; a JPEG may have a large preamble.
const LONGEST_HEADER: usize = 256 * 1024;

/// The estimated tokens of the picture at `url`; only `data:` URLs are looked into.
pub(super) fn tokens(url: &str, detail: Option<&str>) -> u64 {
    if detail == Some("low") {
        return BASE;
    }
    match size_in_url(url) {
        Some((width, height)) => BASE + TILE * tiles(width, height),
        None => UNKNOWN,
    }
}

/// Width and height of the picture in a `data:` URL.
pub(super) fn size_in_url(url: &str) -> Option<(u32, u32)> {
    let (_, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    size_of_base64(data)
}

/// Tiles of a picture that is first made to fit into 2048 × 2048, then to a short side of 768.
fn tiles(width: u32, height: u32) -> u64 {
    let (mut width, mut height) = (f64::from(width.max(1)), f64::from(height.max(1)));
    let fit = (2048.0 / width.max(height)).min(1.0);
    width *= fit;
    height *= fit;
    let short = (768.0 / width.min(height)).min(1.0);
    let across = |side: f64| {
        let mut tiles = 1_u64;
        let mut covered = 512.0;
        while covered < (side * short).round() {
            tiles += 1;
            covered += 512.0;
        }
        tiles
    };
    across(width) * across(height)
}

fn size_of_base64(data: &str) -> Option<(u32, u32)> {
    let header = data.get(..data.len().min(LONGEST_HEADER / 3 * 4))?;
    // Only whole groups of four can be decoded when the end is cut off.
    let whole = header.get(..header.len() / 4 * 4)?;
    size(&STANDARD.decode(whole).ok()?)
}

/// Width and height of a PNG, GIF, JPEG or WebP file.
fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?));
    }
    if bytes.starts_with(b"GIF8") {
        return Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12)? == b"WEBP" {
        return webp_size(bytes);
    }
    if bytes.starts_with(b"\xff\xd8") {
        return jpeg_size(bytes);
    }
    None
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((
            little(bytes, 26, 2)? & 0x3fff,
            little(bytes, 28, 2)? & 0x3fff,
        )),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Fill bytes before a marker.
            0xff => at += 1,
            // The frame header, in all its kinds; the ones left out are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            _ => at += 2 + usize::try_from(big(bytes, at + 2, 2)?).ok()?,
        }
    }
}

fn big(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + length)?;
    Some(
        bytes
            .iter()
            .fold(0, |sum, byte| (sum << 8) | u32::from(*byte)),
    )
}

fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + length)?;
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| (sum << 8) | u32::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tiles_are_those_of_the_published_examples() {
        // OpenAI's guide on images: 1024 × 1024 costs 765 tokens, 2048 × 4096 costs 1105.
        assert_eq!(BASE + TILE * tiles(1024, 1024), 765);
        assert_eq!(BASE + TILE * tiles(2048, 4096), 1105);
        assert_eq!(tiles(1, 1), 1);
        assert_eq!(tiles(512, 512), 1);
        assert_eq!(tiles(u32::MAX, 1), 4);
    }

    #[test]
    fn sizes_are_read_from_headers() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 2, 0, 0, 0, 1, 44]);
        assert_eq!(size(&png), Some((512, 300)));
        assert_eq!(size(b"GIF89a\x0a\x00\x14\x00"), Some((10, 20)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x0b\x08\x00\x14\x00\x0a";
        assert_eq!(size(jpeg), Some((10, 20)));
        let webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x09\0\0\x13\0\0";
        assert_eq!(size(webp), Some((10, 20)));
    }

    #[test]
    fn low_detail_and_unknown_sizes() {
        assert_eq!(tokens("https://example.com/a.png", None), UNKNOWN);
        assert_eq!(tokens("data:image/png;base64,!!!!", None), UNKNOWN);
        assert_eq!(tokens("https://example.com/a.png", Some("low")), BASE);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_fail(bytes in proptest::collection::vec(any::<u8>(), 0..64), kind in 0..4_usize) {
            let mut file = [b"\xff\xd8".as_slice(), b"RIFF\0\0\0\0WEBPVP8L", b"GIF8", b"\x89PNG\r\n\x1a\n"][kind].to_vec();
            file.extend(bytes);
            let _ = size(&file);
        }
    }
}
