//! Finds out what form a world has, by content.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::layout::{self, RawEntry};
use super::{World, WorldError, directory, tar, zip};
use crate::limits::{Limits, Meter};
use crate::tree::Tree;

impl World {
    /// Opens a world: a zip, a tar, a `tar.gz`, a `tar.zst` (found out by content, whatever the name), or a
    /// directory; with the default [`Limits`].
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorldError> {
        Self::open_with(path, &Limits::default())
    }

    /// Like [`World::open`], with other limits.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, WorldError> {
        let path = path.as_ref();
        let read_error = |source| WorldError::Read {
            path: path.to_owned(),
            source,
        };
        if std::fs::metadata(path).map_err(read_error)?.is_dir() {
            let tree = Tree::open(path).map_err(read_error)?;
            let trees: Vec<Tree> = tree.into_iter().collect();
            let mut entries = Vec::new();
            for tree in &trees {
                entries.extend(directory::list(0, tree).map_err(read_error)?);
            }
            return Ok(Self::new(path, entries, None, trees));
        }
        let mut file = File::open(path).map_err(read_error)?;
        let mut head = [0; 512];
        let length = read_head(&mut file, &mut head).map_err(read_error)?;
        let head = &head[..length];
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            let file = Arc::new(file);
            let entries = zip::list(path, &file, limits)?;
            return Ok(Self::new(path, entries, Some(file), Vec::new()));
        }
        if head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&ZSTD_MAGIC) {
            let packed = file.metadata().map_err(read_error)?.len();
            let input = io::BufReader::with_capacity(128 * 1024, file);
            let file = if head.starts_with(&ZSTD_MAGIC) {
                let input = zstd_decoder(input, limits).map_err(read_error)?;
                uncompress(path, input, packed, limits)?
            } else {
                uncompress(path, MultiGzDecoder::new(input), packed, limits)?
            };
            let entries = tar::list(path, &file, limits)?;
            return Ok(Self::new(path, entries, Some(file), Vec::new()));
        }
        if head.get(257..262) == Some(b"ustar") || (length == 512 && head.iter().all(|b| *b == 0)) {
            let file = Arc::new(file);
            let entries = tar::list(path, &file, limits)?;
            return Ok(Self::new(path, entries, Some(file), Vec::new()));
        }
        Err(WorldError::Format {
            path: path.to_owned(),
        })
    }

    /// Opens two worlds at once, each on a thread of its own: a compressed tar has to be uncompressed
    /// and summed up first.
    pub fn open_both(
        first: impl AsRef<Path>,
        second: impl AsRef<Path>,
    ) -> (Result<Self, WorldError>, Result<Self, WorldError>) {
        let (first, second) = (first.as_ref(), second.as_ref());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| Self::open(second));
            let first = Self::open(first);
            let second = other.join().unwrap_or_else(|panic| resume_unwind(panic));
            (first, second)
        })
    }

    /// Opens directories as the subsystems of a world, wherever they are. One that does not exist
    /// is empty.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn open_roots(roots: &[(&str, &Path)]) -> Result<Self, WorldError> {
        let mut trees = Vec::new();
        let mut entries = Vec::new();
        for (subsystem, path) in roots {
            let read_error = |source| WorldError::Read {
                path: (*path).to_owned(),
                source,
            };
            let Some(tree) = Tree::open(path).map_err(read_error)? else {
                continue;
            };
            for mut entry in directory::list(trees.len(), &tree).map_err(read_error)? {
                entry.name = [subsystem.as_bytes(), &entry.name].join(&b'/');
                entries.push(entry);
            }
            // So that an empty root is still known as a subsystem.
            entries.push(RawEntry::directory(subsystem.as_bytes().to_vec()));
            trees.push(tree);
        }
        Ok(Self::new(Path::new("world"), entries, None, trees))
    }

    fn new(
        source: &Path,
        entries: Vec<RawEntry>,
        archive: Option<Arc<File>>,
        trees: Vec<Tree>,
    ) -> Self {
        let (entries, ignored) = layout::normalise(entries);
        Self {
            source: source.to_owned(),
            entries,
            ignored,
            archive,
            trees,
        }
    }
}

fn read_head(file: &mut File, head: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => break,
            count => length += count,
        }
    }
    file.rewind()?;
    Ok(length)
}

/// How a frame of zstd begins (RFC 8878).
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A reader of zstd whose memory is bounded.
pub(crate) fn zstd_decoder<R: io::BufRead>(
    input: R,
    limits: &Limits,
) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(input)?;
    decoder.window_log_max(limits.zstd_window_log)?;
    Ok(decoder)
}

/// Uncompresses into a temporary file without a name, bounded by the limits.
fn uncompress(
    path: &Path,
    mut input: impl io::Read,
    packed: u64,
    limits: &Limits,
) -> Result<Arc<File>, WorldError> {
    let read_error = |source| WorldError::Read {
        path: path.to_owned(),
        source,
    };
    let mut spool = tempfile::tempfile().map_err(read_error)?;
    let meter = Meter::new(limits);
    // Content plus a header and padding for each member.
    let allowed = limits
        .total_bytes
        .saturating_add(limits.entries.saturating_mul(2048));
    let mut total = 0_u64;
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(WorldError::Archive {
                    path: path.to_owned(),
                    reason: match error.kind() {
                        io::ErrorKind::UnexpectedEof => "the compressed stream ends early".into(),
                        _ => error.to_string(),
                    },
                });
            }
        };
        total += count as u64;
        crate::limits::within("total_bytes", total, allowed)
            .and_then(|()| meter.ratio(total, packed))
            .map_err(|limit| WorldError::Limit {
                path: path.to_owned(),
                member: "the archive as a whole".to_owned(),
                limit,
            })?;
        io::Write::write_all(&mut spool, &buffer[..count]).map_err(read_error)?;
    }
    spool.rewind().map_err(read_error)?;
    Ok(Arc::new(spool))
}
