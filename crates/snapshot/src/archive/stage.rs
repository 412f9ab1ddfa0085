//! Unpacks a compressed tar into an empty directory of its own.

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use tar::{Entry, EntryType};

use super::ahead::Ahead;
use super::header::{modified, safe_mode};
use super::place::{NEW, OLD};
use super::stream::{self, Counters, Source, Unpacked, stream_error};
use super::unpack::{Refusal, UnpackError, UnpackReport, admit};
use crate::limits::{Limits, Meter};
use crate::name::{self, BadName};
use crate::resolve::{Resolved, resolve};

/// Unpacks `input` into `room/new`.
pub(super) fn unpack(
    input: impl Read + Send,
    room: &Path,
    limits: &Limits,
) -> Result<UnpackReport, UnpackError> {
    let new = room.join(NEW);
    for path in [&new, &room.join(OLD)] {
        std::fs::create_dir(path)
            .map_err(|source| UnpackError::disk("create the directory", path, source))?;
    }
    let dir = Dir::open_ambient_dir(&new, ambient_authority())
        .map_err(|source| UnpackError::disk("open the directory", &new, source))?;

    let counters = Counters::default();
    let input = Source {
        input,
        arrived: Arc::clone(&counters.arrived),
    };
    let input = BufReader::with_capacity(128 * 1024, input);
    let decoder = stream::decoder(input, &counters, limits)?;
    let stage = Stage {
        dir,
        path: new,
        meter: Meter::new(limits),
        counters: counters.clone(),
        report: UnpackReport::default(),
        links: Vec::new(),
        parent: None,
        buffer: vec![0; 128 * 1024],
    };
    thread::scope(|scope| {
        let input = Ahead::start(scope, decoder, &counters)
            .map_err(|source| UnpackError::disk("start a thread for", room, source))?;
        stage.receive(Unpacked {
            input,
            counters,
            limits,
        })
    })
}

struct Stage<'l> {
    dir: Dir,
    path: PathBuf,
    meter: Meter<'l>,
    counters: Counters,
    report: UnpackReport,
    /// Symbolic links, to be checked when everything is there.
    links: Vec<PathBuf>,
    /// The directory of the last member, open.
    parent: Option<(PathBuf, Dir)>,
    /// For the content of one file after the other.
    buffer: Vec<u8>,
}

impl Stage<'_> {
    /// Takes all members, to the end of the stream.
    fn receive(mut self, input: Unpacked<'_, impl Read>) -> Result<UnpackReport, UnpackError> {
        let (counters, limits) = (self.counters.clone(), input.limits);
        let mut archive = tar::Archive::new(input);
        let mut last = String::new();
        counters.allow_headers(limits);
        for entry in archive
            .entries()
            .map_err(|error| stream_error(&error, &counters, &last))?
        {
            let mut entry = entry.map_err(|error| stream_error(&error, &counters, &last))?;
            counters.header_room.set(u64::MAX);
            last = name::display(&entry.path_bytes());
            self.member(&mut entry)?;
            counters.allow_headers(limits);
        }
        // The checksum of gzip stands at the end.
        counters.header_room.set(u64::MAX);
        io::copy(&mut archive.into_inner(), &mut io::sink())
            .map_err(|error| stream_error(&error, &counters, &last))?;
        self.check_links()?;
        Ok(self.report)
    }

    fn member(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), UnpackError> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader) {
            return Ok(());
        }
        let raw = entry.path_bytes().into_owned();
        let shown = name::display(&raw);
        let refuse = |refusal| UnpackError::Refused {
            member: shown.clone(),
            refusal,
        };
        let path = admit(&mut self.meter, &raw, entry.size())?;
        // Before POSIX, a directory was a file whose name ends with a slash.
        let old_directory = kind == EntryType::Regular && raw.ends_with(b"/");
        self.report.members += 1;
        if kind == EntryType::Directory || old_directory {
            return self.directory(&path, &shown);
        }
        if path.as_os_str().is_empty() {
            return Err(refuse(Refusal::EmptyName));
        }
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.file(entry, &path, &shown)
            }
            EntryType::Symlink => {
                let target = link_target(entry, &shown)?;
                self.symlink(&path, &target, &shown)
            }
            EntryType::Link => {
                let target = link_target(entry, &shown)?;
                self.hard_link(&path, &target, &shown)
            }
            other => Err(refuse(Refusal::SpecialFile(char::from(other.as_byte())))),
        }
    }

    fn directory(&mut self, path: &Path, shown: &str) -> Result<(), UnpackError> {
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        match self.dir.metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Ok(()),
            Ok(_) => {
                return Err(UnpackError::Refused {
                    member: shown.to_owned(),
                    refusal: Refusal::Conflict {
                        new: "directory",
                        existing: "file",
                    },
                });
            }
            Err(_) => {}
        }
        self.dir
            .create_dir_all(path)
            .map_err(|error| self.path_error(error, path, shown))
    }

    /// The directory in which `path` lies, made if need be, and the last component of `path`.
    fn parent<'p>(&mut self, path: &'p Path, shown: &str) -> Result<(&Dir, &'p Path), UnpackError> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().map_or(path, Path::new);
        // A directory is never replaced by something else, so the last handle stays right.
        if !matches!(&self.parent, Some((known, _)) if known == parent) {
            let dir = if parent.as_os_str().is_empty() {
                self.dir.try_clone()
            } else {
                match self.dir.open_dir(parent) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => self
                        .dir
                        .create_dir_all(parent)
                        .and_then(|()| self.dir.open_dir(parent)),
                    opened => opened,
                }
            };
            let dir = dir.map_err(|error| self.path_error(error, path, shown))?;
            self.parent = Some((parent.to_owned(), dir));
        }
        match &self.parent {
            Some((_, dir)) => Ok((dir, name)),
            None => Err(UnpackError::Refused {
                member: shown.to_owned(),
                refusal: Refusal::Path,
            }),
        }
    }

    fn file(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        path: &Path,
        shown: &str,
    ) -> Result<(), UnpackError> {
        let disk = |source| UnpackError::disk("write", path, source);
        let mode = entry.header().mode().map_err(|error| damaged(&error))?;
        let modified = modified(entry).map_err(|error| damaged(&error))?;
        let (parent, name) = self.parent(path, shown)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // Names are seldom there twice: the file is made first, and room for it only when it has to be.
        let made = match parent.open_with(name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                make_room(parent, name, "file", shown)?;
                parent.open_with(name, &options)
            }
            made => made,
        };
        let mut file = made.map_err(disk)?.into_std();
        self.copy(entry, &mut file, path, shown)?;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(safe_mode(
            mode,
        )))
        .map_err(disk)?;
        file.set_modified(modified).map_err(disk)
    }

    fn copy(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        file: &mut std::fs::File,
        path: &Path,
        shown: &str,
    ) -> Result<(), UnpackError> {
        use std::io::Write as _;
        loop {
            let count = match entry.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(stream_error(&error, &self.counters, shown)),
            };
            self.meter
                .bytes(count as u64, self.counters.packed.get())
                .map_err(|limit| UnpackError::Limit {
                    member: shown.to_owned(),
                    limit,
                })?;
            self.report.bytes += count as u64;
            file.write_all(&self.buffer[..count])
                .map_err(|source| UnpackError::disk("write", path, source))?;
        }
    }

    fn symlink(&mut self, path: &Path, target: &Path, shown: &str) -> Result<(), UnpackError> {
        let (parent, name) = self.parent(path, shown)?;
        make_room(parent, name, "link", shown)?;
        parent
            .symlink_contents(target, name)
            .map_err(|source| UnpackError::disk("make the link", path, source))?;
        self.links.push(path.to_owned());
        Ok(())
    }

    fn hard_link(&mut self, path: &Path, target: &Path, shown: &str) -> Result<(), UnpackError> {
        let refuse = |refusal| UnpackError::Refused {
            member: shown.to_owned(),
            refusal,
        };
        let wrong = || refuse(Refusal::HardLinkTarget(target.display().to_string()));
        let target_path = match name::relative_path(name::bytes(target)) {
            Ok(target_path) => target_path,
            Err(BadName::Parent) => {
                return Err(refuse(Refusal::LinkOutside(target.display().to_string())));
            }
            Err(_) => return Err(wrong()),
        };
        let metadata = self
            .dir
            .symlink_metadata(&target_path)
            .map_err(|_| wrong())?;
        if metadata.is_dir() {
            return Err(wrong());
        }
        if target_path == path {
            return Ok(());
        }
        if metadata.is_symlink() {
            self.links.push(path.to_owned());
        }
        let whole = self
            .dir
            .try_clone()
            .map_err(|source| UnpackError::disk("open the directory of", path, source))?;
        let (parent, name) = self.parent(path, shown)?;
        make_room(parent, name, "link", shown)?;
        whole
            .hard_link(&target_path, parent, name)
            .map_err(|source| UnpackError::disk("make the hard link", path, source))
    }

    /// No link may lead outside, now that everything it could lead through is there.
    fn check_links(&self) -> Result<(), UnpackError> {
        let link_at = |path: &Path| match self.dir.symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => self.dir.read_link_contents(path).map(Some),
            Ok(_) => Ok(None),
            Err(_) => Ok(None),
        };
        for link in &self.links {
            let base = link.parent().unwrap_or(Path::new(""));
            let name = Path::new(link.file_name().unwrap_or_default());
            let disk = |source| UnpackError::disk("read the link", link, source);
            // First where the link itself lies, which may be behind another link.
            let base = match resolve(Path::new(""), base, link_at).map_err(disk)? {
                Resolved::Inside(base) => base,
                Resolved::Outside | Resolved::Loop => continue,
            };
            if resolve(&base, name, link_at).map_err(disk)? == Resolved::Outside {
                let target = self.dir.read_link_contents(base.join(name)).map_err(disk)?;
                return Err(UnpackError::Refused {
                    member: link.display().to_string(),
                    refusal: Refusal::LinkOutside(target.display().to_string()),
                });
            }
        }
        Ok(())
    }

    /// Why a path below the staging directory cannot be made or opened.
    fn path_error(&self, error: io::Error, path: &Path, shown: &str) -> UnpackError {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::OutOfMemory => {
                UnpackError::disk("create", &self.path.join(path), error)
            }
            _ => UnpackError::Refused {
                member: shown.to_owned(),
                refusal: Refusal::Path,
            },
        }
    }
}

impl From<BadName> for Refusal {
    fn from(bad: BadName) -> Self {
        match bad {
            BadName::Absolute => Self::AbsoluteName,
            BadName::Parent => Self::ParentInName,
            BadName::Nul => Self::NulInName,
        }
    }
}

fn damaged(error: &io::Error) -> UnpackError {
    UnpackError::Damaged(error.to_string())
}

fn link_target(entry: &Entry<'_, impl Read>, shown: &str) -> Result<PathBuf, UnpackError> {
    let refuse = |refusal| UnpackError::Refused {
        member: shown.to_owned(),
        refusal,
    };
    let target = entry
        .link_name()
        .map_err(|error| damaged(&error))?
        .filter(|target| !target.as_os_str().is_empty())
        .ok_or_else(|| UnpackError::Damaged(format!("the link `{shown}` has no target")))?;
    if target.is_absolute() {
        return Err(refuse(Refusal::AbsoluteLink(target.display().to_string())));
    }
    Ok(target.into_owned())
}

/// Removes an earlier member of the same name; a directory stays and is a conflict.
fn make_room(parent: &Dir, name: &Path, new: &'static str, shown: &str) -> Result<(), UnpackError> {
    match parent.symlink_metadata(name) {
        Ok(metadata) if metadata.is_dir() => Err(UnpackError::Refused {
            member: shown.to_owned(),
            refusal: Refusal::Conflict {
                new,
                existing: "directory",
            },
        }),
        Ok(_) => parent
            .remove_file(name)
            .map_err(|source| UnpackError::disk("replace", name, source)),
        Err(_) => Ok(()),
    }
}
