//! The temporary folder of one environment.
//!
//! ```text
//! archipelago-<trial>-<random>/filesystem    what the environment serves as /filesystem
//!                              apps_data     … as /.apps_data
//!                              bin           links to the programs of the sandbox
//!                              tmp           temporary files of the environment
//!                              lock          locked as long as this process lives
//! ```
//!
//! A process that is killed leaves its folders behind, with a lock that nobody holds: the next
//! start removes those.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const PREFIX: &str = "archipelago-";
const LOCK: &str = "lock";

/// Characters of the trial's name in the folder's name; socket paths have to stay short.
const NAME_CHARACTERS: usize = 40;

/// A folder that is removed when this is dropped, unless it is to be kept.
#[derive(Debug)]
pub(crate) struct TrialFolder {
    path: PathBuf,
    filesystem: PathBuf,
    apps_data: PathBuf,
    keep: bool,
    finished: bool,
    /// Held for its lock alone.
    _lock: File,
}

impl TrialFolder {
    /// Makes the folder in `root` and removes what killed processes left there; blocks.
    pub(crate) fn create(
        root: &Path,
        trial: &str,
        programs: &[(String, PathBuf)],
        keep: bool,
    ) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        let prefix = format!("{PREFIX}{}-", plain_name(trial));
        let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(root)?;
        // Links in the way to the root would make paths differ from what servers report.
        let path = made.path().canonicalize()?;
        remove_abandoned(root, fs::metadata(&path)?.uid());
        for name in ["filesystem", "apps_data", "bin", "tmp"] {
            DirBuilder::new().mode(0o755).create(path.join(name))?;
        }
        for (name, executable) in programs {
            std::os::unix::fs::symlink(executable, path.join("bin").join(name))?;
        }
        let lock = lock_in(&path)?;
        // From here on our own destructor removes it.
        let _ = made.keep();
        Ok(Self {
            filesystem: path.join("filesystem"),
            apps_data: path.join("apps_data"),
            path,
            keep,
            finished: false,
            _lock: lock,
        })
    }

    pub(crate) fn filesystem(&self) -> &Path {
        &self.filesystem
    }

    pub(crate) fn apps_data(&self) -> &Path {
        &self.apps_data
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.path.join("bin")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Removes the folder, or says where it is kept; blocks.
    pub(crate) fn finish(mut self) -> io::Result<Option<PathBuf>> {
        self.remove_or_keep()
    }

    fn remove_or_keep(&mut self) -> io::Result<Option<PathBuf>> {
        self.finished = true;
        if self.keep {
            // Without its lock file it is no longer taken for an abandoned one.
            ignore_missing(fs::remove_file(self.path.join(LOCK)))?;
            return Ok(Some(self.path.clone()));
        }
        remove_tree(&self.path).map(|()| None)
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Err(error) = self.remove_or_keep() {
            tracing::warn!(%error, path = %self.path.display(), "a folder could not be removed");
        }
    }
}

/// Whether a name is that of a folder of this kind.
pub(crate) fn is_trial_folder(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(PREFIX)
}

/// A name that is safe as part of a file name, and of a container's.
pub(crate) fn plain_name(trial: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    trial.chars().map(plain).take(NAME_CHARACTERS).collect()
}

/// A lock file in `folder` that is locked from the moment at which it has its name.
fn lock_in(folder: &Path) -> io::Result<File> {
    let unnamed = folder.join("lock.new");
    let lock = File::create_new(&unnamed)?;
    lock.lock()?;
    fs::rename(unnamed, folder.join(LOCK))?;
    Ok(lock)
}

/// Removes the folders of this kind in `root` whose process is gone. Best effort.
fn remove_abandoned(root: &Path, user: u32) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = is_trial_folder(&entry.file_name())
            // Not following links: only a folder of our own user counts.
            && entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == user);
        if !ours {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else {
            continue;
        };
        if lock.try_lock().is_ok() {
            tracing::info!(path = %entry.path().display(), "removing an abandoned folder");
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Removes a folder, also where a world made parts of it read-only.
fn remove_tree(path: &Path) -> io::Result<()> {
    match ignore_missing(fs::remove_dir_all(path)) {
        Ok(()) => Ok(()),
        Err(_) => {
            make_writable(path);
            ignore_missing(fs::remove_dir_all(path))
        }
    }
}

/// Gives the owner all rights to every folder below `path`. Best effort.
fn make_writable(path: &Path) {
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let entries = fs::read_dir(root).unwrap().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_folder_goes_with_its_owner_and_takes_read_only_parts_along() {
        let root = tempfile::tempdir().unwrap();
        let folder = TrialFolder::create(root.path(), "a/b c", &[], false).unwrap();
        let locked = folder.filesystem().join("locked");
        fs::create_dir(&locked).unwrap();
        fs::write(locked.join("x"), "x").unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
        let name = names(root.path()).remove(0);
        assert!(name.starts_with("archipelago-a-b-c-"), "{name}");
        drop(folder);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn abandoned_folders_are_removed_and_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let alive = TrialFolder::create(root.path(), "alive", &[], false).unwrap();
        let kept = TrialFolder::create(root.path(), "kept", &[], true).unwrap();
        let kept = kept.finish().unwrap().unwrap();
        let abandoned = root.path().join("archipelago-abandoned-1");
        fs::create_dir_all(abandoned.join("filesystem")).unwrap();
        fs::write(abandoned.join(LOCK), "").unwrap();
        let foreign = root.path().join("archipelago-notes");
        fs::create_dir(&foreign).unwrap();

        let next = TrialFolder::create(root.path(), "next", &[], false).unwrap();
        assert!(!abandoned.exists());
        assert!(foreign.exists() && kept.exists());
        assert!(alive.filesystem().exists() && next.filesystem().exists());
    }

    #[test]
    fn programs_are_linked() {
        let root = tempfile::tempdir().unwrap();
        let programs = [("tool".to_owned(), PathBuf::from("/bin/sh"))];
        let folder = TrialFolder::create(root.path(), "t", &programs, false).unwrap();
        let target = fs::read_link(folder.bin().join("tool")).unwrap();
        assert_eq!(target, Path::new("/bin/sh"));
    }
}
