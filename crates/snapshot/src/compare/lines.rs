//! Lines of a text as a stream: their hashes first, their words when they are shown.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufRead, BufReader, Read};

/// Bytes read at once.
const BUFFER: usize = 64 << 10;

/// Reads a text line by line and keeps of each line a hash only. What it has read so far tells
/// text from binary content.
pub(super) struct Scanner<'h, R> {
    input: BufReader<R>,
    keys: &'h RandomState,
    nature: Nature,
}

impl<'h, R: Read> Scanner<'h, R> {
    pub(super) fn new(input: R, keys: &'h RandomState) -> Self {
        Self {
            input: BufReader::with_capacity(BUFFER, input),
            keys,
            nature: Nature::default(),
        }
    }

    /// The hash of the next line with its line end; `None` after the last.
    pub(super) fn next_line(&mut self) -> io::Result<Option<u64>> {
        let mut hasher = self.keys.build_hasher();
        let mut any = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                return Ok(any.then(|| hasher.finish()));
            }
            any = true;
            let end = line_end(buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            self.nature.look(piece);
            hasher.write(piece);
            let used = piece.len();
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(hasher.finish()));
            }
        }
    }

    /// Whether what was read so far is text.
    pub(super) fn is_text(&self) -> bool {
        self.nature.is_text()
    }

    /// Whether what was read so far is valid UTF-8.
    pub(super) fn is_utf8(&self) -> bool {
        !self.nature.invalid && self.nature.open.is_empty()
    }
}

/// The length of the first line with its line end, where it ends.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map(|at| at + 1)
}

/// What bytes are made of.
#[derive(Default)]
struct Nature {
    nul: bool,
    /// Control characters that no text has.
    control: bool,
    /// Not UTF-8.
    invalid: bool,
    /// The beginning of a character whose end has not come yet.
    open: Vec<u8>,
}

impl Nature {
    fn look(&mut self, bytes: &[u8]) {
        let rare = |byte: u8| byte < 0x20 && !matches!(byte, 8..=10 | 12 | 13 | 27);
        if bytes.iter().any(|byte| rare(*byte)) {
            self.control = true;
            self.nul |= bytes.contains(&0);
        }
        if self.invalid || (self.open.is_empty() && bytes.is_ascii()) {
            return;
        }
        self.open.extend_from_slice(bytes);
        match std::str::from_utf8(&self.open) {
            Ok(_) => self.open.clear(),
            Err(error) if error.error_len().is_none() => {
                self.open.drain(..error.valid_up_to());
            }
            Err(_) => {
                self.invalid = true;
                self.open = Vec::new();
            }
        }
    }

    /// UTF-8 without NUL, or text of an older encoding, which has no control characters either.
    fn is_text(&self) -> bool {
        !self.nul && (!self.control || (!self.invalid && self.open.is_empty()))
    }
}

/// Reads the lines that are to be shown, by ascending numbers.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    next: usize,
}

/// A line to be shown.
pub(super) struct Line {
    /// Its text without the line end, or the beginning of it.
    pub(super) text: String,
    /// Bytes that are left out at its end.
    pub(super) left_out: u64,
    /// Whether a line end follows.
    pub(super) ends: bool,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(BUFFER, input),
            next: 0,
        }
    }

    /// The line of this number, counted from 0, up to `max_bytes` of it; `None` where a live file
    /// has become shorter meanwhile.
    pub(super) fn take(&mut self, number: usize, max_bytes: usize) -> io::Result<Option<Line>> {
        while self.next < number {
            if self.line(0)?.is_none() {
                return Ok(None);
            }
        }
        self.line(max_bytes)
    }

    fn line(&mut self, max_bytes: usize) -> io::Result<Option<Line>> {
        let mut kept = Vec::new();
        let mut length = 0_u64;
        let mut ends = false;
        while !ends {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            let end = line_end(buffer);
            let used = end.unwrap_or(buffer.len());
            ends = end.is_some();
            let content = &buffer[..used - usize::from(ends)];
            let room = max_bytes - kept.len();
            kept.extend_from_slice(&content[..content.len().min(room)]);
            length += content.len() as u64;
            self.input.consume(used);
        }
        self.next += 1;
        if length == 0 && !ends {
            return Ok(None);
        }
        let mut left_out = length - kept.len() as u64;
        if left_out > 0 && max_bytes > 0 {
            // A character that was cut in two is left out as a whole.
            while kept.last().is_some_and(|byte| *byte & 0xc0 == 0x80) {
                kept.pop();
                left_out += 1;
            }
            if kept.last().is_some_and(|byte| *byte >= 0xc0) {
                kept.pop();
                left_out += 1;
            }
        }
        Ok(Some(Line {
            text: words(kept),
            left_out,
            ends,
        }))
    }
}

/// Bytes as text: UTF-8 where they are, else Windows-1252.
fn words(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(error.as_bytes());
        text.into_owned()
    })
}
