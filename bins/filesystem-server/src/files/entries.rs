//! The entries of one directory, in a fixed order.

use std::{ffi::OsString, path::Path};

use crate::{
    root::{PathError, World, openable},
    tools::{Effort, Stopped},
};

/// What an entry is, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Directory,
    File,
    Link,
    /// FIFO, socket or device.
    Special,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: EntryKind,
}

/// The entries of a directory, sorted by the bytes of their names: the file system's own order differs from machine to
/// machine and from copy to copy, and a trial must be repeatable.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) found: Vec<Entry>,
    /// Set if there may be more.
    pub(crate) stopped: Option<Stopped>,
}

pub(crate) fn of_directory(
    world: &World<'_>,
    relative: &Path,
    effort: &mut Effort,
) -> Result<Entries, PathError> {
    let mut found = Vec::new();
    let mut stopped = None;
    for entry in world.dir.read_dir(openable(relative))? {
        if let Err(reason) = effort.spend() {
            stopped = Some(reason);
            break;
        }
        let entry = entry?;
        // An entry that vanishes meanwhile is as good as never seen.
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let kind = if kind.is_dir() {
            EntryKind::Directory
        } else if kind.is_symlink() {
            EntryKind::Link
        } else if kind.is_file() {
            EntryKind::File
        } else {
            EntryKind::Special
        };
        found.push(Entry {
            name: entry.file_name(),
            kind,
        });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Entries { found, stopped })
}
