//! A directory tree read through a handle, so that nothing outside of it is ever opened.
//!
//! Programs of the world may be running while the tree is read. Paths are listed by name, but every
//! file is opened below the handle of the root and without waiting, so a file that turns into a link
//! or a FIFO between listing and opening is not followed and does not block.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

/// Directories of this prefix at the top of a tree hold an archive that is just being unpacked;
/// they are no part of the world.
pub(crate) const STAGING_PREFIX: &str = ".archipelago-unpack-";

/// A directory and everything below it.
#[derive(Debug)]
pub(crate) struct Tree {
    path: PathBuf,
    canonical: PathBuf,
    dir: Dir,
}

/// In which order the entries of a directory are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By the bytes of their names.
    Names,
    /// As the disk has them.
    Disk,
}

/// Something in a [`Tree`].
#[derive(Debug)]
pub(crate) struct Found {
    /// Relative to the tree.
    pub(crate) path: PathBuf,
    /// Of the entry itself, a link not followed.
    pub(crate) metadata: Metadata,
}

impl Tree {
    /// `None` where there is no directory.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let canonical = match path.canonicalize() {
            Ok(canonical) => canonical,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(Self {
            dir: Dir::open_ambient_dir(&canonical, ambient_authority())?,
            path: path.to_owned(),
            canonical,
        }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in the tree, parents before children, the names of a directory in byte order.
    /// What vanishes while walking is left out.
    pub(crate) fn walk(&self) -> impl Iterator<Item = io::Result<Found>> + use<'_> {
        self.walk_in(Order::Names)
    }

    /// Like [`walk`](Self::walk), in an order of choice.
    pub(crate) fn walk_in(
        &self,
        order: Order,
    ) -> impl Iterator<Item = io::Result<Found>> + use<'_> {
        self.entries(order, &[])
    }

    /// Like [`walk`](Self::walk), but for the paths `excluded` and what is below them.
    pub(crate) fn walk_except<'t>(
        &'t self,
        excluded: &'t [PathBuf],
    ) -> impl Iterator<Item = io::Result<Found>> + use<'t> {
        self.entries(Order::Names, excluded)
    }

    fn entries<'t>(
        &'t self,
        order: Order,
        excluded: &'t [PathBuf],
    ) -> impl Iterator<Item = io::Result<Found>> + use<'t> {
        let mut walk = walkdir::WalkDir::new(&self.canonical)
            .min_depth(1)
            .follow_links(false);
        if order == Order::Names {
            walk = walk.sort_by_file_name();
        }
        walk.into_iter()
            .filter_entry(move |entry| {
                let staging = entry.depth() == 1
                    && entry
                        .file_name()
                        .to_string_lossy()
                        .starts_with(STAGING_PREFIX);
                let is_excluded = || {
                    let path = entry.path().strip_prefix(&self.canonical);
                    path.is_ok_and(|path| excluded.iter().any(|excluded| excluded == path))
                };
                !staging && !is_excluded()
            })
            .filter_map(|entry| {
                let found = entry.and_then(|entry| {
                    let metadata = entry.metadata()?;
                    Ok((entry.into_path(), metadata))
                });
                match found {
                    Ok((path, metadata)) => Some(Ok(Found {
                        path: path
                            .strip_prefix(&self.canonical)
                            .unwrap_or(&path)
                            .to_owned(),
                        metadata,
                    })),
                    Err(error) => {
                        let error = io::Error::from(error);
                        (error.kind() != io::ErrorKind::NotFound).then_some(Err(error))
                    }
                }
            })
    }

    /// Opens a regular file; `None` where there is none any more, or something else now.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<Option<std::fs::File>> {
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let file = match self.dir.open_with(path, &options) {
            Ok(file) => file.into_std(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // A link, a socket, a device without a driver: what was listed as a file is none now.
            Err(error) if self.is_file(path) => return Err(error),
            Err(_) => return Ok(None),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    fn is_file(&self, path: &Path) -> bool {
        self.dir
            .symlink_metadata(path)
            .is_ok_and(|metadata| metadata.is_file())
    }

    /// The text of the link at `path`.
    pub(crate) fn link_target(&self, path: &Path) -> io::Result<PathBuf> {
        self.dir.read_link_contents(path)
    }

    /// The real path of the link at `path`, wherever it leads.
    pub(crate) fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.canonical.join(path).canonicalize()
    }

    /// The part of `real` below this tree.
    pub(crate) fn within<'p>(&self, real: &'p Path) -> Option<&'p Path> {
        real.strip_prefix(&self.canonical).ok()
    }
}
