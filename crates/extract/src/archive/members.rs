//! The members of zip, tar, `tar.gz` and `tar.zst` archives, and of those inside of them.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

use flate2::bufread::MultiGzDecoder;
use tempfile::SpooledTempFile;
use zip::ZipArchive;

use super::guard::{Guarded, Room};
use super::is_archive;
use crate::error::ExtractError;
use crate::limits::Limits;

/// Bytes of an archive inside of another that are kept in memory; a larger one goes to a temporary
/// file.
const IN_MEMORY: usize = 1 << 20;

/// The window of a zstd stream, as the logarithm of its bytes: what reading one may cost in memory.
const ZSTD_WINDOW_LOG: u32 = 24;

/// A member that is no directory.
pub(crate) struct Member<'m> {
    /// Its name, with the names of the archives around it in front: `inner.zip/a.txt`.
    pub(crate) name: &'m str,
    pub(crate) kind: MemberKind,
    /// Bytes, unpacked.
    pub(crate) size: u64,
    /// CRC-32: as a zip states it, of other archives as it was read.
    pub(crate) checksum: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    File,
    Encrypted,
    Link,
}

/// Whether to go on.
#[derive(PartialEq, Eq)]
pub(crate) enum Next {
    Go,
    Stop,
}

/// Calls `visit` for each member of the archive called `name`. An archive inside that is broken or
/// too deep is told in the notes that come back; it does not hide the others.
///
/// # Errors
/// When the archive itself is broken, or all together cross a limit.
pub(crate) fn members(
    name: &str,
    input: &mut (impl Read + Seek),
    limits: &Limits,
    visit: &mut dyn FnMut(Member<'_>) -> Next,
) -> Result<Vec<String>, ExtractError> {
    let room = Room::new(limits.unpacked_bytes);
    let mut walk = Walk {
        limits,
        entries: 0,
        stopped: false,
        notes: Vec::new(),
        visit,
    };
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    walk.archive("", file, input, 0, &room)?;
    Ok(walk.notes)
}

struct Walk<'w, 'l> {
    limits: &'l Limits,
    entries: usize,
    stopped: bool,
    notes: Vec<String>,
    visit: &'w mut dyn FnMut(Member<'_>) -> Next,
}

impl Walk<'_, '_> {
    /// The members of the archive `file`, whose own names stand after `prefix`.
    fn archive(
        &mut self,
        prefix: &str,
        file: &str,
        input: &mut (impl Read + Seek),
        depth: usize,
        room: &Room,
    ) -> Result<(), ExtractError> {
        let place = Place {
            prefix,
            depth,
            limits: self.limits,
            room,
        };
        let mut head = Vec::new();
        input
            .by_ref()
            .take(512)
            .read_to_end(&mut head)
            .and_then(|_| input.seek(SeekFrom::Start(0)))
            .map_err(ExtractError::read)?;
        let guarded = |unpacked| Guarded::new(unpacked, room.clone());
        if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            return self.zip(place, input);
        }
        if head.starts_with(b"\x1f\x8b") {
            let unpacked: Box<dyn Read + '_> = Box::new(MultiGzDecoder::new(BufReader::new(input)));
            return self.stream(place, file, guarded(unpacked));
        }
        if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            let decoder = zstd::Decoder::new(input).and_then(|mut decoder| {
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Ok(decoder)
            });
            let unpacked: Box<dyn Read + '_> =
                Box::new(decoder.map_err(|e| place.broken("zst", &e))?);
            return self.stream(place, file, guarded(unpacked));
        }
        if is_tar(&head) {
            let unpacked: Box<dyn Read + '_> = Box::new(input);
            return self.tar(place, guarded(unpacked));
        }
        Err(place.broken("archive", &"it is no zip, tar, gzip or zstd file"))
    }

    fn zip(
        &mut self,
        place: Place<'_>,
        input: &mut (impl Read + Seek),
    ) -> Result<(), ExtractError> {
        let broken = |error: &dyn Display| place.broken("zip", error);
        let mut archive = ZipArchive::new(input).map_err(|e| broken(&e))?;
        self.count(archive.len())?;
        for at in 0..archive.len() {
            if self.stopped {
                return Ok(());
            }
            let file = archive.by_index_raw(at).map_err(|e| broken(&e))?;
            let name = String::from_utf8_lossy(file.name_raw()).into_owned();
            if name.ends_with('/') {
                continue;
            }
            let kind = if file.encrypted() {
                MemberKind::Encrypted
            } else if file.is_symlink() {
                MemberKind::Link
            } else {
                MemberKind::File
            };
            let (size, checksum) = (file.size(), file.crc32());
            drop(file);
            let name = format!("{}{name}", place.prefix);
            self.visit(&name, kind, size, checksum);
            if kind == MemberKind::File && is_archive(&name) && self.may_open(&name, place) {
                let mut spool = SpooledTempFile::new(IN_MEMORY);
                let unpacked = archive.by_index(at).map_err(io::Error::from);
                let copied = unpacked.and_then(|file| {
                    io::copy(&mut Guarded::new(file, place.room.clone()), &mut spool)
                });
                self.inside(&name, copied.map(|_| spool), place)?;
            }
        }
        Ok(())
    }

    /// A compressed stream: a tar, or a single file.
    fn stream(
        &mut self,
        place: Place<'_>,
        file: &str,
        mut input: impl Read,
    ) -> Result<(), ExtractError> {
        let broken = |error: io::Error| place.failed("compressed", &error);
        let mut head = Vec::new();
        input
            .by_ref()
            .take(512)
            .read_to_end(&mut head)
            .map_err(broken)?;
        let tar = is_tar(&head);
        let mut whole = Cursor::new(head).chain(input);
        if tar {
            return self.tar(place, whole);
        }
        self.count(1)?;
        let (size, checksum) = measure(&mut whole).map_err(broken)?;
        let name = match file.rsplit_once('.') {
            Some((name, _)) if !name.is_empty() => name,
            _ => file,
        };
        self.visit(
            &format!("{}{name}", place.prefix),
            MemberKind::File,
            size,
            checksum,
        );
        Ok(())
    }

    fn tar(&mut self, place: Place<'_>, input: impl Read) -> Result<(), ExtractError> {
        let broken = |error: io::Error| place.failed("tar", &error);
        let mut archive = tar::Archive::new(input);
        place.room.expect_header();
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            self.count(1)?;
            let kind = match entry.header().entry_type() {
                tar::EntryType::Regular | tar::EntryType::Continuous => MemberKind::File,
                tar::EntryType::Symlink | tar::EntryType::Link => MemberKind::Link,
                // Directories, devices, and what has no name of its own.
                _ => continue,
            };
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if name.ends_with('/') {
                continue;
            }
            let name = format!("{}{name}", place.prefix);
            let link = (kind == MemberKind::Link)
                .then(|| entry.link_name_bytes().map(Cow::into_owned))
                .flatten();
            place.room.expect_content();
            if let Some(target) = link {
                let (size, checksum) = measure(&mut target.as_slice()).map_err(broken)?;
                self.visit(&name, kind, size, checksum);
            } else if is_archive(&name) && self.may_open(&name, place) {
                let mut spool = SpooledTempFile::new(IN_MEMORY);
                io::copy(&mut entry, &mut spool).map_err(broken)?;
                let (size, checksum) = spool
                    .seek(SeekFrom::Start(0))
                    .and_then(|_| measure(&mut spool))
                    .map_err(broken)?;
                self.visit(&name, kind, size, checksum);
                self.inside(&name, Ok(spool), place)?;
            } else {
                let (size, checksum) = measure(&mut entry).map_err(broken)?;
                self.visit(&name, kind, size, checksum);
            }
            if self.stopped {
                return Ok(());
            }
            place.room.expect_header();
        }
        Ok(())
    }

    /// Whether an archive inside is opened; a note where it is too deep.
    fn may_open(&mut self, name: &str, place: Place<'_>) -> bool {
        let allowed = self.limits.archive_depth;
        if place.depth < allowed {
            return !self.stopped;
        }
        self.notes.push(format!(
            "`{name}` is not opened (limit `archive_depth` is {allowed})"
        ));
        false
    }

    /// The members of an archive inside.
    fn inside(
        &mut self,
        name: &str,
        spool: io::Result<SpooledTempFile>,
        place: Place<'_>,
    ) -> Result<(), ExtractError> {
        let opened = match spool {
            Ok(mut spool) => spool
                .seek(SeekFrom::Start(0))
                .map_err(ExtractError::read)
                .and_then(|_| {
                    let (prefix, room) = (format!("{name}/"), place.room.inside());
                    let file = name.rsplit('/').next().unwrap_or(name);
                    self.archive(&prefix, file, &mut spool, place.depth + 1, &room)
                }),
            Err(error) => Err(place.failed("archive", &error)),
        };
        match opened {
            Err(limit @ ExtractError::Limit { .. }) => Err(limit),
            Err(error) => {
                self.notes.push(format!("`{name}`: {error}"));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn count(&mut self, more: usize) -> Result<(), ExtractError> {
        self.entries = self.entries.saturating_add(more);
        if self.entries > self.limits.entries {
            return Err(ExtractError::Limit {
                what: "files inside the archive",
                limit: "entries",
                got: self.entries as u64,
                allowed: self.limits.entries as u64,
            });
        }
        Ok(())
    }

    fn visit(&mut self, name: &str, kind: MemberKind, size: u64, checksum: u32) {
        let member = Member {
            name,
            kind,
            size,
            checksum,
        };
        self.stopped |= (self.visit)(member) == Next::Stop;
    }
}

/// Where an archive lies.
#[derive(Clone, Copy)]
struct Place<'p> {
    /// The names of the archives around its members.
    prefix: &'p str,
    depth: usize,
    limits: &'p Limits,
    room: &'p Room,
}

impl Place<'_> {
    fn broken(self, format: &'static str, error: &dyn Display) -> ExtractError {
        ExtractError::broken(format, error)
    }

    /// What an error of a stream really is.
    fn failed(self, format: &'static str, error: &io::Error) -> ExtractError {
        if self.room.is_crossed() {
            return ExtractError::Limit {
                what: "unpacked size of the archive in bytes (at least)",
                limit: "unpacked_bytes",
                got: self.limits.unpacked_bytes.saturating_add(1),
                allowed: self.limits.unpacked_bytes,
            };
        }
        self.broken(format, error)
    }
}

/// By the mark in the first header; an archive without members is all zeros.
fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar") || (head.len() == 512 && head.iter().all(|b| *b == 0))
}

/// Size and CRC-32 of what is left of a stream.
fn measure(input: &mut impl Read) -> io::Result<(u64, u32)> {
    let mut crc = flate2::CrcReader::new(input);
    let size = io::copy(&mut crc, &mut io::sink())?;
    Ok((size, crc.crc().sum()))
}
