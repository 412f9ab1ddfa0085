//! Unified diffs: right, bounded, and honest about what is left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

use std::io;
use std::time::Duration;

use proptest::prelude::*;
use snapshot::{DiffLimits, UnifiedDiff, unified_diff};

fn diff(old: &str, new: &str, limits: &DiffLimits) -> UnifiedDiff {
    bytes_diff(old.as_bytes(), new.as_bytes(), limits).unwrap()
}

fn bytes_diff(old: &[u8], new: &[u8], limits: &DiffLimits) -> Option<UnifiedDiff> {
    unified_diff("f", || io::Result::Ok(old), || io::Result::Ok(new), limits).unwrap()
}

/// Applies a unified diff as `patch` does, and checks every line it names on the way.
fn apply(old: &str, diff: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let mut at = 0;
    let mut new = String::new();
    let mut body = diff.split_inclusive('\n').peekable();
    while let Some(line) = body.next() {
        if line.starts_with("--- ") || line.starts_with("+++ ") {
            continue;
        }
        let ranges = line
            .strip_prefix("@@ -")
            .unwrap()
            .strip_suffix(" @@\n")
            .unwrap();
        let (was, now) = ranges.split_once(" +").unwrap();
        let range = |text: &str| -> (usize, usize) {
            let (start, length) = text.split_once(',').unwrap_or((text, "1"));
            (start.parse().unwrap(), length.parse().unwrap())
        };
        let ((start, mut old_left), (new_start, mut new_left)) = (range(was), range(now));
        let start = if old_left == 0 { start } else { start - 1 };
        while at < start {
            new.push_str(lines[at]);
            at += 1;
        }
        let new_lines = new.split_inclusive('\n').count();
        assert_eq!(
            new_lines,
            if new_left == 0 {
                new_start
            } else {
                new_start - 1
            }
        );
        while old_left + new_left > 0 {
            let line = body.next().unwrap();
            let (mark, mut text) = line.split_at(1);
            if body.next_if(|next| next.starts_with('\\')).is_some() {
                text = text.strip_suffix('\n').unwrap();
            }
            if mark != "+" {
                assert_eq!(text, lines[at]);
                at += 1;
                old_left -= 1;
            }
            if mark != "-" {
                new.push_str(text);
                new_left -= 1;
            }
        }
    }
    lines[at..].iter().for_each(|line| new.push_str(line));
    new
}

#[test]
fn a_diff_is_written_as_others_read_it() {
    let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n";
    let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk";
    // As `diff -u` writes it.
    assert_eq!(
        diff(old, new, &DiffLimits::default()).text,
        "--- a/f\n+++ b/f\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -8,3 +8,4 @@\n h\n i\n j\n+k\n\\ No newline at end of file\n"
    );
    assert_eq!(
        diff(old, old, &DiffLimits::default()),
        UnifiedDiff::default()
    );
    assert_eq!(
        diff("x", "x\n", &DiffLimits::default()).text,
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"
    );
}

/// 12 MB on each side, of which two lines differ: the script needs no more than those.
#[test]
fn a_change_in_a_large_text_is_found() {
    let line = |number: usize| format!("{number} {}\n", "x".repeat(100));
    let old: String = (0..110_000).map(line).collect();
    let new: String = (0..110_000)
        .map(|number| match number {
            50_000 => "changed\n".to_owned(),
            70_000 => String::new(),
            number => line(number),
        })
        .collect();
    let shown = diff(&old, &new, &DiffLimits::default());
    assert!(!shown.cut, "{:?}", shown.notes);
    assert!(
        shown.text.contains("@@ -49998,7 +49998,7 @@"),
        "{}",
        shown.text
    );
    assert!(
        shown.text.contains("@@ -69998,7 +69998,6 @@"),
        "{}",
        shown.text
    );
    assert_eq!(apply(&old, &shown.text), new);
}

#[test]
fn what_is_cut_is_said() {
    let text = |word: &str| {
        (0..1000)
            .map(|n| format!("{word} {n}\n"))
            .collect::<String>()
    };
    let limits = DiffLimits {
        max_bytes: 100,
        ..DiffLimits::default()
    };
    let shown = diff("", &text("new"), &limits);
    assert!(shown.cut);
    assert!(shown.text.len() <= 100);
    // 35 bytes of headers, then nine lines of 7 bytes; a tenth does not fit.
    assert!(shown.text.ends_with("+new 8\n"), "{}", shown.text);
    assert_eq!(
        shown.notes,
        ["the diff is cut after 100 bytes: 9 of 1000 changed lines are shown (limit `max_bytes`)"]
    );

    let limits = DiffLimits {
        max_line_bytes: 4,
        ..DiffLimits::default()
    };
    let shown = diff("aaaaaé\n", "aaaé\n", &limits);
    assert_eq!(
        shown.text,
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-aaaa… [3 more bytes]\n+aaa… [2 more bytes]\n"
    );
    assert_eq!(
        shown.notes,
        ["2 lines are cut after 4 bytes (limit `max_line_bytes`)"]
    );
}

/// Where only the first lines are compared, what comes after them is neither added nor removed.
#[test]
fn lines_beyond_the_limit_are_no_changes() {
    let limits = DiffLimits {
        max_lines: 10,
        ..DiffLimits::default()
    };
    let numbers = |range: std::ops::Range<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    let (old, new) = (numbers(0..100), format!("first\n{}", numbers(0..100)));
    let shown = diff(&old, &new, &limits);
    assert_eq!(
        shown.text,
        "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n+first\n 0\n 1\n 2\n"
    );
    assert_eq!(
        shown.notes,
        [
            "not compared from line 11 on, which was line 10 (limits `max_lines`, `max_changed_lines`)"
        ]
    );
    // The same lines at both ends do not count.
    let (old, new) = (numbers(0..100), numbers(0..100).replace("50\n", "fifty\n"));
    let limits = DiffLimits {
        max_changed_lines: 1,
        ..DiffLimits::default()
    };
    assert_eq!(diff(&old, &new, &limits).notes, [""; 0]);
}

#[test]
fn binary_content_and_old_encodings() {
    let limits = DiffLimits::default();
    assert_eq!(bytes_diff(b"text\n", b"te\0xt\n", &limits), None);
    assert_eq!(bytes_diff(b"\xff\xfe\x01", b"text\n", &limits), None);
    let late = [b"a\n".repeat(100_000), b"\0".to_vec()].concat();
    assert_eq!(bytes_diff(b"", &late, &limits), None);
    let shown = bytes_diff(b"Z\xfcrich \x80 5\n", "Zürich\n".as_bytes(), &limits).unwrap();
    assert!(
        shown.text.ends_with("-Zürich € 5\n+Zürich\n"),
        "{}",
        shown.text
    );
    assert_eq!(shown.notes, ["not UTF-8, read as Windows-1252"]);
    // A colour of a terminal does not make a log binary.
    assert!(bytes_diff(b"", b"\x1b[31mred\x1b[0m\n", &limits).is_some());
}

/// Two texts that share no order at all are what an aligner needs most time for.
#[test]
fn texts_without_order_end_in_a_right_diff() {
    let mut state = 1_u64;
    let mut words = |count: usize| -> String {
        (0..count)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                format!("{}\n", (state >> 33) % 50)
            })
            .collect()
    };
    let (old, new) = (words(20_000), words(20_000));
    let limits = DiffLimits {
        max_time: Duration::from_millis(50),
        ..DiffLimits::default()
    };
    let shown = diff(&old, &new, &limits);
    assert!(!shown.cut);
    assert_eq!(apply(&old, &shown.text), new);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_shown_diff_applied_to_one_side_gives_the_other(
        old in "([ab]{0,2}\n){0,12}[ab]?",
        new in "([ab]{0,2}\n){0,12}[ab]?",
        context_lines in 0_usize..5,
    ) {
        let limits = DiffLimits { context_lines, ..DiffLimits::default() };
        let shown = diff(&old, &new, &limits);
        prop_assert!(!shown.cut);
        prop_assert_eq!(shown.text.is_empty(), old == new);
        prop_assert_eq!(apply(&old, &shown.text), new);
    }

    /// Also where the window of compared lines is small, nothing is shown that is not so.
    #[test]
    fn a_window_shows_a_beginning_of_the_change(
        old in proptest::collection::vec("[abc]", 0..20),
        new in proptest::collection::vec("[abc]", 0..20),
        max_lines in 1_usize..8,
        max_changed_lines in 1_usize..8,
    ) {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (old, new) = (text(&old), text(&new));
        let limits = DiffLimits { max_lines, max_changed_lines, ..DiffLimits::default() };
        let shown = diff(&old, &new, &limits);
        if !shown.cut {
            prop_assert_eq!(apply(&old, &shown.text), new);
            return Ok(());
        }
        // `not compared from line 3 on, which was line 2 (…)`
        let words: Vec<&str> = shown.notes[0].split(' ').collect();
        let compared = |text: &str, word: usize| -> String {
            let lines = words[word].parse::<usize>().unwrap() - 1;
            text.split_inclusive('\n').take(lines).collect()
        };
        prop_assert_eq!(apply(&compared(&old, 9), &shown.text), compared(&new, 4));
    }
}
