//! Files that come one by one, staged like an archive.

use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::header::safe_mode;
use super::place::{NEW, OLD};
use super::unpack::{Prepared, Refusal, Staged, UnpackError, UnpackReport, admit, prepare};
use crate::limits::{Limits, Meter};
use crate::name;

/// Takes files for `root/inner`, under the rules and limits of an archive. Nothing changes there before
/// the [`Staged`] is moved into place; dropping this leaves no trace.
#[derive(Debug)]
pub struct Staging<'l> {
    prepared: Prepared,
    dir: Dir,
    meter: Meter<'l>,
    report: UnpackReport,
}

impl<'l> Staging<'l> {
    /// An empty one.
    ///
    /// # Errors
    /// When `inner` leads out of the root, or the disk fails.
    pub fn new(root: &Path, inner: &Path, limits: &'l Limits) -> Result<Self, UnpackError> {
        let prepared = prepare(root, inner)?;
        let new = prepared.room.path().join(NEW);
        for path in [&new, &prepared.room.path().join(OLD)] {
            std::fs::create_dir(path)
                .map_err(|source| UnpackError::disk("create the directory", path, source))?;
        }
        let dir = Dir::open_ambient_dir(&new, ambient_authority())
            .map_err(|source| UnpackError::disk("open the directory", &new, source))?;
        Ok(Self {
            prepared,
            dir,
            meter: Meter::new(limits),
            report: UnpackReport::default(),
        })
    }

    /// Takes a file; the last of one name counts. Answers its bytes.
    ///
    /// # Errors
    /// When the name breaks a rule, a limit is crossed, `content` ends with an error, or the disk fails.
    pub fn file(
        &mut self,
        raw: &[u8],
        mode: u32,
        modified: Option<SystemTime>,
        content: &mut dyn Read,
    ) -> Result<u64, UnpackError> {
        let shown = name::display(raw);
        let refuse = |refusal| UnpackError::Refused {
            member: shown.clone(),
            refusal,
        };
        let limit = |limit| UnpackError::Limit {
            member: shown.clone(),
            limit,
        };
        let path = admit(&mut self.meter, raw, 0)?;
        if path.as_os_str().is_empty() {
            return Err(refuse(Refusal::EmptyName));
        }
        let disk = |source| UnpackError::disk("write", &path, source);
        if let Some(parent) = path.parent()
            && !parent.as_os_str().is_empty()
        {
            self.dir
                .create_dir_all(parent)
                .map_err(|error| occupied(error, &path, refuse(Refusal::Path)))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = self
            .dir
            .open_with(&path, &options)
            .map_err(|error| occupied(error, &path, refuse(Refusal::Path)))?
            .into_std();
        let mut buffer = vec![0; 64 * 1024];
        let mut total = 0;
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(UnpackError::Input(error)),
            };
            total += count as u64;
            // What arrives is not compressed, so its ratio is 1.
            self.meter.bytes(count as u64, u64::MAX).map_err(limit)?;
            io::Write::write_all(&mut file, &buffer[..count]).map_err(disk)?;
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(safe_mode(mode));
        file.set_permissions(mode).map_err(disk)?;
        if let Some(modified) = modified {
            file.set_modified(modified).map_err(disk)?;
        }
        self.report.members += 1;
        self.report.bytes += total;
        Ok(total)
    }

    /// All files are there.
    #[must_use]
    pub fn finish(self) -> Staged {
        self.prepared.staged(self.report)
    }
}

/// A file where a directory is needed, or the reverse, is a matter of the names; the rest of the disk.
fn occupied(error: io::Error, path: &Path, refused: UnpackError) -> UnpackError {
    match error.kind() {
        io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::AlreadyExists => refused,
        _ => UnpackError::disk("write", path, error),
    }
}
