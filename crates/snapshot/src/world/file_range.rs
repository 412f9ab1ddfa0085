//! A part of a file, read without a position that others could move.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Bytes that are read ahead where little is asked for: headers of archives are asked for in pieces of
/// a few bytes, and those of small files stand close to each other.
const AHEAD: usize = 16 << 10;

/// The bytes `start..end` of a file. Clones read independently of each other.
#[derive(Debug, Clone)]
pub(super) struct FileRange {
    file: Arc<File>,
    start: u64,
    end: u64,
    position: u64,
    /// What was read ahead, and where in the file it stands.
    ahead: Vec<u8>,
    ahead_start: u64,
}

impl FileRange {
    pub(super) const fn new(file: Arc<File>, start: u64, length: u64) -> Self {
        Self {
            file,
            start,
            end: start.saturating_add(length),
            position: start,
            ahead: Vec::new(),
            ahead_start: 0,
        }
    }

    /// The bytes at the position that were read ahead.
    fn at_hand(&self) -> &[u8] {
        let offset = self.position.checked_sub(self.ahead_start);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        offset
            .and_then(|offset| self.ahead.get(offset..))
            .unwrap_or_default()
    }

    fn read_ahead(&mut self, left: u64) -> io::Result<()> {
        let wanted = AHEAD.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.ahead.resize(wanted, 0);
        let read = self.file.read_at(&mut self.ahead, self.position);
        // After an error nothing is at hand.
        self.ahead.truncate(*read.as_ref().unwrap_or(&0));
        self.ahead_start = self.position;
        read.map(drop)
    }
}

impl Read for FileRange {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_sub(self.position);
        let wanted = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..wanted];
        if wanted == 0 {
            return Ok(0);
        }
        if self.at_hand().is_empty() {
            if wanted >= AHEAD {
                let count = self.file.read_at(buffer, self.position)?;
                self.position += count as u64;
                return Ok(count);
            }
            self.read_ahead(left)?;
        }
        let at_hand = self.at_hand();
        let count = wanted.min(at_hand.len());
        buffer[..count].copy_from_slice(&at_hand[..count]);
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever is asked for, in whatever order, it is what stands in the file.
        #[test]
        fn reads_are_those_of_the_file(
            length in 0_usize..60_000,
            start in 0_usize..2_000,
            asks in proptest::collection::vec((0_usize..62_000, 1_usize..40_000), 1..30),
        ) {
            let content: Vec<u8> = (0..length + 3_000).map(|at| (at * 31 % 251) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&content).unwrap();
            let right = &content[start..start + length];
            let mut range = FileRange::new(Arc::new(file), start as u64, length as u64);
            for (at, count) in asks {
                range.seek(SeekFrom::Start(at as u64)).unwrap();
                let mut got = Vec::new();
                range.by_ref().take(count as u64).read_to_end(&mut got).unwrap();
                let from = at.min(length);
                prop_assert_eq!(&got[..], &right[from..(from + count).min(length)]);
            }
        }
    }
}
