//! Zip archives: what is in them, by name and size. Archives inside of archives are listed too.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use crate::document::{Document, Format, extension};
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::sink::TextSink;

const FORMAT: &str = "zip";

pub(crate) fn extract(bytes: &[u8], limits: &Limits) -> Result<Document, ExtractError> {
    let mut list = List {
        limits,
        sink: TextSink::new(limits),
        entries: 0,
        unpacked: 0,
        notes: Vec::new(),
    };
    list.add("", bytes, 0)?;
    let notes = list.notes;
    let mut document = list.sink.into_document(Format::Archive);
    document.notes.extend(notes);
    Ok(document)
}

struct List<'l> {
    limits: &'l Limits,
    sink: TextSink,
    entries: usize,
    unpacked: u64,
    notes: Vec<String>,
}

impl List<'_> {
    /// Adds the members of an archive, which lies at `prefix`.
    fn add(&mut self, prefix: &str, bytes: &[u8], depth: usize) -> Result<(), ExtractError> {
        let broken = |error: &dyn std::fmt::Display| match prefix {
            "" => ExtractError::broken(FORMAT, error),
            inner => ExtractError::broken(FORMAT, format!("`{inner}`: {error}")),
        };
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|e| broken(&e))?;
        self.entries += archive.len();
        if self.entries > self.limits.entries {
            return Err(ExtractError::Limit {
                what: "files inside the archive",
                limit: "entries",
                got: self.entries as u64,
                allowed: self.limits.entries as u64,
            });
        }
        for at in 0..archive.len() {
            let file = archive.by_index_raw(at).map_err(|e| broken(&e))?;
            let name = format!("{prefix}{}", String::from_utf8_lossy(file.name_raw()));
            let name: String = name.chars().filter(|c| !c.is_control()).collect();
            let encrypted = if file.encrypted() { "\tencrypted" } else { "" };
            let is_archive = extension(&name) == "zip" && !file.encrypted();
            self.sink
                .line(&format!("{name}\t{} bytes{encrypted}", file.size()));
            drop(file);
            if self.sink.is_full() {
                return Ok(());
            }
            if !is_archive {
                continue;
            }
            if depth + 1 > self.limits.archive_depth {
                self.notes.push(format!(
                    "`{name}` is not opened (limit `archive_depth` is {})",
                    self.limits.archive_depth
                ));
                continue;
            }
            let mut inner = Vec::new();
            let left = self.limits.unpacked_bytes.saturating_sub(self.unpacked);
            let file = archive.by_index(at).map_err(|e| broken(&e))?;
            let read = file.take(left + 1).read_to_end(&mut inner);
            self.unpacked += inner.len() as u64;
            if self.unpacked > self.limits.unpacked_bytes {
                return Err(ExtractError::Limit {
                    what: "unpacked size of archives inside in bytes (at least)",
                    limit: "unpacked_bytes",
                    got: self.unpacked,
                    allowed: self.limits.unpacked_bytes,
                });
            }
            // An inner archive that is broken does not hide the others.
            let listed = match read {
                Ok(_) => self.add(&format!("{name}/"), &inner, depth + 1),
                Err(error) => Err(ExtractError::broken(FORMAT, error)),
            };
            match listed {
                Ok(()) => {}
                Err(limit @ ExtractError::Limit { .. }) => return Err(limit),
                Err(error) => self.notes.push(error.to_string()),
            }
        }
        Ok(())
    }
}
