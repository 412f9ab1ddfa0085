//! Decompresses on a thread of its own, a few blocks ahead of who reads the tar and writes its files.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Scope};

use super::stream::{Arrived, Counters};

/// How many blocks may wait.
const BLOCKS: usize = 4;
/// Bytes of a block.
const BLOCK: usize = 64 * 1024;

/// A piece of what came out of the decompressor.
struct Block {
    bytes: Vec<u8>,
    /// Bytes of the archive that were read until then.
    packed: u64,
}

/// Why there is no further block.
struct Broken {
    error: io::Error,
    /// The failure of the input that it comes from.
    input: Option<io::Error>,
}

/// The decompressed stream. Dropping it ends the thread at its next block.
pub(super) struct Ahead {
    blocks: Receiver<Result<Block, Broken>>,
    bytes: Vec<u8>,
    read: usize,
    counters: Counters,
}

impl Ahead {
    /// Starts the thread, which ends with `scope` at the latest.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        decoder: impl Read + Send + 'scope,
        counters: &Counters,
    ) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(BLOCKS);
        let arrived = Arc::clone(&counters.arrived);
        thread::Builder::new()
            .name("decompress".to_owned())
            .spawn_scoped(scope, move || decompress(decoder, &arrived, &sender))?;
        Ok(Self {
            blocks,
            bytes: Vec::new(),
            read: 0,
            counters: counters.clone(),
        })
    }
}

fn decompress(
    mut decoder: impl Read,
    arrived: &Arrived,
    sender: &SyncSender<Result<Block, Broken>>,
) {
    loop {
        let mut bytes = vec![0; BLOCK];
        let block = match decoder.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                bytes.truncate(count);
                let packed = arrived.packed();
                Ok(Block { bytes, packed })
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(Broken {
                error,
                input: arrived.take_error(),
            }),
        };
        let ended = block.is_err();
        if sender.send(block).is_err() || ended {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.bytes.len() {
            match self.blocks.recv() {
                Ok(Ok(block)) => {
                    self.counters.packed.set(block.packed);
                    (self.bytes, self.read) = (block.bytes, 0);
                }
                Ok(Err(broken)) => {
                    self.counters.input_error.set(broken.input);
                    return Err(broken.error);
                }
                // The thread has come to the end of the stream.
                Err(_) => return Ok(0),
            }
        }
        let count = buffer.len().min(self.bytes.len() - self.read);
        buffer[..count].copy_from_slice(&self.bytes[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}
