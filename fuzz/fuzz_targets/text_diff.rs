//! Two texts, divided by the first `\x01`: the diff applied to one gives the other, or says what it left out.
#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use snapshot::{DiffLimits, unified_diff};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (old, new) = text.split_once('\x01').unwrap_or((text, ""));
    let limits = DiffLimits {
        context_lines: old.len() % 5,
        max_lines: 1 + new.len() % 50,
        ..DiffLimits::default()
    };
    let diff = unified_diff("f", || io::Result::Ok(old.as_bytes()), || io::Result::Ok(new.as_bytes()), &limits);
    let Some(diff) = diff.unwrap() else {
        return;
    };
    if !diff.cut {
        assert_eq!(apply(old, &diff.text), new);
    }
});

fn apply(old: &str, diff: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut at, mut new) = (0, String::new());
    let mut body = diff.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = body.next() {
        if let Some(ranges) = line.strip_prefix("@@ -") {
            let was = ranges.split(' ').next().unwrap();
            let (start, length) = was.split_once(',').unwrap_or((was, "1"));
            let start: usize = start.parse().unwrap();
            let start = if length == "0" { start } else { start - 1 };
            new.extend(lines[at..start].iter().copied());
            at = start;
            continue;
        }
        let (mark, mut text) = line.split_at(1);
        if body.next_if(|next| next.starts_with("\\ No newline")).is_some() {
            text = text.strip_suffix('\n').unwrap();
        }
        if mark != "+" {
            assert_eq!(text, lines[at]);
            at += 1;
        }
        if mark != "-" {
            new.push_str(text);
        }
    }
    new.extend(lines[at..].iter().copied());
    new
}
