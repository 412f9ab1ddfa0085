//! A world written as an archive.

use std::io::{self, Seek, Write};
use std::time::SystemTime;

use flate2::{Compression, GzBuilder};
use tar::Builder;
use zip::write::{FileOptions, SimpleFileOptions};
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::{Entry, EntryKind, World, WorldError, content_error};
use crate::archive::members::{self, Member, MemberKind, Owner};

/// From this size on a file gets the 64-bit form of zip. What does not compress becomes a little larger
/// than it was, so this is below the bound of the 32-bit form.
const LARGE_FILE: u64 = 0xf000_0000;

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
            let options = zip_options(entry);
            match entry.kind {
                EntryKind::Directory => {
                    // The writer takes names of directories as text only; the files in it are kept.
                    if let Ok(name) = std::str::from_utf8(&entry.raw_path) {
                        zip.add_directory(name, options)
                            .map_err(|error| content_error(entry, error.into()))?;
                    }
                }
                EntryKind::File => {
                    let stamped = options.into_full_options();
                    let started = match unix_seconds(entry) {
                        Some(seconds) => stamped
                            .with_extended_timestamp(Some(seconds), None, None)
                            .and_then(|options| zip.start_file_with_options(options)),
                        None => zip.start_file_with_options(stamped),
                    };
                    started.map_err(|error| content_error(entry, error.into()))?;
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
        let mut archive = Builder::new(GzBuilder::new().write(out, Compression::fast()));
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
            .and_then(flate2::write::GzEncoder::finish)
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

/// Options of a member. The name among them is the path as it is, also where it is not UTF-8.
fn zip_options(entry: &Entry) -> FileOptions<'static, '_, ()> {
    let (year, month, day, hour, minute, second) = calendar(entry.modified);
    let time =
        DateTime::from_date_and_time(year, month, day, hour, minute, second).unwrap_or_default();
    let default_mode = match entry.kind {
        EntryKind::Directory => 0o755,
        _ => 0o644,
    };
    SimpleFileOptions::default()
        .name(&entry.raw_path)
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(time)
        .unix_permissions(entry.mode.unwrap_or(default_mode) & 0o777)
        // Sizes are known, so only files that may need it get the 64-bit form.
        .large_file(entry.size >= LARGE_FILE)
}

/// Whole seconds since 1970 as zip's time stamps hold them.
fn unix_seconds(entry: &Entry) -> Option<u32> {
    let since = entry
        .modified?
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    // The field is a signed 32-bit number.
    u32::try_from(since.as_secs())
        .ok()
        .filter(|seconds| *seconds <= i32::MAX as u32)
}

/// Year, month, day, hour, minute, second in UTC; 1980, where zip begins, for anything before.
fn calendar(time: Option<SystemTime>) -> (u16, u8, u8, u8, u8, u8) {
    const BEGINNING: (u16, u8, u8, u8, u8, u8) = (1980, 1, 1, 0, 0, 0);
    let Some(Ok(since)) = time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH)) else {
        return BEGINNING;
    };
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Civil calendar from a count of days: eras of 400 years that begin in March.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    if !(1980..=2107).contains(&year) {
        return BEGINNING;
    }
    let narrow = |number: u64| u8::try_from(number).unwrap_or(0);
    (
        u16::try_from(year).unwrap_or(1980),
        narrow(month),
        narrow(day),
        narrow(seconds / 3600),
        narrow(seconds / 60 % 60),
        narrow(seconds % 60),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |seconds| calendar(Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)));
        // Seconds as `date -u -d … +%s` gives them.
        assert_eq!(at(1_768_673_420), (2026, 1, 17, 18, 10, 20));
        assert_eq!(at(951_827_696), (2000, 2, 29, 12, 34, 56));
        assert_eq!(at(0), (1980, 1, 1, 0, 0, 0));
    }
}
