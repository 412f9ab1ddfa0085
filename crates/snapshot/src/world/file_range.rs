//! A part of a file, read without a position that others could move.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// The bytes `start..end` of a file. Clones read independently of each other.
#[derive(Debug, Clone)]
pub(super) struct FileRange {
    file: Arc<File>,
    start: u64,
    end: u64,
    position: u64,
}

impl FileRange {
    pub(super) const fn new(file: Arc<File>, start: u64, length: u64) -> Self {
        Self {
            file,
            start,
            end: start.saturating_add(length),
            position: start,
        }
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.position);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.file.read_at(&mut buffer[..wanted], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for FileRange {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => self.start.checked_add(offset),
            SeekFrom::End(offset) => self.end.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        match position.filter(|position| *position >= self.start) {
            Some(position) => {
                self.position = position;
                Ok(position - self.start)
            }
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a position before the beginning",
            )),
        }
    }
}
