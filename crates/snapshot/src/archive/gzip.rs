//! Gzip (RFC 1952) on several cores, with the same bytes whatever their number.
//!
//! The input is cut into blocks of a fixed size. Each is compressed for itself and ends on a byte
//! boundary (an empty stored block, RFC 1951 §3.2.4), so the pieces one after the other are one
//! deflate stream. What a block could have taken from the one before it costs about one percent.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use flate2::{Compress, Compression, Crc, FlushCompress};

/// Bytes of a block before it is compressed.
const BLOCK: usize = 256 * 1024;

/// Bytes of a block when it is compressed, at most: nine bits for each byte, and a few ends of blocks.
const ROOM: usize = BLOCK + BLOCK / 8 + 1024;

/// More threads than these gain nothing: one thread reads what they compress.
const MAX_THREADS: usize = 8;

/// Magic, deflate, no flags, no time, no extra flags, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// A last block without content, in fixed codes.
const LAST_BLOCK: [u8; 2] = [3, 0];

/// One gzip member being written.
pub(crate) struct GzipWriter<W: Write> {
    out: W,
    level: Compression,
    block: Vec<u8>,
    workers: Workers,
    /// Blocks being compressed, in order.
    pending: VecDeque<Receiver<io::Result<Block>>>,
    /// Blocks whose buffers can be used again.
    spare: Vec<Block>,
    checksum: Crc,
    has_begun: bool,
}

/// A block on its way through a worker.
#[derive(Default)]
struct Block {
    plain: Vec<u8>,
    packed: Vec<u8>,
    checksum: Crc,
}

struct Job {
    block: Block,
    done: SyncSender<io::Result<Block>>,
}

impl<W: Write> GzipWriter<W> {
    /// `threads` compress; `None` takes as many as there are cores. One compresses on the calling
    /// thread.
    pub(crate) fn new(out: W, level: Compression, threads: Option<NonZeroUsize>) -> Self {
        let threads = threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
            .min(MAX_THREADS);
        Self {
            out,
            level,
            block: Vec::with_capacity(BLOCK),
            workers: Workers::new(threads, level),
            pending: VecDeque::new(),
            spare: Vec::new(),
            checksum: Crc::new(),
            has_begun: false,
        }
    }

    /// Writes what is left and the end of the member.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.block.is_empty() {
            self.hand_over()?;
        }
        while !self.pending.is_empty() {
            self.take_first()?;
        }
        self.begin()?;
        self.out.write_all(&LAST_BLOCK)?;
        self.out.write_all(&self.checksum.sum().to_le_bytes())?;
        self.out.write_all(&self.checksum.amount().to_le_bytes())?;
        Ok(self.out)
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.has_begun {
            self.has_begun = true;
            self.out.write_all(&HEADER)?;
        }
        Ok(())
    }

    /// Gives the filled block to a worker; waits for the oldest one where all are busy.
    fn hand_over(&mut self) -> io::Result<()> {
        let mut block = self.spare.pop().unwrap_or_default();
        block.checksum.reset();
        std::mem::swap(&mut block.plain, &mut self.block);
        self.block.clear();
        self.block.reserve_exact(BLOCK);
        let (done, result) = sync_channel(1);
        self.workers.compress(Job { block, done }, self.level)?;
        self.pending.push_back(result);
        // Enough for every worker to have the next block while this thread waits for the first.
        while self.pending.len() > self.workers.threads.len() * 2 {
            self.take_first()?;
        }
        Ok(())
    }

    /// Writes the oldest block that was handed over.
    fn take_first(&mut self) -> io::Result<()> {
        let Some(first) = self.pending.pop_front() else {
            return Ok(());
        };
        let block = first
            .recv()
            .map_err(|_| io::Error::other("a compressing thread ended early"))??;
        self.begin()?;
        self.out.write_all(&block.packed)?;
        self.checksum.combine(&block.checksum);
        self.spare.push(block);
        Ok(())
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..count]);
        if self.block.len() == BLOCK {
            self.hand_over()?;
        }
        Ok(count)
    }

    /// Blocks have a fixed size, so nothing is written before one is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Threads that compress; none where the calling thread does it.
struct Workers {
    jobs: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
    /// Of the calling thread.
    own: Option<Compress>,
}

impl Workers {
    fn new(count: usize, level: Compression) -> Self {
        let mut threads = Vec::new();
        let (jobs, queue) = sync_channel::<Job>(count);
        if count > 1 {
            let queue = Arc::new(Mutex::new(queue));
            for _ in 0..count {
                let queue = Arc::clone(&queue);
                let work = move || work(&queue, level);
                // A machine that has no threads left compresses with those it has.
                if let Ok(thread) = std::thread::Builder::new()
                    .name("gzip".to_owned())
                    .spawn(work)
                {
                    threads.push(thread);
                }
            }
        }
        Self {
            jobs: (!threads.is_empty()).then_some(jobs),
            threads,
            own: None,
        }
    }

    fn compress(&mut self, job: Job, level: Compression) -> io::Result<()> {
        match &self.jobs {
            Some(jobs) => jobs
                .send(job)
                .map_err(|_| io::Error::other("the compressing threads ended early")),
            None => {
                let compress = self.own.get_or_insert_with(|| Compress::new(level, false));
                run(compress, job);
                Ok(())
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Without jobs they end, each after the block that it has.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a compressing thread panicked");
            }
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>, level: Compression) {
    let mut compress = Compress::new(level, false);
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(job) => run(&mut compress, job),
            Err(_) => return,
        }
    }
}

fn run(compress: &mut Compress, job: Job) {
    let Job { mut block, done } = job;
    block.checksum.update(&block.plain);
    let packed = deflate(compress, &block.plain, &mut block.packed);
    // Nobody waits where writing failed.
    let _ = done.send(packed.map(|()| block));
}

/// Compresses a block for itself, up to a byte boundary.
fn deflate(compress: &mut Compress, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<()> {
    compress.reset();
    // Always the same room: stored blocks are cut by how much there is.
    packed.resize(ROOM, 0);
    compress
        .compress(plain, packed, FlushCompress::Sync)
        .map_err(io::Error::other)?;
    let length = usize::try_from(compress.total_out()).unwrap_or(ROOM);
    if compress.total_in() != plain.len() as u64 || length == ROOM {
        return Err(io::Error::other(
            "a block did not become as small as deflate promises",
        ));
    }
    packed.truncate(length);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::bufread::GzDecoder;

    use super::*;

    fn zipped(plain: &[u8], threads: usize, level: u32) -> Vec<u8> {
        let threads = NonZeroUsize::new(threads);
        let mut writer = GzipWriter::new(Vec::new(), Compression::new(level), threads);
        for piece in plain.chunks(70_001) {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap()
    }

    fn mixed(length: usize) -> Vec<u8> {
        let mut state = 7_u32;
        (0..length)
            .map(|at| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if at / 100_000 % 2 == 0 {
                    (state >> 24) as u8
                } else {
                    b"a world of words "[at % 17]
                }
            })
            .collect()
    }

    #[test]
    fn one_member_that_says_what_went_in_for_any_length_and_level() {
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 2_000_003] {
            for level in [0, 1, 6, 9] {
                let plain = mixed(length);
                let packed = zipped(&plain, 3, level);
                let mut rest = packed.as_slice();
                let mut out = Vec::new();
                // It checks the checksum and the length at the end.
                GzDecoder::new(&mut rest).read_to_end(&mut out).unwrap();
                assert!(out == plain, "{length} {level}");
                assert!(rest.is_empty(), "one member, {length} {level}");
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let plain = mixed(5_000_000);
        let one = zipped(&plain, 1, 1);
        for threads in [2, 3, 8, 100] {
            assert!(zipped(&plain, threads, 1) == one, "{threads}");
        }
    }

    #[test]
    fn a_writer_that_fails_ends_it() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if bytes.len() > HEADER.len() {
                    return Err(io::Error::from(io::ErrorKind::StorageFull));
                }
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for threads in [1, 4] {
            let threads = NonZeroUsize::new(threads);
            let mut writer = GzipWriter::new(Full, Compression::fast(), threads);
            let failed = (0..100)
                .try_for_each(|_| writer.write_all(&mixed(BLOCK)))
                .unwrap_err();
            assert_eq!(failed.kind(), io::ErrorKind::StorageFull);
        }
    }
}
