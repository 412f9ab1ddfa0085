//! The entries of a zip archive.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use zip::{CompressionMethod, ExtraField, ZipArchive};

use super::file_range::FileRange;
use super::layout::{RawEntry, RawKind};
use super::{Content, WorldError};
use crate::limits::{LimitExceeded, Limits, Meter};
use crate::name;

/// The bits of a Unix mode that say what a thing is, and their value for a symbolic link.
const KIND_MASK: u32 = 0o170_000;
const KIND_LINK: u32 = 0o120_000;

/// Reads the central directory and where each member begins.
pub(super) fn list(
    path: &Path,
    file: &Arc<File>,
    limits: &Limits,
) -> Result<Vec<RawEntry>, WorldError> {
    let unusable = |reason: String| WorldError::Archive {
        path: path.to_owned(),
        reason,
    };
    let length = file
        .metadata()
        .map_err(|error| unusable(error.to_string()))?
        .len();
    let mut archive = ZipArchive::new(FileRange::new(Arc::clone(file), 0, length))
        .map_err(|error| unusable(error.to_string()))?;
    if archive
        .has_overlapping_entries()
        .map_err(|error| unusable(error.to_string()))?
    {
        return Err(unusable("members overlap each other".to_owned()));
    }
    let mut meter = Meter::new(limits);
    let mut entries = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let member = archive
            .by_index_raw(index)
            .map_err(|error| unusable(error.to_string()))?;
        // Some writers on Windows separate by backslashes.
        let raw_name: Vec<u8> = member
            .name_raw()
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect();
        let shown = name::display(&raw_name);
        let limit = |limit: LimitExceeded| WorldError::Limit {
            path: path.to_owned(),
            member: shown.clone(),
            limit,
        };
        let size = member.size();
        meter.member(size).map_err(limit)?;
        meter.bytes(size, length).map_err(limit)?;
        meter.path(&raw_name).map_err(limit)?;
        if member.encrypted() {
            return Err(unusable(format!("`{shown}` is encrypted")));
        }
        let offset = member
            .data_start()
            .ok_or_else(|| unusable(format!("`{shown}` has no content")))?;
        let packed = member.compressed_size();
        let content = match member.compression() {
            CompressionMethod::Stored => Content::Stored { offset },
            CompressionMethod::Deflated => Content::Deflated { offset, packed },
            other => return Err(unusable(format!("`{shown}` is compressed with {other}"))),
        };
        let mode = member.unix_mode();
        let modified = modified(&member);
        let checksum = Some(member.crc32());
        let mut entry = RawEntry {
            kind: RawKind::File,
            size,
            mode: mode.map(|mode| mode & 0o7777),
            modified,
            checksum,
            content,
            name: raw_name,
        };
        drop(member);
        if entry.name.ends_with(b"/") {
            entry = RawEntry {
                kind: RawKind::Directory,
                size: 0,
                checksum: None,
                content: Content::Nothing,
                ..entry
            };
        } else if mode.is_some_and(|mode| mode & KIND_MASK == KIND_LINK) {
            let mut target = Vec::new();
            archive
                .by_index(index)
                .map_err(|error| unusable(error.to_string()))?
                .take(limits.path_bytes)
                .read_to_end(&mut target)
                .map_err(|error| unusable(format!("`{shown}`: {error}")))?;
            entry = RawEntry {
                kind: RawKind::Symlink(PathBuf::from(OsStr::from_bytes(&target))),
                size: 0,
                checksum: None,
                content: Content::Nothing,
                ..entry
            };
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// The time of modification: exact where the member has a Unix time stamp, else the local time of the
/// writer taken as UTC, to two seconds.
fn modified(member: &zip::read::ZipFile<'_, FileRange>) -> Option<SystemTime> {
    let stamp = member.extra_data_fields().find_map(|field| match field {
        ExtraField::ExtendedTimestamp(stamp) => stamp.mod_time(),
        _ => None,
    });
    if let Some(seconds) = stamp {
        return SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::from(seconds)));
    }
    let time = member.last_modified().filter(zip::DateTime::is_valid)?;
    let days = days_since_1970(
        i64::from(time.year()),
        i64::from(time.month()),
        i64::from(time.day()),
    );
    let seconds = days * 86_400
        + i64::from(time.hour()) * 3600
        + i64::from(time.minute()) * 60
        + i64::from(time.second());
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Days between 1970-01-01 and a date of the Gregorian calendar (from 1970 on).
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    let of_months = (month * 153 + 2) / 5;
    // 719,468 days from 0000-03-01 to 1970-01-01.
    of_years + of_months + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::days_since_1970;

    #[test]
    fn days() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(1970, 3, 1), 59);
        assert_eq!(days_since_1970(2000, 2, 29), 11_016);
        assert_eq!(days_since_1970(2026, 1, 17), 20_470);
    }
}
