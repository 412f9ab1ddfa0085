//! Decoding of server-sent events (WHATWG HTML, "Server-sent events").

/// One event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Its `event` field; `message` where it has none.
    pub(crate) kind: String,
    pub(crate) data: String,
}

/// Turns pieces of a body into events.
#[derive(Debug)]
pub(crate) struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    after_cr: bool,
    kind: String,
    data: Option<String>,
    /// The id to resume from.
    pub(crate) last_id: Option<String>,
    /// The wait before a new connection that the server asked for, in milliseconds.
    pub(crate) retry_ms: Option<u64>,
}

/// An event above the limit.
#[derive(Debug, thiserror::Error)]
#[error("an event is longer than {0} bytes (max_message_bytes)")]
pub(crate) struct EventTooLong(usize);

impl SseDecoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_cr: false,
            kind: String::new(),
            data: None,
            last_id: None,
            retry_ms: None,
        }
    }

    /// Takes in a piece of the body and returns the events that it completes.
    pub(crate) fn feed(&mut self, mut piece: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        if self.after_cr && piece.first() == Some(&b'\n') {
            piece = &piece[1..];
        }
        if !piece.is_empty() {
            self.after_cr = false;
        }
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.extend(&piece[..end])?;
            let is_cr = piece[end] == b'\r';
            piece = &piece[end + 1..];
            if is_cr && piece.first() == Some(&b'\n') {
                piece = &piece[1..];
            } else if is_cr && piece.is_empty() {
                self.after_cr = true;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.take_line(&String::from_utf8_lossy(&line))? {
                events.push(event);
            }
        }
        self.extend(piece)?;
        Ok(events)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + part.len() > self.limit {
            return Err(EventTooLong(self.limit));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_line(&mut self, line: &str) -> Result<Option<SseEvent>, EventTooLong> {
        if line.is_empty() {
            let mut kind = std::mem::take(&mut self.kind);
            if kind.is_empty() {
                "message".clone_into(&mut kind);
            }
            let data = self.data.take().filter(|data| !data.is_empty());
            return Ok(data.map(|data| SseEvent { kind, data }));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field.trim_start_matches('\u{feff}') {
            "data" => match &mut self.data {
                None => self.data = Some(value.to_owned()),
                Some(data) if data.len() + value.len() >= self.limit => {
                    return Err(EventTooLong(self.limit));
                }
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            "event" => value.clone_into(&mut self.kind),
            "id" if !value.contains('\0') => self.last_id = Some(value.to_owned()),
            "retry" => self.retry_ms = value.parse().ok().or(self.retry_ms),
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_body_is_cut() {
        let body = ": hello\r\nid: 4\r\nretry: 10\r\ndata:\r\n\r\nevent: message\ndata: {\"a\":\ndata: 1}\n\nevent: end\rdata: ü\r\rdata: lost";
        for size in 1..body.len() {
            let mut decoder = SseDecoder::new(1000);
            let mut events = Vec::new();
            for piece in body.as_bytes().chunks(size) {
                events.extend(decoder.feed(piece).unwrap());
            }
            let data: Vec<_> = events
                .iter()
                .map(|event| (event.kind.as_str(), event.data.as_str()))
                .collect();
            let expected = [("message", "{\"a\":\n1}"), ("end", "ü")];
            assert_eq!(data, expected, "pieces of {size}");
            assert_eq!(decoder.last_id.as_deref(), Some("4"));
            assert_eq!(decoder.retry_ms, Some(10));
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut decoder = SseDecoder::new(10);
        assert!(decoder.feed(b"data: 0123456789").is_err());
    }
}
