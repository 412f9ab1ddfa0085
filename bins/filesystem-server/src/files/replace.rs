//! Putting a file in place as a whole: written beside its place, then renamed onto it, so that a reader sees the old
//! content or the new one, never half of it.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use cap_std::fs::{Dir, OpenOptions, Permissions};

use super::open;
use crate::root::{World, openable};

/// Number of the next temporary file of this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Writes `content` to `relative`, whose parent exists and which is no link. `permissions` are those of the file that is
/// replaced; without, the file is created with the usual ones.
pub(crate) fn put(
    world: &World<'_>,
    relative: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let parent = world
        .dir
        .open_dir(openable(relative.parent().unwrap_or(Path::new(""))))?;
    if permissions.is_some() {
        // Renaming onto a file does not ask whether it may be written to.
        open::without_waiting(world, relative, OpenOptions::new().write(true))?;
    }
    let name = relative
        .file_name()
        .ok_or_else(|| io::Error::other("the path has no file name"))?;
    let mut temporary = OsString::from(".");
    temporary.push(format!(
        "write-{}-{}.tmp",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let written = fill(&parent, &temporary, content, permissions)
        .and_then(|()| parent.rename(&temporary, &parent, name));
    if written.is_err() {
        // The first error is the one to report.
        let _ = parent.remove_file(&temporary);
    }
    written
}

fn fill(
    parent: &Dir,
    name: &OsString,
    content: &[u8],
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let mut file = parent.open_with(name, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(content)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    Ok(())
}
