//! Walking through XML within limits.
//!
//! Entities of a document type are never expanded, so there is nothing that could grow.

use quick_xml::events::attributes::Attribute;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::ExtractError;
use crate::limits::Limits;

/// What a walk comes across. Names are without prefix.
#[derive(Clone, Copy)]
pub(super) enum Node<'n, 'x> {
    /// An element begins.
    Open(&'n str, &'n BytesStart<'x>),
    /// An element ends.
    Close(&'n str),
    /// Text; a run of text may come in several pieces.
    Text(&'n str),
}

/// Calls `visit` for everything in `xml`, in order.
pub(super) fn walk(
    xml: &str,
    format: &'static str,
    limits: &Limits,
    mut visit: impl FnMut(Node<'_, '_>),
) -> Result<(), ExtractError> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut depth = 0_usize;
    loop {
        let event = reader
            .read_event()
            .map_err(|error| ExtractError::broken(format, error))?;
        match &event {
            Event::Start(element) => {
                depth += 1;
                if depth > limits.xml_depth {
                    return Err(ExtractError::Limit {
                        what: "nesting of XML elements",
                        limit: "xml_depth",
                        got: depth as u64,
                        allowed: limits.xml_depth as u64,
                    });
                }
                visit(Node::Open(element.local_name().as_ref(), element));
            }
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                visit(Node::Close(element.local_name().as_ref()));
            }
            Event::Text(text) => visit(Node::Text(&text.xml10_content())),
            Event::CData(text) => visit(Node::Text(&text.xml10_content())),
            Event::GeneralRef(reference) => {
                let resolved = reference.resolve_char_ref().ok().flatten();
                let c = resolved.or_else(|| predefined(reference.xml10_content().as_ref()));
                if let Some(c) = c {
                    visit(Node::Text(c.encode_utf8(&mut [0; 4])));
                }
            }
            Event::Eof if depth > 0 => {
                return Err(ExtractError::broken(format, "an XML file ends too early"));
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn predefined(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

/// The attribute with the local name `name`.
pub(super) fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    element
        .attributes()
        .flatten()
        .find(|attribute| attribute.key.local_name().as_ref() == name)
        .and_then(|attribute| value(&attribute))
}

/// The value of an attribute with its character references resolved.
pub(super) fn value(attribute: &Attribute<'_>) -> Option<String> {
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}
