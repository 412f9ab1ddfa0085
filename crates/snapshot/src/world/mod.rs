//! A world in any of its forms, under one set of paths.

mod directory;
mod file_range;
mod layout;
pub(crate) mod open;
mod tar;
mod write;
mod zip;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use flate2::read::DeflateDecoder;

use self::file_range::FileRange;
use crate::crc::{self, Checked};
use crate::limits::{LimitExceeded, within};
use crate::tree::Tree;

pub use self::write::WriteReport;

/// What an [`Entry`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A file with content. Hard links, and symbolic links to a file of the world, are files.
    File,
    /// A directory that has a record of its own.
    Directory,
    /// A symbolic link to anything but a file of the world.
    Symlink,
}

/// Something in a world.
#[derive(Debug, Clone)]
pub struct Entry {
    path: String,
    raw_path: Vec<u8>,
    kind: EntryKind,
    size: u64,
    mode: Option<u32>,
    modified: Option<SystemTime>,
    link_target: Option<String>,
    checksum: Option<u32>,
    content: Content,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
enum Content {
    Nothing,
    /// In the archive file, as they are.
    Stored {
        offset: u64,
    },
    /// In the archive file, compressed.
    Deflated {
        offset: u64,
        packed: u64,
    },
    /// On disk, in the tree of this number.
    Disk {
        tree: usize,
        path: PathBuf,
    },
}

impl Entry {
    /// The path, which begins with the name of the subsystem: `filesystem/notes/a.txt`. Bytes that
    /// are not UTF-8 are replaced.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path as it is.
    #[must_use]
    pub fn raw_path(&self) -> &[u8] {
        &self.raw_path
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Whether it has content.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    /// Bytes of content; 0 for what is no file.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Permission bits (`0o7777`), where the form of the world has them.
    #[must_use]
    pub const fn mode(&self) -> Option<u32> {
        self.mode
    }

    /// When the content was changed last, where known.
    #[must_use]
    pub const fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// The text of a symbolic link, also of one that stands for a file.
    #[must_use]
    pub fn link_target(&self) -> Option<&str> {
        self.link_target.as_deref()
    }

    /// The CRC-32 of the content, where known without reading it.
    #[must_use]
    pub const fn checksum(&self) -> Option<u32> {
        self.checksum
    }
}

/// Opening or reading a world failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A file or directory cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Not one of the forms of a world.
    #[error("`{}` is no zip, tar, tar.gz or tar.zst archive and no directory", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
    },
    /// The archive is damaged or uses something unusual.
    #[error("the archive `{}` cannot be used: {reason}", path.display())]
    Archive {
        /// Which archive.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A limit was crossed.
    #[error("`{member}` of `{}`: {limit}", path.display())]
    Limit {
        /// Which archive.
        path: PathBuf,
        /// At which member.
        member: String,
        /// Which limit, and by what value.
        limit: LimitExceeded,
    },
    /// There is no file of this path.
    #[error("there is no file `{path}` in the world")]
    NoFile {
        /// The path asked for.
        path: String,
    },
    /// A file is larger than the caller allows.
    #[error("`{path}` has {size} bytes, allowed are {allowed}")]
    TooLarge {
        /// The path in the world.
        path: String,
        /// Its size.
        size: u64,
        /// The bound the caller gave.
        allowed: u64,
    },
    /// The content of a file cannot be read.
    #[error("cannot read `{path}` of the world: {source}")]
    Content {
        /// The path in the world.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
}

/// A world: its entries in the order of their paths, and their content on demand.
///
/// Opened with [`World::open`] from a zip, a tar, a `tar.gz`, a `tar.zst` or a directory. All paths begin with
/// `filesystem/` or `.apps_data/`:
///
/// * when these two stand at the top, what is beside them is no part of the world
///   ([`ignored`](Self::ignored) counts it);
/// * when there is one folder at the top and they stand in it, that folder is taken off;
/// * otherwise everything is `filesystem`.
///
/// Of two entries of one path the last counts. Nothing is written anywhere, except that a compressed tar is
/// uncompressed into a temporary file without a name.
#[derive(Debug)]
pub struct World {
    source: PathBuf,
    entries: Vec<Entry>,
    ignored: usize,
    archive: Option<Arc<File>>,
    trees: Vec<Tree>,
}

/// The content of one file, read in order. Damage shows as an error, at the end at the latest.
pub struct EntryReader(Box<dyn Read + Send>);

impl std::fmt::Debug for EntryReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EntryReader")
    }
}

impl EntryReader {
    /// No content.
    pub(crate) fn empty() -> Self {
        Self(Box::new(io::empty()))
    }
}

impl Read for EntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl World {
    /// The entries, ordered by the bytes of their paths.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many entries of the archive are outside of the two subsystems.
    #[must_use]
    pub const fn ignored(&self) -> usize {
        self.ignored
    }

    /// The entry of this path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries
            .binary_search_by(|entry| entry.raw_path.as_slice().cmp(path.as_bytes()))
            .ok()
            .map(|index| &self.entries[index])
    }

    /// Keeps only the entries that `keep` wants.
    pub fn retain(&mut self, keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(keep);
    }

    /// The whole content of a file of at most `max_bytes`.
    ///
    /// # Errors
    /// When there is no such file, it is larger, or cannot be read.
    pub fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, WorldError> {
        let entry = self
            .get(path)
            .filter(|entry| entry.is_file())
            .ok_or_else(|| WorldError::NoFile {
                path: path.to_owned(),
            })?;
        self.read_entry(entry, max_bytes)
    }

    /// The whole content of an entry of this world, of at most `max_bytes`.
    ///
    /// # Errors
    /// When it is larger, or cannot be read.
    pub fn read_entry(&self, entry: &Entry, max_bytes: u64) -> Result<Vec<u8>, WorldError> {
        let too_large = |size| WorldError::TooLarge {
            path: entry.path.clone(),
            size,
            allowed: max_bytes,
        };
        within("max_bytes", entry.size, max_bytes).map_err(|_| too_large(entry.size))?;
        let mut content = Vec::with_capacity(usize::try_from(entry.size).unwrap_or(0));
        // A file on disk may have grown since it was listed.
        self.reader(entry)?
            .take(max_bytes.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|source| content_error(entry, source))?;
        within("max_bytes", content.len() as u64, max_bytes)
            .map_err(|exceeded| too_large(exceeded.got))?;
        Ok(content)
    }

    /// The content of an entry of this world, as a stream. Empty for what is no file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reader(&self, entry: &Entry) -> Result<EntryReader, WorldError> {
        let archive = |offset, length| match &self.archive {
            Some(file) => Ok(FileRange::new(Arc::clone(file), offset, length)),
            None => Err(content_error(
                entry,
                io::Error::other("the entry is of another world"),
            )),
        };
        let reader: Box<dyn Read + Send> = match &entry.content {
            Content::Nothing => Box::new(io::empty()),
            Content::Stored { offset } => {
                let range = archive(*offset, entry.size)?;
                match entry.checksum {
                    Some(crc) => Box::new(Checked::new(range, entry.size, crc)),
                    None => Box::new(range),
                }
            }
            Content::Deflated { offset, packed } => {
                let inflated = DeflateDecoder::new(archive(*offset, *packed)?);
                match entry.checksum {
                    Some(crc) => Box::new(Checked::new(inflated, entry.size, crc)),
                    None => Box::new(inflated.take(entry.size)),
                }
            }
            Content::Disk { tree, path } => {
                let file = self
                    .trees
                    .get(*tree)
                    .map_or(Ok(None), |tree| tree.open_file(path))
                    .map_err(|source| content_error(entry, source))?;
                Box::new(file.ok_or_else(|| {
                    content_error(entry, io::Error::from(io::ErrorKind::NotFound))
                })?)
            }
        };
        Ok(EntryReader(reader))
    }

    /// The CRC-32 of an entry's content, read where it is not known.
    pub(crate) fn checksum_of(&self, entry: &Entry) -> Result<u32, WorldError> {
        match entry.checksum {
            Some(checksum) => Ok(checksum),
            None => crc::checksum(&mut self.reader(entry)?, entry.size)
                .map(|(_, checksum)| checksum)
                .map_err(|source| content_error(entry, source)),
        }
    }
}

fn content_error(entry: &Entry, source: io::Error) -> WorldError {
    WorldError::Content {
        path: entry.path.clone(),
        source,
    }
}
