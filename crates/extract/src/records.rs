//! Records of comma- or tab-separated files, as a stream (RFC 4180).

use std::io::{self, BufRead};

/// Reads one record after the other. A quote opens a quoted cell at its beginning only; in it,
/// separators and line breaks are text and a quote stands twice.
pub(crate) struct Records<R> {
    input: R,
    separator: u8,
    max_bytes: usize,
    record: Vec<Vec<u8>>,
    cell: Vec<u8>,
    bytes: usize,
    state: State,
    ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a cell.
    Start,
    Plain,
    Quoted,
    /// After a quote inside a quoted cell: its end, or the first half of a quote.
    Quote,
    /// After a carriage return that ended a record: a line feed belongs to it.
    Return,
}

/// Why there is no next record.
#[derive(Debug)]
pub(crate) enum RecordError {
    Read(io::Error),
    /// A record is longer than allowed: an open quote swallows the rest of a file.
    TooLong,
}

impl<R: BufRead> Records<R> {
    /// Records of at most `max_bytes` bytes each.
    pub(crate) const fn new(input: R, separator: u8, max_bytes: usize) -> Self {
        Self {
            input,
            separator,
            max_bytes,
            record: Vec::new(),
            cell: Vec::new(),
            bytes: 0,
            state: State::Start,
            ended: false,
        }
    }

    /// The next record: its cells as bytes.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>, RecordError> {
        while !self.ended {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(RecordError::Read(error)),
            };
            if buffer.is_empty() {
                self.ended = true;
                let nothing = self.record.is_empty()
                    && self.cell.is_empty()
                    && matches!(self.state, State::Start | State::Return);
                return Ok((!nothing).then(|| self.end_record()));
            }
            let mut used = 0;
            let mut complete = false;
            for byte in buffer {
                used += 1;
                let byte = *byte;
                if self.state == State::Return {
                    self.state = State::Start;
                    if byte == b'\n' {
                        continue;
                    }
                }
                match (self.state, byte) {
                    (State::Start, b'"') => self.state = State::Quoted,
                    (State::Quoted, b'"') => self.state = State::Quote,
                    (State::Quoted, other) => self.cell.push(other),
                    (State::Quote, b'"') => {
                        self.cell.push(b'"');
                        self.state = State::Quoted;
                    }
                    (_, b'\n' | b'\r') => {
                        self.state = if byte == b'\r' {
                            State::Return
                        } else {
                            State::Start
                        };
                        complete = true;
                        break;
                    }
                    (_, other) if other == self.separator => {
                        self.record.push(std::mem::take(&mut self.cell));
                        self.state = State::Start;
                    }
                    (_, other) => {
                        self.cell.push(other);
                        self.state = State::Plain;
                    }
                }
                self.bytes += 1;
                if self.bytes > self.max_bytes {
                    return Err(RecordError::TooLong);
                }
            }
            self.input.consume(used);
            if complete {
                return Ok(Some(self.end_record()));
            }
        }
        Ok(None)
    }

    fn end_record(&mut self) -> Vec<Vec<u8>> {
        self.bytes = 0;
        self.record.push(std::mem::take(&mut self.cell));
        std::mem::take(&mut self.record)
    }
}

/// The separator of a file: a tab in tsv files, else a comma, unless the first line has none and
/// has semicolons, as spreadsheets write where the comma is the decimal mark.
pub(crate) fn separator(extension: &str, beginning: &[u8]) -> u8 {
    if extension == "tsv" {
        return b'\t';
    }
    let line = beginning
        .split(|byte| matches!(byte, b'\n' | b'\r'))
        .next()
        .unwrap_or_default();
    if !line.contains(&b',') && line.contains(&b';') {
        b';'
    } else {
        b','
    }
}
