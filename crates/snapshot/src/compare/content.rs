//! Whether two files have the same content.

use std::io::{self, Read};

use crate::crc::buffer;
use crate::world::{Entry, World, WorldError};

/// By size and checksum where both are known, else byte by byte.
pub(super) fn same_content(
    before: &World,
    old: &Entry,
    after: &World,
    new: &Entry,
) -> Result<bool, WorldError> {
    if old.size() != new.size() {
        return Ok(false);
    }
    if let (Some(old), Some(new)) = (old.checksum(), new.checksum()) {
        return Ok(old == new);
    }
    let read_error = |source| WorldError::Content {
        path: new.path().to_owned(),
        source,
    };
    same_bytes(
        &mut before.reader(old)?,
        &mut after.reader(new)?,
        old.size(),
    )
    .map_err(read_error)
}

fn same_bytes(old: &mut impl Read, new: &mut impl Read, size: u64) -> io::Result<bool> {
    let (mut ours, mut theirs) = (buffer(size), buffer(size));
    loop {
        let count = fill(old, &mut ours)?;
        if count != fill(new, &mut theirs)? || ours[..count] != theirs[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the stream ends.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
