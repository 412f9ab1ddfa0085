//! Comma-separated values: one line per row, cells separated by tabs (`spec/grading.md` §8.2).

use crate::document::{Document, Format};
use crate::limits::Limits;
use crate::sink::TextSink;
use crate::text;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Document {
    let source = text::decode(bytes);
    let mut sink = TextSink::new(limits);
    let mut cell = String::new();
    let mut row = String::new();
    let mut quoted = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            // A quote opens a quoted cell at its beginning only (RFC 4180).
            '"' if cell.is_empty() => quoted = true,
            ',' if !quoted => {
                row.push_str(&cell);
                row.push('\t');
                cell.clear();
            }
            '\r' if !quoted && chars.peek() == Some(&'\n') => {}
            '\n' | '\r' if !quoted => {
                row.push_str(&cell);
                cell.clear();
                sink.line(&row);
                row.clear();
                if sink.is_full() {
                    return sink.into_document(Format::Csv);
                }
            }
            other => cell.push(other),
        }
    }
    row.push_str(&cell);
    if !row.is_empty() {
        sink.line(&row);
    }
    sink.into_document(Format::Csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        extract(source.as_bytes(), &Limits::default()).text
    }

    #[test]
    fn quotes_hold_commas_quotes_and_line_breaks() {
        assert_eq!(
            read("a,\"b, c\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",,x"),
            "a\tb, c\tsay \"hi\"\ntwo\nlines\t\tx\n"
        );
        assert_eq!(read("5\" pipe,ok\n"), "5\" pipe\tok\n");
        assert_eq!(read(""), "");
    }

    #[test]
    fn long_files_are_cut_with_a_note() {
        let limits = Limits {
            text_chars: 10,
            ..Limits::default()
        };
        let document = extract(b"aaaa,b\ncccc,d\neeee,f\n", &limits);
        assert_eq!(document.text, "aaaa\tb\nccc");
        assert!(document.truncated);
        assert!(
            document.notes[0].contains("`text_chars`"),
            "{:?}",
            document.notes
        );
    }
}
