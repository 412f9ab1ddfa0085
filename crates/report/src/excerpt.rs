//! Text by models and tools, made safe to show: no control characters, bounded, wrapped.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const ESCAPE: char = '\u{1b}';
const STRING_TERMINATOR: char = '\u{9c}';

/// Takes terminal escape sequences (ECMA-48), control characters and direction overrides out of
/// `text`. Line breaks stay, tabs become four blanks.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => plain.push('\n'),
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    plain.push('\n');
                }
            }
            '\t' => plain.push_str("    "),
            ESCAPE => match rest.next() {
                Some('[') => skip_control_sequence(&mut rest),
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                // Intermediate bytes belong to the sequence, and so does the byte after them.
                Some(' '..='/') => {
                    while rest.next_if(|c| matches!(c, ' '..='/')).is_some() {}
                    rest.next_if(|c| !c.is_control());
                }
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            // What reorders the text around it can make it say something else.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Parameters and intermediates up to the final byte. Anything else ends a malformed sequence.
fn skip_control_sequence(rest: &mut Rest<'_>) {
    while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    rest.next_if(|c| matches!(c, '@'..='~'));
}

/// A command string (a window title, a link) up to its terminator; at most to the end of the line,
/// so that one that is left open does not swallow everything.
fn skip_string(rest: &mut Rest<'_>) {
    while let Some(c) = rest.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | STRING_TERMINATOR => return,
            ESCAPE => {
                rest.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

/// How much of a text is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) lines: usize,
    pub(crate) characters: usize,
}

/// The beginning of `text`, made plain, with a note in brackets where something was left out.
pub(crate) fn excerpt(text: &str, bounds: Bounds) -> String {
    // Only what may be shown is looked at; the factor leaves room for what will be taken out.
    let window = cut(text, bounds.characters.saturating_mul(4));
    let plain = plain(window);
    let plain = plain.trim_end();
    let shown = cut(plain, bounds.characters);
    let end = shown
        .match_indices('\n')
        .nth(bounds.lines.saturating_sub(1));
    let shown = end.map_or(shown, |(end, _)| &shown[..end]);
    if shown.len() == plain.len() && window.len() == text.len() {
        return shown.to_owned();
    }
    let shown = shown.trim_end();
    format!(
        "{shown}\n[… {} in all]",
        crate::figures::bytes(text.len() as u64)
    )
}

/// The beginning of `text` in one line, with `…` where something was left out.
pub(crate) fn one_line(text: &str, columns: usize) -> String {
    let window = cut(text, columns.saturating_mul(8));
    let words: Vec<String> = plain(window)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let line = words.join(" ");
    if line.width() <= columns && window.len() == text.len() {
        return line;
    }
    let mut shown = fitting(&line, columns.saturating_sub(1)).to_owned();
    shown.push('…');
    shown
}

/// The first `characters` characters of `text`.
fn cut(text: &str, characters: usize) -> &str {
    match text.char_indices().nth(characters) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The longest beginning of `text` that takes at most `columns` columns.
fn fitting(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// Breaks plain `text` into lines of at most `columns` columns, each behind `indent`.
///
/// Lines keep their own indentation; words that are too long are broken.
pub(crate) fn wrap(text: &str, columns: usize, indent: &str) -> Vec<String> {
    let space = columns.saturating_sub(indent.width()).max(20);
    let mut lines = Vec::new();
    for line in text.lines() {
        let own = line.len() - line.trim_start().len();
        // An indentation that leaves no room for words is given up.
        let own = if own < space / 2 { &line[..own] } else { "" };
        wrap_line(line.trim(), space - own.width(), |part| {
            lines.push(format!("{indent}{own}{part}").trim_end().to_owned());
        });
    }
    lines
}

fn wrap_line(line: &str, columns: usize, mut push: impl FnMut(&str)) {
    let mut rest = line;
    while rest.width() > columns {
        let whole = fitting(rest, columns);
        // The blank behind the last fitting word may itself stand outside.
        let at = match rest[whole.len()..].starts_with(' ') {
            true => whole.len(),
            false => whole.rfind(' ').unwrap_or(whole.len()),
        };
        // At least one character, or there would be no end; a wide one may not fit alone.
        let at = at.max(rest.chars().next().map_or(1, char::len_utf8));
        push(rest[..at].trim_end());
        rest = rest[at..].trim_start();
    }
    push(rest);
}

/// `text` with blanks up to `columns` columns, or cut to them.
pub(crate) fn column(text: &str, columns: usize) -> String {
    let text = one_line(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        for (text, expected) in [
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[38;2;1;2;3mtrue\x1b[K colour", "true colour"),
            ("\x1b]0;title\x07after", "after"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;c2VjcmV0", ""),
            ("\x1b]0;open\nnext line", "\nnext line"),
            ("\u{9b}31mc1\u{9d}title\u{9c}!", "c1!"),
            ("\x1b(Bcharset \x1b7saved\x1bc", "charset saved"),
            ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
            ("a\x08\x08b\x07c\x00d\x7fe", "abcde"),
            ("one\r\ntwo\rthree\tfour", "one\ntwo\nthree    four"),
            ("safe\u{202e}txt.exe\u{2066}", "safetxt.exe"),
            ("\x1b", ""),
            ("\x1b[", ""),
            ("äöü 漢字 🦍", "äöü 漢字 🦍"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }

    #[test]
    fn excerpts_are_bounded_in_lines_and_characters() {
        let bounds = Bounds {
            lines: 2,
            characters: 10,
        };
        assert_eq!(excerpt("a\nb", bounds), "a\nb");
        assert_eq!(excerpt("a\nb\n\n", bounds), "a\nb");
        assert_eq!(excerpt("a\nb\nc", bounds), "a\nb\n[… 5 B in all]");
        assert_eq!(
            excerpt("0123456789abc", bounds),
            "0123456789\n[… 13 B in all]"
        );
        let huge = "x".repeat(5_000_000);
        assert_eq!(excerpt(&huge, bounds), "xxxxxxxxxx\n[… 5.0 MB in all]");
        let escapes = "\x1b[31m".repeat(1_000_000);
        assert_eq!(excerpt(&escapes, bounds), "\n[… 5.0 MB in all]");
    }

    #[test]
    fn one_line_joins_and_cuts_by_columns() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(one_line("漢字漢字", 8), "漢字漢字");
        assert_eq!(one_line("漢字漢字", 7), "漢字漢…");
        assert_eq!(one_line(&"y".repeat(1_000_000), 4), "yyy…");
    }

    #[test]
    fn lines_are_wrapped_at_words_and_by_width() {
        assert_eq!(
            wrap("the quick brown fox jumps over it", 22, "  "),
            ["  the quick brown fox", "  jumps over it"]
        );
        assert_eq!(wrap("a\n\n  - b", 40, ""), ["a", "", "  - b"]);
        assert_eq!(
            wrap("exactly twenty colum and", 20, ""),
            ["exactly twenty colum", "and"]
        );
        assert_eq!(wrap(&"z".repeat(45), 20, "").len(), 3);
        assert_eq!(
            wrap(&"漢".repeat(12), 20, ""),
            ["漢".repeat(10), "漢漢".to_owned()]
        );
    }

    #[test]
    fn columns_are_filled() {
        assert_eq!(column("漢", 4), "漢  ");
        assert_eq!(column("abcdef", 4), "abc…");
    }
}
