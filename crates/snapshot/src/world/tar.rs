//! The entries of a tar archive.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tar::{Archive, EntryType};

use super::file_range::FileRange;
use super::layout::{RawEntry, RawKind};
use super::{Content, WorldError};
use crate::archive::header;
use crate::crc;
use crate::limits::{LimitExceeded, Limits, Meter};
use crate::name;

/// Reads the headers, and each file once for its checksum.
pub(super) fn list(
    path: &Path,
    file: &Arc<File>,
    limits: &Limits,
) -> Result<Vec<RawEntry>, WorldError> {
    let damaged = |error: io::Error| WorldError::Archive {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let length = file.metadata().map_err(damaged)?.len();
    let mut archive = Archive::new(FileRange::new(Arc::clone(file), 0, length));
    let mut meter = Meter::new(limits);
    let mut entries = Vec::new();
    for entry in archive.entries_with_seek().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let raw_name = entry.path_bytes().into_owned();
        let limit = |limit: LimitExceeded| WorldError::Limit {
            path: path.to_owned(),
            member: name::display(&raw_name),
            limit,
        };
        meter.member(entry.size()).map_err(limit)?;
        meter.path(&raw_name).map_err(limit)?;
        let kind = match entry.header().entry_type() {
            EntryType::Directory => RawKind::Directory,
            EntryType::Regular if raw_name.ends_with(b"/") => RawKind::Directory,
            EntryType::Regular | EntryType::Continuous => RawKind::File,
            EntryType::Symlink | EntryType::Link => {
                let target = entry.link_name().map_err(damaged)?.unwrap_or_default();
                match entry.header().entry_type() {
                    EntryType::Symlink => RawKind::Symlink(target.into_owned()),
                    _ => RawKind::HardLink(target.into_owned()),
                }
            }
            EntryType::GNUSparse => {
                return Err(WorldError::Archive {
                    path: path.to_owned(),
                    reason: format!("`{}` is stored sparse", name::display(&raw_name)),
                });
            }
            // Devices and FIFOs have no content that could count.
            _ => continue,
        };
        let is_file = kind == RawKind::File;
        let mut size = 0;
        let mut checksum = None;
        if is_file {
            size = entry.size();
            let (read, crc) = crc::checksum(&mut entry, size).map_err(damaged)?;
            if read != size {
                return Err(WorldError::Archive {
                    path: path.to_owned(),
                    reason: format!("it ends inside of `{}`", name::display(&raw_name)),
                });
            }
            meter.bytes(size, length).map_err(limit)?;
            checksum = Some(crc);
        }
        entries.push(RawEntry {
            kind,
            size,
            mode: entry.header().mode().ok().map(|mode| mode & 0o7777),
            modified: header::modified(&mut entry).ok(),
            checksum,
            content: if is_file {
                Content::Stored {
                    offset: entry.raw_file_position(),
                }
            } else {
                Content::Nothing
            },
            name: raw_name,
        });
    }
    Ok(entries)
}
