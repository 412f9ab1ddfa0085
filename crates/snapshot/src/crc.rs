//! CRC-32 of a stream, as zip stores it.

use std::io::{self, Read};

/// A buffer for reading a file of about this size: worlds have many small files, and clearing 64 KiB
/// for each of them takes longer than reading them.
pub(crate) fn buffer(size: u64) -> Vec<u8> {
    let length = usize::try_from(size.saturating_add(1)).unwrap_or(usize::MAX);
    vec![0; length.clamp(512, 64 * 1024)]
}

/// Reads `input`, which has about `size` bytes, to its end: its length and its CRC-32.
pub(crate) fn checksum(input: &mut impl Read, size: u64) -> io::Result<(u64, u32)> {
    let mut crc = flate2::Crc::new();
    let mut buffer = buffer(size);
    let mut length = 0;
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok((length, crc.sum())),
            Ok(count) => {
                crc.update(&buffer[..count]);
                length += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Passes a stream on and fails at its end when length or CRC-32 are not as announced.
pub(crate) struct Checked<R> {
    input: R,
    crc: flate2::Crc,
    remaining: u64,
    expected: u32,
}

impl<R: Read> Checked<R> {
    pub(crate) fn new(input: R, length: u64, expected: u32) -> Self {
        Self {
            input,
            crc: flate2::Crc::new(),
            remaining: length,
            expected,
        }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason);
        let count = self.input.read(buffer)?;
        self.crc.update(&buffer[..count]);
        self.remaining = self
            .remaining
            .checked_sub(count as u64)
            .ok_or_else(|| invalid("content is longer than announced"))?;
        if count == 0 && self.remaining > 0 {
            return Err(invalid("content is shorter than announced"));
        }
        if count == 0 && self.crc.sum() != self.expected {
            return Err(invalid("content does not match its checksum"));
        }
        Ok(count)
    }
}
