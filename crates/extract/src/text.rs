//! From bytes to text.

use std::borrow::Cow;

/// How much of a file is looked at to tell text from binary content.
const SAMPLE: usize = 8 << 10;

/// Decodes `bytes` as text: UTF-8 or UTF-16 by byte order mark, UTF-8 where it is valid, UTF-16
/// without a mark where every other byte of the beginning is zero, and Latin-1 (Windows-1252 in
/// the range that Latin-1 leaves to control characters) for everything else. The mark is removed.
/// Valid UTF-8, which most files are, is not copied.
pub(crate) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        return String::from_utf8_lossy(rest);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(rest, u16::from_le_bytes).into();
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(rest, u16::from_be_bytes).into();
    }
    match std::str::from_utf8(bytes) {
        // Valid UTF-8 may still be UTF-16 of plain letters, which is full of zero bytes.
        Ok(text) if !text.as_bytes().contains(&0) => Cow::Borrowed(text),
        _ => match unmarked_utf16(bytes) {
            Some(text) => text.into(),
            None => latin1(bytes).into(),
        },
    }
}

/// Decodes a piece of a file that is not UTF-16: as UTF-8 where it is valid, else as Windows-1252.
pub(crate) fn decode_piece(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| latin1(error.as_bytes()))
}

/// Whether the beginning of `bytes` reads as text: not empty of content, UTF-16 by its mark, or
/// UTF-8 without a zero byte.
pub(crate) fn looks_like_text(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return true;
    }
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    if sample.contains(&0) {
        return false;
    }
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        // The sample may end inside a character.
        Err(error) => error.error_len().is_none() && sample.len() < bytes.len(),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.as_chunks::<2>().0.iter().copied().map(unit);
    char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// UTF-16 without a mark: text in most languages has a zero in every other byte somewhere near
/// its beginning, and always on the same side.
fn unmarked_utf16(bytes: &[u8]) -> Option<String> {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    let zeros = |odd: usize| {
        sample
            .iter()
            .skip(odd)
            .step_by(2)
            .filter(|byte| **byte == 0)
            .count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let half = sample.len() / 2;
    if half == 0 || !bytes.len().is_multiple_of(2) {
        return None;
    }
    if even == 0 && odd * 2 >= half {
        Some(utf16(bytes, u16::from_le_bytes))
    } else if odd == 0 && even * 2 >= half {
        Some(utf16(bytes, u16::from_be_bytes))
    } else {
        None
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| windows_1252(*byte)).collect()
}

/// The characters of Windows-1252 from 0x80 to 0x9f (WHATWG encoding standard, index
/// windows-1252); unused places stay the control characters of Latin-1.
fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž',
        '\u{8f}', '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}',
        'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        other => char::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_gives_the_same_text() {
        let text = "Zürich, naïve\r\nrow 2";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let one_byte: Vec<u8> = text
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            [b"\xff\xfe", le.as_slice()].concat(),
            [b"\xfe\xff", be.as_slice()].concat(),
            le,
            be,
            one_byte,
        ] {
            assert_eq!(decode(&bytes), text, "{bytes:?}");
        }
        assert_eq!(decode(b"\x93quoted\x94 \x80 5"), "“quoted” € 5");
    }

    #[test]
    fn text_is_told_from_binary_content() {
        assert!(looks_like_text(b""));
        assert!(looks_like_text("ünï".as_bytes()));
        assert!(!looks_like_text(b"a\0b"));
        assert!(!looks_like_text(b"\x89PNG\r\n"));
        // A character that the sample cuts in two does not make a file binary.
        let mut long = vec![b'a'; SAMPLE - 1];
        long.extend("é and more".as_bytes());
        assert!(looks_like_text(&long));
        assert!(!looks_like_text("é".as_bytes().split_last().unwrap().1));
    }
}
