//! What a picture is, told by its first bytes: names and servers are often wrong, and model providers
//! refuse a picture under the wrong type.

/// The media type of a picture that begins with `bytes`, for the four formats that models take.
#[must_use]
pub fn picture_type(bytes: &[u8]) -> Option<&'static str> {
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
    fn the_first_bytes_tell() {
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF87a\x01\0", Some("image/gif")),
            (b"GIF89a\x01\0", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8X", Some("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"RIFF", None),
            (b"%PDF-1.7", None),
            (b"GIF88a", None),
            (b"", None),
        ] {
            assert_eq!(picture_type(bytes), expected, "{bytes:?}");
        }
    }
}
