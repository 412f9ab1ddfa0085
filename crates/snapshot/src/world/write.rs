//! A world written as an archive.

use std::io::{self, Seek, Write};
use std::time::SystemTime;

use flate2::Compression;
use tar::Builder;
use zip::ZipWriter;

use super::{Entry, EntryKind, World, WorldError, content_error};
use crate::archive::gzip::GzipWriter;
use crate::archive::members::{self, Member, MemberKind, Owner};
use crate::archive::zip_member::{self, ZipMember};

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Directories.
    pub directories: u64,
    /// Links that are not written, because they lead to no file of the world.
    pub links_left_out: Vec<String>,
}

impl World {
    /// Writes the world as a zip with the paths of [`Entry::path`]: files with mode and time,
    /// directories that have a record of their own, links to files as copies.
    ///
    /// # Errors
    /// When a file cannot be read or `out` cannot be written.
    pub fn write_zip(&self, out: impl Write + Seek) -> Result<WriteReport, WorldError> {
        let mut zip = ZipWriter::new(out);
        let mut report = WriteReport::default();
        for entry in &self.entries {
            let member = zip_member(entry);
            match entry.kind {
                EntryKind::Directory => {
                    // The writer takes names of directories as text only; the files in it are kept.
                    if let Ok(name) = std::str::from_utf8(&entry.raw_path) {
                        zip.add_directory(name, member.options())
                            .map_err(|error| content_error(entry, error.into()))?;
                    }
                }
                EntryKind::File => {
                    zip_member::start_file(&mut zip, &member)
                        .map_err(|error| content_error(entry, error))?;
                    io::copy(&mut self.reader(entry)?, &mut zip)
                        .map_err(|source| content_error(entry, source))?;
                }
                EntryKind::Symlink => {}
            }
            report.count(entry);
        }
        let mut out = zip
            .finish()
            .map_err(|error| self.write_error(error.into()))?;
        out.flush().map_err(|error| self.write_error(error))?;
        Ok(report)
    }

    /// Writes one subsystem as a `tar.gz` whose members are relative to it: the body of
    /// `POST /data/populate`. Files keep mode and time (0644 and 1970 where unknown); directories
    /// that have a record of their own are kept; links to files are copies.
    ///
    /// # Errors
    /// When a file cannot be read or `out` cannot be written.
    pub fn write_tar_gz(
        &self,
        subsystem: &str,
        out: impl Write,
    ) -> Result<WriteReport, WorldError> {
        let gzip = GzipWriter::new(out, Compression::fast(), None);
        let mut archive = Builder::new(gzip);
        let mut report = WriteReport::default();
        for entry in &self.entries {
            let Some(name) = below(&entry.raw_path, subsystem) else {
                continue;
            };
            let mut member = Member {
                name,
                kind: MemberKind::File(entry.size),
                mode: entry.mode.unwrap_or(0o644),
                owner: Owner::default(),
                modified: entry.modified.unwrap_or(SystemTime::UNIX_EPOCH),
            };
            match entry.kind {
                EntryKind::Symlink => {}
                EntryKind::Directory => {
                    let name = [name, b"/"].concat();
                    member.name = &name;
                    member.kind = MemberKind::Directory;
                    member.mode = entry.mode.unwrap_or(0o755);
                    members::append(&mut archive, &member, io::empty())
                        .map_err(|source| content_error(entry, source))?;
                }
                EntryKind::File => {
                    let missing = members::append(&mut archive, &member, self.reader(entry)?)
                        .map_err(|source| content_error(entry, source))?;
                    if missing > 0 {
                        let short = io::Error::from(io::ErrorKind::UnexpectedEof);
                        return Err(content_error(entry, short));
                    }
                }
            }
            report.count(entry);
        }
        archive
            .into_inner()
            .and_then(GzipWriter::finish)
            .and_then(|mut out| out.flush())
            .map_err(|error| self.write_error(error))?;
        Ok(report)
    }

    /// Whether anything lies in this subsystem.
    #[must_use]
    pub fn has(&self, subsystem: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| below(&entry.raw_path, subsystem).is_some())
    }

    fn write_error(&self, source: io::Error) -> WorldError {
        WorldError::Read {
            path: self.source.clone(),
            source,
        }
    }
}

impl WriteReport {
    fn count(&mut self, entry: &Entry) {
        match entry.kind {
            EntryKind::File => {
                self.files += 1;
                self.bytes += entry.size;
            }
            EntryKind::Directory => self.directories += 1,
            EntryKind::Symlink => self.links_left_out.push(entry.path.clone()),
        }
    }
}

/// The path relative to a subsystem.
fn below<'p>(path: &'p [u8], subsystem: &str) -> Option<&'p [u8]> {
    path.strip_prefix(subsystem.as_bytes())?.strip_prefix(b"/")
}

/// A member of a zip. Its name is the path as it is, also where that is not UTF-8.
fn zip_member(entry: &Entry) -> ZipMember<'_> {
    let default_mode = match entry.kind {
        EntryKind::Directory => 0o755,
        _ => 0o644,
    };
    ZipMember {
        name: &entry.raw_path,
        size: entry.size,
        mode: entry.mode.unwrap_or(default_mode),
        modified: entry.modified,
        level: None,
    }
}
