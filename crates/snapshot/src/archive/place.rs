//! Moves an unpacked archive into place, and back again when that fails.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use super::unpack::{Refusal, Staged, UnpackError};

/// The folder of the staging room with what is to be placed.
pub(super) const NEW: &str = "new";
/// The folder of the staging room with what was replaced.
pub(super) const OLD: &str = "old";

/// One step that was done. Paths of the target are relative to the root.
enum Done {
    Created(PathBuf),
    Moved(PathBuf),
    /// What stood there is in the room now, under this number.
    SetAside(PathBuf, usize),
}

pub(super) fn place(staged: Staged) -> Result<(), UnpackError> {
    let Staged {
        room,
        root,
        root_dir,
        inner,
        ..
    } = staged;
    let open_room = |name| {
        let path = room.path().join(name);
        Dir::open_ambient_dir(&path, ambient_authority())
            .map_err(|source| UnpackError::disk("open the directory", &path, source))
    };
    let mut placement = Placement {
        new: open_room(NEW)?,
        old: open_room(OLD)?,
        root,
        root_dir,
        done: Vec::new(),
    };
    let placed = placement.run(&inner);
    if placed.is_err() && !placement.undo() {
        // What was replaced could not be put back: do not delete the only copy of it.
        tracing::error!(kept = %room.keep().display(), "the world could not be restored after a failed unpacking");
    }
    placed
}

struct Placement {
    new: Dir,
    old: Dir,
    root: PathBuf,
    root_dir: Dir,
    done: Vec<Done>,
}

impl Placement {
    fn run(&mut self, inner: &Path) -> Result<(), UnpackError> {
        self.create_target(inner)?;
        self.merge(Path::new(""), inner)
    }

    /// Makes the directories of the target that do not exist.
    fn create_target(&mut self, inner: &Path) -> Result<(), UnpackError> {
        let outside = || UnpackError::Target {
            root: self.root.clone(),
            inner: inner.to_owned(),
        };
        let mut path = PathBuf::new();
        for component in inner.components() {
            path.push(component);
            match self.root_dir.create_dir(&path) {
                Ok(()) => self.done.push(Done::Created(path.clone())),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => return Err(outside()),
            }
        }
        // What exists may be a link, and lead anywhere.
        match self.root_dir.open_dir(or_dot(inner)) {
            Ok(_) => Ok(()),
            Err(_) => Err(outside()),
        }
    }

    /// Moves what is in `from` (relative to the new tree) into the directory `to` of the root.
    fn merge(&mut self, from: &Path, to: &Path) -> Result<(), UnpackError> {
        let disk = |source| UnpackError::disk("place", to, source);
        let mut names = Vec::new();
        for entry in self.new.read_dir(or_dot(from)).map_err(disk)? {
            names.push(entry.map_err(disk)?.file_name());
        }
        names.sort();
        for name in names {
            let (source, target) = (from.join(&name), to.join(&name));
            let new = self.new.symlink_metadata(&source).map_err(disk)?;
            match self.root_dir.symlink_metadata(&target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.put(&source, &target)?;
                }
                Err(error) => return Err(UnpackError::disk("look at", &target, error)),
                Ok(existing) if new.is_dir() => {
                    if !existing.is_dir() && !self.leads_to_directory(&target) {
                        return Err(conflict(&source, &new, &existing));
                    }
                    self.merge(&source, &target)?;
                }
                Ok(existing) if existing.is_dir() => {
                    return Err(conflict(&source, &new, &existing));
                }
                Ok(_) => {
                    self.set_aside(&target)?;
                    self.put(&source, &target)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the link at `path` leads to a directory below the root.
    fn leads_to_directory(&self, path: &Path) -> bool {
        self.root_dir
            .metadata(path)
            .is_ok_and(|metadata| metadata.is_dir())
    }

    fn put(&mut self, source: &Path, target: &Path) -> Result<(), UnpackError> {
        self.new
            .rename(source, &self.root_dir, target)
            .map_err(|error| UnpackError::disk("place", target, error))?;
        self.done.push(Done::Moved(target.to_owned()));
        Ok(())
    }

    fn set_aside(&mut self, target: &Path) -> Result<(), UnpackError> {
        let number = self.done.len();
        self.root_dir
            .rename(target, &self.old, number.to_string())
            .map_err(|error| UnpackError::disk("replace", target, error))?;
        self.done.push(Done::SetAside(target.to_owned(), number));
        Ok(())
    }

    /// Takes every step back, the last first. Answers whether all of it worked.
    fn undo(&mut self) -> bool {
        let mut complete = true;
        while let Some(done) = self.done.pop() {
            let number = self.done.len();
            let undone = match &done {
                Done::Created(path) => self.root_dir.remove_dir(path),
                Done::Moved(path) => {
                    self.root_dir
                        .rename(path, &self.old, format!("undone-{number}"))
                }
                Done::SetAside(path, number) => {
                    self.old.rename(number.to_string(), &self.root_dir, path)
                }
            };
            if let Err(error) = undone {
                tracing::error!(%error, "a step of a failed unpacking could not be taken back");
                complete = false;
            }
        }
        complete
    }
}

pub(super) fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

fn conflict(source: &Path, new: &Metadata, existing: &Metadata) -> UnpackError {
    const fn kind(is_dir: bool, is_link: bool) -> &'static str {
        match (is_dir, is_link) {
            (true, _) => "directory",
            (_, true) => "link",
            _ => "file",
        }
    }
    UnpackError::Refused {
        member: source.display().to_string(),
        refusal: Refusal::Conflict {
            new: kind(new.is_dir(), new.is_symlink()),
            existing: kind(existing.is_dir(), existing.is_symlink()),
        },
    }
}
