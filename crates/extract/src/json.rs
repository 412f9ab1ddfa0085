//! JSON: one that stands on a single line is laid out, so that people can read it and a line diff
//! says what changed. Nothing else is touched: numbers and strings stay as they are written.

use crate::document::{Document, Format};
use crate::limits::Limits;
use crate::sink::TextSink;
use crate::text;

/// Levels that are indented; deeper ones stand where the last of these does.
const INDENTED: usize = 64;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Document {
    let source = text::decode(bytes);
    let mut sink = TextSink::new(limits);
    let compact = !source.trim_end().contains('\n');
    if compact && serde_json::from_str::<serde::de::IgnoredAny>(&source).is_ok() {
        lay_out(&source, &mut sink);
    } else {
        sink.push(&source);
    }
    sink.into_document(Format::Text)
}

/// Line breaks and indentation for valid JSON.
fn lay_out(source: &str, sink: &mut TextSink) {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut line = String::new();
    let mut chars = source.chars().filter(|c| !matches!(c, '\r')).peekable();
    while let Some(c) = chars.next() {
        if in_string {
            line.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' => {
                line.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if chars.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    continue;
                }
                depth += 1;
                new_line(&mut line, depth, sink);
            }
            '}' | ']' => {
                if !line.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    new_line(&mut line, depth, sink);
                }
                line.push(c);
            }
            ',' => {
                line.push(c);
                new_line(&mut line, depth, sink);
            }
            ':' => line.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                in_string = c == '"';
                line.push(c);
            }
        }
        if sink.is_full() {
            return;
        }
    }
    sink.line(&line);
}

fn new_line(line: &mut String, depth: usize, sink: &mut TextSink) {
    sink.line(line);
    line.clear();
    (0..depth.min(INDENTED)).for_each(|_| line.push_str("  "));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        extract(source.as_bytes(), &Limits::default()).text
    }

    #[test]
    fn compact_json_is_laid_out_and_nothing_else_changes() {
        let compact = r#"{"a":[1.00,12345678901234567890,{}],"b":"x,\"{\\","c":[ ]}"#;
        let text = read(compact);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    1.00,\n    12345678901234567890,\n    {}\n  ],\n  \"b\": \"x,\\\"{\\\\\",\n  \"c\": []\n}\n"
        );
        // As serde_json lays it out, apart from the numbers.
        let value: serde_json::Value =
            serde_json::from_str(r#"{"a":[1,{"b":null}],"c":"d"}"#).unwrap();
        assert_eq!(read(&value.to_string()), format!("{value:#}\n"));
        assert_eq!(read("{\n\"a\":1}"), "{\n\"a\":1}");
        assert_eq!(read("{\"a\":1,}"), "{\"a\":1,}");
        let deep = "[".repeat(5000);
        assert_eq!(read(&deep), deep);
    }
}
