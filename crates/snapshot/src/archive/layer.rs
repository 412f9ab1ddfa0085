//! What changed on a machine since a moment, as one layer of an image.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, BufReader, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use super::gzip::GzipWriter;
use super::members::{ExactLength, seconds_of, timestamp};
use super::pack::PackError;
use crate::name;
use crate::tree::{Found, Tree};

/// When something about a file was changed last: its content, mode, owner, name or attributes. Unlike
/// the time of modification nobody can set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeTime {
    /// Whole seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds after that.
    pub nanoseconds: i64,
}

impl ChangeTime {
    /// Of a file.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            seconds: metadata.ctime(),
            nanoseconds: metadata.ctime_nsec(),
        }
    }
}

/// What is in a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerReport {
    /// Members of the archive.
    pub members: u64,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
}

/// Packs everything below `root` that was changed at `since` or later as a `tar.gz`: what makes the
/// machine as it is now of the machine as it was then, but for what was deleted.
///
/// Names are relative to `root`. Files, directories, links, FIFOs and devices are kept as they are,
/// further names of a file as hard links; owners as numbers; extended attributes, and with them access
/// control lists and capabilities, as pax records `SCHILY.xattr.…`, the way of GNU tar and of image
/// builders. Sockets are left out, as are the paths `excluded` (relative to `root`) and what is below
/// them. A file that vanishes is left out, one that shrinks is filled up with zeros.
///
/// A change in the very moment `since` counts: clocks of file systems are coarse, and what is in the
/// layer without need does no harm.
///
/// # Errors
/// When something cannot be read or `out` cannot be written; then `out` holds no complete archive.
pub fn pack_layer(
    root: &Path,
    since: ChangeTime,
    excluded: &[PathBuf],
    out: impl Write,
) -> Result<LayerReport, PackError> {
    let read_error = |path: &Path, source| PackError::Read {
        path: path.to_owned(),
        source,
    };
    let end_error = |source| PackError::Write {
        member: "end of archive".to_owned(),
        source,
    };
    let tree = Tree::open(root)
        .and_then(|tree| tree.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)))
        .map_err(|source| read_error(root, source))?;
    let gzip = GzipWriter::new(out, Compression::fast(), None);
    let mut layer = Layer {
        tree: &tree,
        archive: Builder::new(gzip),
        first_names: HashMap::new(),
        report: LayerReport::default(),
    };
    for found in tree.walk_except(excluded) {
        let found = found.map_err(|source| read_error(root, source))?;
        if ChangeTime::of(&found.metadata) >= since {
            layer.entry(&found)?;
        }
    }
    layer
        .archive
        .into_inner()
        .and_then(GzipWriter::finish)
        .and_then(|mut out| out.flush())
        .map_err(end_error)?;
    Ok(layer.report)
}

struct Layer<'t, W: Write> {
    tree: &'t Tree,
    archive: Builder<GzipWriter<W>>,
    /// By device and number: the member that holds a file with several names.
    first_names: HashMap<(u64, u64), PathBuf>,
    report: LayerReport,
}

impl<W: Write> Layer<'_, W> {
    fn entry(&mut self, found: &Found) -> Result<(), PackError> {
        let (path, kind) = (&found.path, found.metadata.file_type());
        let read_error = |source| PackError::Read {
            path: self.tree.path().join(path),
            source,
        };
        if kind.is_socket() {
            return Ok(());
        }
        if kind.is_symlink() {
            let target = self.tree.link_target(path).map_err(read_error)?;
            return self.link(found, EntryType::Symlink, &target);
        }
        if !kind.is_file() {
            let kind = match kind {
                kind if kind.is_dir() => EntryType::Directory,
                kind if kind.is_fifo() => EntryType::Fifo,
                kind if kind.is_char_device() => EntryType::Char,
                _ => EntryType::Block,
            };
            return self.append(found, &found.metadata, kind, None, &mut io::empty());
        }
        let of_disk = (found.metadata.dev(), found.metadata.ino());
        if let Some(first) = self.first_names.get(&of_disk) {
            let first = first.clone();
            return self.link(found, EntryType::Link, &first);
        }
        let Some(file) = self.tree.open_file(path).map_err(read_error)? else {
            return Ok(());
        };
        let metadata = file.metadata().map_err(read_error)?;
        if metadata.nlink() > 1 {
            let of_disk = (metadata.dev(), metadata.ino());
            self.first_names.insert(of_disk, path.clone());
        }
        let mut content = ExactLength::new(BufReader::with_capacity(1 << 17, file), metadata.len());
        self.append(found, &metadata, EntryType::Regular, None, &mut content)?;
        self.report.bytes += metadata.len();
        if content.missing() > 0 {
            let member = name::display(name::bytes(path));
            tracing::warn!(member, "a file became shorter while it was packed");
        }
        Ok(())
    }

    fn link(&mut self, found: &Found, kind: EntryType, target: &Path) -> Result<(), PackError> {
        self.append(found, &found.metadata, kind, Some(target), &mut io::empty())
    }

    fn append(
        &mut self,
        found: &Found,
        metadata: &Metadata,
        kind: EntryType,
        target: Option<&Path>,
        content: &mut dyn io::Read,
    ) -> Result<(), PackError> {
        let on_disk = self.tree.path().join(&found.path);
        let mut records = match kind {
            EntryType::Link => Vec::new(),
            _ => attributes(&on_disk).map_err(|source| PackError::Read {
                path: on_disk.clone(),
                source,
            })?,
        };
        let write = || -> io::Result<()> {
            let mut header = header(metadata, kind)?;
            if let Some(target) = target.map(name::bytes)
                && header.set_link_name_literal(target).is_err()
            {
                records.push(("linkpath".to_owned(), target.to_owned()));
            }
            if let Ok(modified) = metadata.modified()
                && let Some(text) = timestamp(modified).1
            {
                records.push(("mtime".to_owned(), text.into_bytes()));
            }
            if !records.is_empty() {
                let records = records.iter();
                self.archive.append_pax_extensions(
                    records.map(|(key, value)| (key.as_str(), value.as_slice())),
                )?;
            }
            let mut member = found.path.clone();
            if kind == EntryType::Directory {
                member.as_mut_os_string().push("/");
            }
            self.archive.append_data(&mut header, member, content)
        };
        write().map_err(|source| PackError::Write {
            member: found.path.display().to_string(),
            source,
        })?;
        self.report.members += 1;
        Ok(())
    }
}

fn header(metadata: &Metadata, kind: EntryType) -> io::Result<Header> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(metadata.mode() & 0o7777);
    header.set_uid(u64::from(metadata.uid()));
    header.set_gid(u64::from(metadata.gid()));
    header.set_mtime(metadata.modified().map_or(0, seconds_of));
    let size = if kind == EntryType::Regular {
        metadata.len()
    } else {
        0
    };
    header.set_size(size);
    if matches!(kind, EntryType::Char | EntryType::Block) {
        header.set_device_major(rustix::fs::major(metadata.rdev()))?;
        header.set_device_minor(rustix::fs::minor(metadata.rdev()))?;
    }
    Ok(header)
}

/// The extended attributes of a file, as pax records.
fn attributes(path: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let names = match growing(|room| rustix::fs::llistxattr(path, room)) {
        Ok(names) => names,
        // The disk knows none; what is gone has none.
        Err(Errno::OPNOTSUPP | Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut records = Vec::new();
    for attribute in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        // `=` ends the key of a pax record.
        let Some(text) = std::str::from_utf8(attribute)
            .ok()
            .filter(|text| !text.contains('='))
        else {
            tracing::warn!(path = %path.display(), "an attribute has a name that no archive can hold");
            continue;
        };
        let attribute = std::ffi::OsStr::from_bytes(attribute);
        match growing(|room| rustix::fs::lgetxattr(path, attribute, room)) {
            Ok(value) => records.push((format!("SCHILY.xattr.{text}"), value)),
            Err(Errno::NODATA | Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(records)
}

/// Asks with more and more room. Linux has no attributes, and no lists of them, above 64 KiB.
fn growing(
    mut ask: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    let mut room = vec![0; 1024];
    loop {
        match ask(&mut room) {
            Ok(length) => {
                room.truncate(length);
                return Ok(room);
            }
            Err(Errno::RANGE) if room.len() < 1 << 17 => room.resize(room.len() * 8, 0),
            Err(error) => return Err(error),
        }
    }
}
