//! Bytes to text, with the encoding names that Python programs use.

/// Why bytes are not text in an encoding.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DecodeError {
    #[error("unknown encoding: {0}")]
    Unknown(String),
    #[error("byte 0x{byte:02x} at position {position} does not fit")]
    Byte { byte: u8, position: usize },
    #[error("the content does not fit")]
    Content,
}

/// Decodes strictly: a byte that does not fit is an error, never a replacement character. A byte order mark is kept in
/// `utf-8`, as in Python.
pub(crate) fn decode(bytes: &[u8], encoding: &str) -> Result<String, DecodeError> {
    let name = encoding
        .trim()
        .to_ascii_lowercase()
        .replace(['_', ' '], "-");
    match name.as_str() {
        "utf-8" | "utf8" => utf8(bytes),
        "utf-8-sig" => utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)),
        "ascii" | "us-ascii" => match bytes.iter().position(|byte| !byte.is_ascii()) {
            Some(position) => Err(DecodeError::Byte {
                byte: bytes[position],
                position,
            }),
            None => utf8(bytes),
        },
        "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => {
            Ok(bytes.iter().copied().map(char::from).collect())
        }
        "utf-16" | "utf16" => match bytes {
            [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
            _ => utf16(bytes, u16::from_le_bytes),
        },
        "utf-16-le" | "utf-16le" => utf16(bytes, u16::from_le_bytes),
        "utf-16-be" | "utf-16be" => utf16(bytes, u16::from_be_bytes),
        _ => other(bytes, &name).unwrap_or_else(|| Err(DecodeError::Unknown(encoding.to_owned()))),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let position = error.valid_up_to();
            Err(DecodeError::Byte {
                byte: bytes.get(position).copied().unwrap_or_default(),
                position,
            })
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, DecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(DecodeError::Content);
    }
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .collect::<Result<_, _>>()
        .map_err(|_| DecodeError::Content)
}

/// The encodings of the WHATWG standard, under their labels there and under the Python names of the same things.
fn other(bytes: &[u8], name: &str) -> Option<Result<String, DecodeError>> {
    let label = match name {
        "mac-roman" => "macintosh".to_owned(),
        "cp932" | "shift-jis" | "sjis" => "shift_jis".to_owned(),
        "cp936" => "gbk".to_owned(),
        "cp949" => "euc-kr".to_owned(),
        "cp950" => "big5".to_owned(),
        _ => match name.strip_prefix("iso8859-") {
            Some(part) => format!("iso-8859-{part}"),
            None => name.to_owned(),
        },
    };
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes())?;
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    Some(
        text.map(std::borrow::Cow::into_owned)
            .ok_or(DecodeError::Content),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_encodings() {
        for (bytes, encoding, wanted) in [
            (&b"caf\xc3\xa9"[..], "utf-8", "café"),
            (b"caf\xe9", "latin-1", "café"),
            (b"caf\xe9 \x80", "cp1252", "café €"),
            (b"\xff\xfea\x00\xe9\x00", "utf-16", "aé"),
            (b"\x00a\x00\xe9", "UTF_16_BE", "aé"),
            (b"\xef\xbb\xbfx", "utf-8", "\u{feff}x"),
            (b"\xef\xbb\xbfx", "utf-8-sig", "x"),
            (b"\xcf\xf0\xe8\xe2\xe5\xf2", "windows-1251", "Привет"),
            (b"\x82\xb1", "shift_jis", "こ"),
        ] {
            assert_eq!(decode(bytes, encoding).as_deref(), Ok(wanted), "{encoding}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_with_its_position() {
        assert_eq!(
            decode(b"ab\xff", "utf-8"),
            Err(DecodeError::Byte {
                byte: 0xff,
                position: 2
            })
        );
        assert_eq!(
            decode(b"a\xc3", "utf-8"),
            Err(DecodeError::Byte {
                byte: 0xc3,
                position: 1
            })
        );
        assert_eq!(
            decode(b"\xe9", "ascii"),
            Err(DecodeError::Byte {
                byte: 0xe9,
                position: 0
            })
        );
        assert_eq!(decode(b"abc", "utf-16"), Err(DecodeError::Content));
        assert_eq!(
            decode(b"x", "klingon"),
            Err(DecodeError::Unknown("klingon".to_owned()))
        );
    }
}
