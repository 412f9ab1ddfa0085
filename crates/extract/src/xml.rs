//! XML: one that stands on a single line is laid out, so that people can read it and a line diff
//! says what changed. Entities are never expanded, and what is no well-formed XML stays as it is.

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::document::{Document, Format};
use crate::limits::Limits;
use crate::sink::TextSink;
use crate::text;

/// Levels that are indented; deeper ones stand where the last of these does.
const INDENTED: usize = 64;

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Document {
    let source = text::decode(bytes);
    let mut sink = TextSink::new(limits);
    if is_compact(&source) && is_well_formed(&source) {
        lay_out(&source, &mut sink);
    } else {
        sink.push(&source);
    }
    sink.into_document(Format::Text)
}

/// Whether everything stands on one line, after a line for the declaration at most.
fn is_compact(source: &str) -> bool {
    let mut lines = source.trim_end().split('\n');
    let first = lines.next().unwrap_or_default().trim_end();
    match lines.next() {
        None => true,
        Some(_) => first.starts_with("<?xml") && first.ends_with("?>") && lines.next().is_none(),
    }
}

/// The pieces of the source: each element's tag, and the text between two of them, as they stand.
fn pieces(source: &str, mut visit: impl FnMut(&Event<'_>, &str) -> bool) -> bool {
    let mut reader = Reader::from_str(source);
    let mut depth = 0_usize;
    let mut from = 0;
    loop {
        let Ok(event) = reader.read_event() else {
            return false;
        };
        let to = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let Some(piece) = source.get(from..to) else {
            return false;
        };
        from = to;
        match event {
            Event::Eof => return depth == 0,
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !visit(&event, piece) {
            return true;
        }
    }
}

fn is_well_formed(source: &str) -> bool {
    let mut elements = false;
    let well = pieces(source, |event, _| {
        elements |= matches!(event, Event::Start(_) | Event::Empty(_));
        true
    });
    well && elements
}

/// Each element on a line of its own, one that holds only text together with it.
fn lay_out(source: &str, sink: &mut TextSink) {
    let mut depth = 0_usize;
    let mut line = String::new();
    // Whether the line holds a start tag and what follows it, but no other element.
    let mut open = false;
    let indent = |depth: usize| "  ".repeat(depth.min(INDENTED));
    pieces(source, |event, piece| {
        match event {
            Event::Start(_) => {
                end_line(&mut line, sink);
                line = format!("{}{piece}", indent(depth));
                depth += 1;
                open = true;
            }
            Event::End(_) => {
                depth = depth.saturating_sub(1);
                if !open {
                    end_line(&mut line, sink);
                    line = indent(depth);
                }
                line.push_str(piece);
                end_line(&mut line, sink);
                open = false;
            }
            Event::Text(_) | Event::GeneralRef(_) | Event::CData(_) => {
                if line.is_empty() && !piece.trim().is_empty() {
                    line = indent(depth);
                }
                line.push_str(piece.trim_matches(['\n', '\r']));
            }
            _ => {
                end_line(&mut line, sink);
                line = format!("{}{piece}", indent(depth));
                end_line(&mut line, sink);
                open = false;
            }
        }
        !sink.is_full()
    });
    end_line(&mut line, sink);
}

fn end_line(line: &mut String, sink: &mut TextSink) {
    if !line.trim().is_empty() {
        sink.line(line);
    }
    line.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> String {
        extract(source.as_bytes(), &Limits::default()).text
    }

    #[test]
    fn a_document_on_one_line_is_laid_out() {
        assert_eq!(
            read(
                "<?xml version=\"1.0\"?>\n<a x='1 > 0'><b>one &amp; <![CDATA[<two>]]></b><c/><!-- d --><e><f> g </f></e>tail</a>"
            ),
            "<?xml version=\"1.0\"?>\n<a x='1 > 0'>\n  <b>one &amp; <![CDATA[<two>]]></b>\n  <c/>\n  <!-- d -->\n  \
             <e>\n    <f> g </f>\n  </e>\n  tail\n</a>\n"
        );
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for source in [
            "<a>\n<b/></a>",
            "<a><b></a>",
            "<a>",
            "no markup",
            "",
            "<a>é</b>",
            "<!DOCTYPE a [<!ENTITY x \"xx\">]><a>&x;",
        ] {
            assert_eq!(read(source), source);
        }
    }

    #[test]
    fn entities_are_not_expanded() {
        let laughs = "<!DOCTYPE a [<!ENTITY x \"ha\"><!ENTITY y \"&x;&x;&x;\">]><a><b>&y;</b></a>";
        let text = read(laughs);
        assert!(text.ends_with("<a>\n  <b>&y;</b>\n</a>\n"), "{text}");
        let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
        let limits = Limits {
            text_chars: 1_000_000,
            ..Limits::default()
        };
        assert!(extract(deep.as_bytes(), &limits).truncated);
    }
}
