//! Streams that end with an error where they would become too large.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes between the contents of two members of a tar archive: headers, long names, padding.
const HEADER_BYTES: u64 = 1 << 20;

/// What may still be read, shared by all streams of one archive and those inside of it.
#[derive(Clone)]
pub(super) struct Room {
    left: Rc<Cell<u64>>,
    /// Bytes that may come before the content of the next member.
    header: Rc<Cell<Option<u64>>>,
    crossed: Rc<Cell<bool>>,
}

impl Room {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            left: Rc::new(Cell::new(bytes)),
            header: Rc::new(Cell::new(None)),
            crossed: Rc::new(Cell::new(false)),
        }
    }

    /// The same room for an archive inside, which has headers of its own.
    pub(super) fn inside(&self) -> Self {
        Self {
            header: Rc::new(Cell::new(None)),
            ..self.clone()
        }
    }

    pub(super) fn expect_header(&self) {
        self.header.set(Some(HEADER_BYTES));
    }

    pub(super) fn expect_content(&self) {
        self.header.set(None);
    }

    /// Whether a stream was ended because all of them together were too large.
    pub(super) fn is_crossed(&self) -> bool {
        self.crossed.get()
    }

    fn take(&self, count: u64) -> io::Result<()> {
        let Some(left) = self.left.get().checked_sub(count) else {
            self.crossed.set(true);
            return Err(io::Error::other("it unpacks to more than is allowed"));
        };
        self.left.set(left);
        if let Some(header) = self.header.get() {
            let left = header.checked_sub(count).ok_or_else(|| {
                io::Error::other(format!("a header has more than {HEADER_BYTES} bytes"))
            })?;
            self.header.set(Some(left));
        }
        Ok(())
    }
}

/// A stream whose bytes count against a [`Room`].
pub(super) struct Guarded<R> {
    input: R,
    room: Room,
}

impl<R: Read> Guarded<R> {
    pub(super) const fn new(input: R, room: Room) -> Self {
        Self { input, room }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.room.take(count as u64)?;
        Ok(count)
    }
}
