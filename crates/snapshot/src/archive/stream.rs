//! The compressed stream under an archive: counted, bounded, and its errors told apart.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::MultiGzDecoder;

use super::unpack::UnpackError;
use crate::limits::{LimitExceeded, Limits, Meter};
use crate::world::open::{ZSTD_MAGIC, zstd_decoder};

/// What the packed side knows, on whatever thread it is read.
#[derive(Default)]
pub(super) struct Arrived {
    packed: AtomicU64,
    /// A failure of the input, kept because the layers between change it.
    error: Mutex<Option<io::Error>>,
}

impl Arrived {
    /// Bytes of the archive read so far.
    pub(super) fn packed(&self) -> u64 {
        self.packed.load(Ordering::Relaxed)
    }

    /// The failure of the input, if it failed.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// What the reading side knows, shared with those who judge it.
#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) arrived: Arc<Arrived>,
    /// Bytes of the archive that hold what came out of the decompressor so far.
    pub(super) packed: Rc<Cell<u64>>,
    /// Bytes that came out of the decompressor.
    unpacked: Rc<Cell<u64>>,
    /// Bytes that may still come before the content of the next member.
    pub(super) header_room: Rc<Cell<u64>>,
    /// A failure of the input that the reading side has come to.
    pub(super) input_error: Rc<Cell<Option<io::Error>>>,
    exceeded: Rc<Cell<Option<LimitExceeded>>>,
}

impl Counters {
    pub(super) fn allow_headers(&self, limits: &Limits) {
        self.header_room.set(limits.header_bytes);
    }
}

/// The packed side.
pub(super) struct Source<R> {
    pub(super) input: R,
    pub(super) arrived: Arc<Arrived>,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer) {
            Ok(count) => {
                let packed = &self.arrived.packed;
                packed.fetch_add(count as u64, Ordering::Relaxed);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let told = io::Error::new(error.kind(), error.to_string());
                *self
                    .arrived
                    .error
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(error);
                Err(told)
            }
        }
    }
}

/// The unpacked side: bounds the ratio, and the headers between two members.
pub(super) struct Unpacked<'l, R> {
    pub(super) input: R,
    pub(super) counters: Counters,
    pub(super) limits: &'l Limits,
}

impl<R: Read> Read for Unpacked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        let counters = &self.counters;
        let unpacked = counters.unpacked.get() + count as u64;
        counters.unpacked.set(unpacked);
        let crossed = match counters.header_room.get().checked_sub(count as u64) {
            Some(room) => {
                counters.header_room.set(room);
                Meter::new(self.limits).ratio(unpacked, counters.packed.get())
            }
            None => Err(LimitExceeded {
                limit: "header_bytes",
                got: self.limits.header_bytes + 1,
                allowed: self.limits.header_bytes,
            }),
        };
        crossed.map_err(|exceeded| {
            let told = io::Error::other(exceeded.to_string());
            counters.exceeded.set(Some(exceeded));
            told
        })?;
        Ok(count)
    }
}

/// The decompressor for a stream, by how it begins.
pub(super) fn decoder<'i, R: Read + Send + 'i>(
    mut input: BufReader<Source<R>>,
    counters: &Counters,
    limits: &Limits,
) -> Result<Box<dyn Read + Send + 'i>, UnpackError> {
    use std::io::BufRead as _;
    let head = match input.fill_buf() {
        Ok(head) => head,
        Err(error) => {
            counters.input_error.set(counters.arrived.take_error());
            return Err(stream_error(&error, counters, ""));
        }
    };
    match head {
        [] => Err(UnpackError::Empty),
        [0x1f, 0x8b, ..] | [0x1f] => Ok(Box::new(MultiGzDecoder::new(input))),
        // At least one byte is there, and more unless the stream is that short.
        head if head.starts_with(&ZSTD_MAGIC) => match zstd_decoder(input, limits) {
            Ok(decoder) => Ok(Box::new(decoder)),
            Err(error) => Err(UnpackError::Damaged(error.to_string())),
        },
        _ => Err(UnpackError::NotGzip),
    }
}

/// What an error of the stream really is.
pub(super) fn stream_error(error: &io::Error, counters: &Counters, member: &str) -> UnpackError {
    if let Some(source) = counters.input_error.take() {
        return UnpackError::Input(source);
    }
    if let Some(limit) = counters.exceeded.take() {
        return UnpackError::Limit {
            member: format!("after {member}"),
            limit,
        };
    }
    if error.kind() == io::ErrorKind::UnexpectedEof || ends_early(error) {
        return UnpackError::Truncated;
    }
    UnpackError::Damaged(error.to_string())
}

/// The tar reader tells an early end by its text only.
fn ends_early(error: &io::Error) -> bool {
    let text = error.to_string();
    text.contains("failed to read entire block") || text.contains("unexpected EOF")
}
