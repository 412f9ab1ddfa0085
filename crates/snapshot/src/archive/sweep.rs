//! Removes what an unpacking that was killed has left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::place::OLD;
use crate::tree::STAGING_PREFIX;

/// What [`sweep`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Staging directories that were removed.
    pub removed: Vec<PathBuf>,
    /// Those with files of the world that were being replaced; they are left for people to look at.
    pub kept: Vec<PathBuf>,
}

/// Removes the staging directories of unpackings into `root` that nobody works on any more, because
/// their process was killed. Those of a running process are locked and stay.
///
/// # Errors
/// When a directory cannot be listed or removed.
pub fn sweep(root: &Path) -> io::Result<SweepReport> {
    let root = root.canonicalize()?;
    let mut report = SweepReport::default();
    for folder in [root.parent(), Some(&root)].into_iter().flatten() {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // Then nothing could be made there either.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let ours = entry
                .file_name()
                .to_string_lossy()
                .starts_with(STAGING_PREFIX);
            if ours && entry.file_type()?.is_dir() {
                sweep_one(entry.path(), &mut report)?;
            }
        }
    }
    Ok(report)
}

fn sweep_one(room: PathBuf, report: &mut SweepReport) -> io::Result<()> {
    let lock = match File::open(&room) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let replaced = match fs::read_dir(room.join(OLD)) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => false,
    };
    if replaced {
        report.kept.push(room);
        return Ok(());
    }
    fs::remove_dir_all(&room)?;
    report.removed.push(room);
    Ok(())
}
