//! The text that a reader of an HTML page sees.

use crate::limits::Limits;
use crate::sink::TextSink;

/// Elements whose content is not shown.
const HIDDEN: &[&str] = &["head", "noscript", "script", "style", "template"];

/// Elements that begin and end on a line of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "br",
    "dd",
    "div",
    "dl",
    "dt",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "tr",
    "ul",
];

/// The visible text of an HTML page: tags off, entities resolved, white space collapsed, one line
/// per block, cells of a table row separated by tabs. It is a reading aid, not a browser: styles
/// that hide text are not obeyed.
#[must_use]
pub fn html_to_text(source: &str, limits: &Limits) -> String {
    let mut page = Page {
        sink: TextSink::new(limits),
        line: String::new(),
    };
    let mut rest = source;
    while !rest.is_empty() && !page.sink.is_full() {
        let Some(start) = rest.find('<') else {
            page.text(rest);
            break;
        };
        page.text(&rest[..start]);
        rest = &rest[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            continue;
        }
        let Some(end) = rest.find('>') else {
            page.text(rest);
            break;
        };
        let tag = &rest[1..end];
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            // A bare `<` of a sentence.
            page.text("<");
            rest = &rest[1..];
            continue;
        }
        rest = &rest[end + 1..];
        let name = name_of(tag);
        if HIDDEN.contains(&name.as_str()) && !tag.starts_with('/') && !tag.ends_with('/') {
            rest = after_end_tag(rest, &name);
        } else if BLOCKS.contains(&name.as_str()) {
            page.end_line();
        } else if matches!(name.as_str(), "td" | "th") && tag.starts_with('/') {
            page.line.push('\t');
        }
    }
    page.end_line();
    page.sink.into_text()
}

struct Page {
    sink: TextSink,
    line: String,
}

impl Page {
    fn text(&mut self, raw: &str) {
        let text = entities(raw);
        for c in text.chars() {
            let space = c.is_whitespace() && c != '\u{a0}';
            if !space {
                self.line.push(if c == '\u{a0}' { ' ' } else { c });
            } else if !self.line.is_empty() && !self.line.ends_with([' ', '\t']) {
                self.line.push(' ');
            }
        }
    }

    fn end_line(&mut self) {
        let line = self.line.trim();
        if !line.is_empty() {
            self.sink.line(line);
        }
        self.line.clear();
    }
}

fn name_of(tag: &str) -> String {
    tag.trim_start_matches('/')
        .split(|c: char| c.is_whitespace() || c == '/')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// What follows the end tag of `name`; nothing if it never ends.
fn after_end_tag<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let tag = &rest[at + 2..];
        let is_it = tag
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_it {
            return tag.find('>').map_or("", |end| &tag[end + 1..]);
        }
        rest = tag;
    }
    ""
}

/// Resolves character references: numbers, and the names that occur in plain pages.
fn entities(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let resolved = end.and_then(|end| Some((end, entity(rest.get(1..end)?)?)));
        match resolved {
            Some((end, c)) => {
                text.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                text.push('&');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "copy" => '©',
        "reg" => '®',
        "trade" => '™',
        "euro" => '€',
        "pound" => '£',
        "yen" => '¥',
        "sect" => '§',
        "deg" => '°',
        "plusmn" => '±',
        "times" => '×',
        "middot" => '·',
        "bull" => '•',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "laquo" => '«',
        "raquo" => '»',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        html_to_text(source, &Limits::default())
    }

    #[test]
    fn a_page_becomes_lines_and_rows() {
        let page = "<!doctype html><html><head><title>x</title><style>p{}</style></head><body>\
            <h1>Costs &amp; more</h1><p>One\n  <b>bold</b> word<br>next&nbsp;line</p><!-- <p>no</p> -->\
            <table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2&euro;</td></tr></table>\
            <SCRIPT>if (a < b) { '</p>' }</SCRIPT>end";
        assert_eq!(
            read(page),
            "Costs & more\nOne bold word\nnext line\nA\tB\n1\t2€\nend\n"
        );
    }

    #[test]
    fn broken_markup_ends() {
        assert_eq!(
            read("a < b & c &#x41; &#65; &nope; &#xffffffff;"),
            "a < b & c A A &nope; &#xffffffff;\n"
        );
        assert_eq!(read("x<script>never closed"), "x\n");
        assert_eq!(read("x<!-- never closed"), "x\n");
        assert_eq!(read("x <p never closed"), "x <p never closed\n");
        assert_eq!(read("é</é><p>ü"), "é\nü\n");
    }
}
