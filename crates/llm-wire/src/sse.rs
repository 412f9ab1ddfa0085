//! Server-sent events, as far as model providers use them.
//!
//! The format is that of the HTML standard: lines that end in LF, CR or CR LF, fields before a colon,
//! an empty line behind each event. Only `event` and `data` count here.

/// One event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// Its data, lines joined by newlines.
    pub(crate) data: String,
}

/// Takes events out of a stream of bytes. How much is kept is bounded by the reader of the bytes.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Bytes of a line that has not ended yet.
    line: Vec<u8>,
    /// The last byte was a CR: an LF right behind it belongs to it.
    after_return: bool,
    current: Event,
    has_data: bool,
}

impl Events {
    /// Reads `bytes` and gives every event that is whole now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    let line = std::mem::take(&mut self.line);
                    events.extend(self.end_line(&String::from_utf8_lossy(&line)));
                }
                _ => self.line.push(*byte),
            }
        }
        events
    }

    fn end_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.current);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.current.name),
            "data" => {
                if self.has_data {
                    self.current.data.push('\n');
                }
                self.current.data.push_str(value);
                self.has_data = true;
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str =
        "event: a\ndata: {\"x\":\ndata: 1}\n\n: comment\r\ndata:ü\r\n\r\nevent: ping\n\ndata: cut";

    fn expected() -> Vec<Event> {
        let event = |name: &str, data: &str| Event {
            name: name.to_owned(),
            data: data.to_owned(),
        };
        // An event without data is none, and one that the stream breaks off is none either.
        vec![event("a", "{\"x\":\n1}"), event("", "ü")]
    }

    #[test]
    fn events_are_read() {
        assert_eq!(Events::default().push(STREAM.as_bytes()), expected());
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut events = Events::default();
            let mut found = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                found.extend(events.push(&STREAM.as_bytes()[start..cut]));
                start = cut;
            }
            prop_assert_eq!(found, expected());
        }
    }
}
