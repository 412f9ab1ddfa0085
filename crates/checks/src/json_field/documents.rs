//! JSON, YAML and XML files as one kind of document. They come from agents: nesting and what
//! aliases expand to are limited by the parsers, entities are not resolved.

use formats::Object;
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

/// Elements inside of each other in an XML file at most.
const MAX_DEPTH: usize = 128;

/// Reads the file at `path`; `None` where it is broken.
pub(super) fn read(path: &str, bytes: &[u8]) -> Option<Value> {
    match extract::extension(path).as_str() {
        "yaml" | "yml" => serde_saphyr::from_slice(bytes).ok(),
        "xml" => xml(std::str::from_utf8(bytes)
            .ok()?
            .trim_start_matches('\u{feff}')),
        _ => serde_json::from_slice(bytes).ok(),
    }
}

/// An element that is open: its name and what was found in it.
struct Open {
    name: String,
    members: Object,
    text: String,
}

impl Open {
    fn of(element: &BytesStart<'_>) -> Self {
        let mut members = Object::new();
        for attribute in element.attributes().flatten() {
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            if let Ok(value) = value {
                let name = attribute.key.local_name();
                members.insert(format!("@{}", name.as_ref()), value.into_owned().into());
            }
        }
        Self {
            name: element.local_name().as_ref().to_owned(),
            members,
            text: String::new(),
        }
    }

    /// The element as a value: its text where it has nothing else.
    fn done(self) -> (String, Value) {
        let text = self.text.trim();
        if self.members.is_empty() {
            return (self.name, text.into());
        }
        let mut members = self.members;
        if !text.is_empty() {
            members.insert("#text".to_owned(), text.into());
        }
        (self.name, members.into())
    }

    /// Takes an element inside; several of one name are a list.
    fn take(&mut self, name: String, value: Value) {
        match self.members.get_mut(&name) {
            None => {
                self.members.insert(name, value);
            }
            Some(Value::Array(list)) => list.push(value),
            Some(first) => {
                let list = vec![std::mem::take(first), value];
                *first = list.into();
            }
        }
    }
}

/// The root element as the one member of an object.
fn xml(text: &str) -> Option<Value> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut root = Open {
        name: String::new(),
        members: Object::new(),
        text: String::new(),
    };
    let mut open: Vec<Open> = Vec::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => {
                if open.len() == MAX_DEPTH {
                    return None;
                }
                open.push(Open::of(&element));
            }
            Event::End(_) => {
                let (name, value) = open.pop()?.done();
                open.last_mut().unwrap_or(&mut root).take(name, value);
            }
            Event::Text(text) => push(&mut open, &text.xml10_content()),
            Event::CData(text) => push(&mut open, &text.xml10_content()),
            Event::GeneralRef(reference) => {
                let resolved = reference.resolve_char_ref().ok().flatten();
                let c = resolved.or_else(|| match reference.xml10_content().as_ref() {
                    "amp" => Some('&'),
                    "lt" => Some('<'),
                    "gt" => Some('>'),
                    "quot" => Some('"'),
                    "apos" => Some('\''),
                    _ => None,
                })?;
                push(&mut open, c.encode_utf8(&mut [0; 4]));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    (open.is_empty() && !root.members.is_empty()).then(|| root.members.into())
}

fn push(open: &mut [Open], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_are_objects_lists_or_texts() {
        let document = read(
            "config.xml",
            b"<?xml version='1.0'?><project version=\"2\"><name>A &amp; B</name>\
              <triggers><cron>0 6 * * *</cron><cron>@daily</cron></triggers><empty/></project>",
        );
        assert_eq!(
            document,
            Some(json!({"project": {
                "@version": "2", "name": "A & B",
                "triggers": {"cron": ["0 6 * * *", "@daily"]}, "empty": "",
            }}))
        );
        assert_eq!(read("a.xml", b"<a><b></a>"), None);
        assert_eq!(read("a.xml", b"<a>&unknown;</a>"), None);
        assert_eq!(read("a.xml", "<a>".repeat(200).as_bytes()), None);
    }

    #[test]
    fn yaml_is_read_with_its_types() {
        let document = read(
            "a.yml",
            b"jobs:\n  - name: build\n    on: 3\n    share: 0.5\n",
        );
        assert_eq!(
            document,
            Some(json!({"jobs": [{"name": "build", "on": 3, "share": 0.5}]}))
        );
        // Aliases that would expand to a great deal.
        let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
        for (name, former) in ["b", "c", "d", "e", "f", "g", "h"]
            .iter()
            .zip(["a", "b", "c", "d", "e", "f", "g"])
        {
            let list = vec![format!("*{former}"); 10].join(",");
            bomb.push_str(&format!("{name}: &{name} [{list}]\n"));
        }
        assert_eq!(read("a.yaml", bomb.as_bytes()), None);
        assert_eq!(read("a.yaml", b"{"), None);
    }
}
