//! Files for all members of a group.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Gid, fchown};

use crate::tree::Tree;

/// What all members of the group may do with a file.
const READ_AND_WRITE: u32 = 0o060;

/// The same for a directory, in which what is made later belongs to the group too.
const ENTER_AND_CHANGE: u32 = 0o2070;

/// Lets the group of `root` read and change the files at `paths` (relative to `root`), and use all
/// directories between them and the root. What is no file any more is left alone; links are not
/// followed out of the root.
///
/// # Errors
/// When the rights cannot be set, for example because the group is not one of this process's user. The
/// path is the one at which it ended.
pub fn share_with_group(root: &Path, paths: &[PathBuf]) -> Result<(), (PathBuf, io::Error)> {
    let of_root = |error| (root.to_owned(), error);
    let Some(tree) = Tree::open(root).map_err(of_root)? else {
        return Ok(());
    };
    let dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(of_root)?;
    let group = root.metadata().map_err(of_root)?.gid();
    let mut folders = BTreeSet::new();
    for path in paths {
        let file = tree
            .open_file(path)
            .map_err(|error| (path.clone(), error))?;
        if let Some(file) = file {
            give(&file, group, READ_AND_WRITE).map_err(|error| (path.clone(), error))?;
        }
        let above = path.ancestors().skip(1);
        folders.extend(above.filter(|folder| !folder.as_os_str().is_empty()));
    }
    for folder in folders {
        let opened = match dir.open(folder) {
            Ok(opened) => opened.into_std(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err((folder.to_owned(), error)),
        };
        give(&opened, group, ENTER_AND_CHANGE).map_err(|error| (folder.to_owned(), error))?;
    }
    Ok(())
}

fn give(file: &File, group: u32, rights: u32) -> io::Result<()> {
    let metadata = file.metadata()?;
    if metadata.gid() != group {
        fchown(file, None, Some(Gid::from_raw(group)))?;
    }
    let mode = metadata.mode() & 0o7777;
    if mode | rights != mode {
        file.set_permissions(PermissionsExt::from_mode(mode | rights))?;
    }
    Ok(())
}
