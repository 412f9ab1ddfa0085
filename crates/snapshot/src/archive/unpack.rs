//! A compressed tar to a directory: all of it or nothing, and never outside of it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;

use super::{place, stage};
use crate::limits::{LimitExceeded, Limits, Meter};
use crate::name;
use crate::tree::STAGING_PREFIX;

/// What was unpacked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnpackReport {
    /// Members, directories and links included.
    pub members: u64,
    /// Bytes of all regular files.
    pub bytes: u64,
}

/// What is wrong with a member of an archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The name begins with a slash.
    #[error("has an absolute path as its name")]
    AbsoluteName,
    /// The name has a component `..`.
    #[error("has `..` in its name")]
    ParentInName,
    /// The name has a NUL byte.
    #[error("has a NUL byte in its name")]
    NulInName,
    /// The member is the target directory itself but no directory.
    #[error("has an empty name")]
    EmptyName,
    /// A link to an absolute path.
    #[error("is a link to an absolute path: `{0}`")]
    AbsoluteLink(String),
    /// A link that leads out of the target directory.
    #[error("is a link that leads outside of the destination: `{0}`")]
    LinkOutside(String),
    /// A hard link to something that is no earlier file of the archive.
    #[error("is a hard link to `{0}`, which is no file earlier in the archive")]
    HardLinkTarget(String),
    /// A path that goes through a link to outside of the target directory, or to nowhere.
    #[error(
        "has a path that leads through a link to outside of the destination, or through no directory"
    )]
    Path,
    /// A device, a FIFO, or a kind of member that nobody knows.
    #[error("is a special file (tar type `{0}`)")]
    SpecialFile(char),
    /// A file where a directory is, or the reverse.
    #[error("is a {new}, but there is a {existing} at its place already")]
    Conflict {
        /// The kind of the member.
        new: &'static str,
        /// The kind of what is there.
        existing: &'static str,
    },
}

/// Unpacking failed. The target directory is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The stream is empty.
    #[error("empty file")]
    Empty,
    /// The stream begins neither like gzip nor like zstd.
    #[error("not a gzip file")]
    NotGzip,
    /// The compressed stream or the tar inside ends too early.
    #[error("the archive ended before its end-of-stream marker was reached")]
    Truncated,
    /// The compressed stream or the tar inside is damaged.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// A member breaks a rule.
    #[error("`{member}` {refusal}")]
    Refused {
        /// The name of the member.
        member: String,
        /// The rule.
        refusal: Refusal,
    },
    /// A limit was crossed.
    #[error("`{member}`: {limit}")]
    Limit {
        /// The member at which it was crossed.
        member: String,
        /// Which, and by what value.
        limit: LimitExceeded,
    },
    /// The place to unpack to is not inside the root.
    #[error("`{}` leads through a link to outside of `{}`, or is no directory", inner.display(), root.display())]
    Target {
        /// The root.
        root: PathBuf,
        /// The place, relative to it.
        inner: PathBuf,
    },
    /// The archive could not be received.
    #[error("cannot read the archive: {0}")]
    Input(#[source] io::Error),
    /// The disk failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Disk {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Whose fault a failure to unpack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The archive is damaged or breaks a rule.
    Archive,
    /// The archive asks for more than the limits allow.
    Limit,
    /// What is in the target already does not fit, or the target is not inside its root.
    Target,
    /// The archive did not arrive.
    Input,
    /// The disk.
    Disk,
}

impl UnpackError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Refused {
                refusal: Refusal::Conflict { .. },
                ..
            }
            | Self::Target { .. } => Fault::Target,
            Self::Empty
            | Self::NotGzip
            | Self::Truncated
            | Self::Damaged(_)
            | Self::Refused { .. } => Fault::Archive,
            Self::Limit { .. } => Fault::Limit,
            Self::Input(_) => Fault::Input,
            Self::Disk { .. } => Fault::Disk,
        }
    }

    pub(super) fn disk(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Disk {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// Unpacks `input`, a `tar.gz` or `tar.zst`, into the directory `target`, which is made when it does not exist.
///
/// The archive is unpacked beside the target first. Only when all of it is there and sound, it is
/// moved into place: what exists stays, files of the same path are replaced, an existing link to a
/// directory inside the target is entered where the archive has a directory. When anything fails,
/// also while moving, the target is as before.
///
/// Rules (`spec/environment.md` §12.4, `spec/pitfalls.md` A12): names are relative and without `..`;
/// members are regular files, directories, symbolic and hard links; links are relative and lead
/// nowhere outside of `target` at any step; hard links name an earlier file of the archive. Owner and
/// group, the modes of directories and extended attributes are not restored. The mode of a file
/// loses set-id bits, sticky bit and write permission of group and others; its owner can always
/// read and write; without execute permission for the owner nobody has it. The time of
/// modification is restored.
///
/// Unlike the reference a name that begins with a slash is refused, and an existing file is
/// replaced instead of written over (other names of it keep the old content).
///
/// # Errors
/// See [`UnpackError`]; the target is unchanged then.
pub fn unpack_tar_gz(
    input: impl Read + Send,
    target: &Path,
    limits: &Limits,
) -> Result<UnpackReport, UnpackError> {
    stage_tar_gz(input, target, Path::new(""), limits)?.commit()
}

/// The first half of [`unpack_tar_gz`], for `root/inner`: receives and checks the whole archive but
/// changes nothing in the root yet.
///
/// `root` is trusted; `inner`, a relative path, is not: links in it may not lead out of the root,
/// neither now nor when the archive is moved into place.
///
/// # Errors
/// See [`UnpackError`].
pub fn stage_tar_gz(
    input: impl Read + Send,
    root: &Path,
    inner: &Path,
    limits: &Limits,
) -> Result<Staged, UnpackError> {
    let prepared = prepare(root, inner)?;
    let report = stage::unpack(input, prepared.room.path(), limits)?;
    Ok(prepared.staged(report))
}

/// A staging room for `root/inner`.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) room: TempDir,
    root: PathBuf,
    root_dir: Dir,
    inner: PathBuf,
    lock: std::fs::File,
}

impl Prepared {
    pub(super) fn staged(self, report: UnpackReport) -> Staged {
        Staged {
            room: self.room,
            root: self.root,
            root_dir: self.root_dir,
            inner: self.inner,
            report,
            _lock: self.lock,
        }
    }
}

/// Checks the target and makes a staging room for it.
pub(super) fn prepare(root: &Path, inner: &Path) -> Result<Prepared, UnpackError> {
    std::fs::create_dir_all(root)
        .map_err(|source| UnpackError::disk("create the directory", root, source))?;
    let root_dir = Dir::open_ambient_dir(root, ambient_authority())
        .map_err(|source| UnpackError::disk("open the directory", root, source))?;
    match root_dir.open_dir(place::or_dot(inner)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => {
            return Err(UnpackError::Target {
                root: root.to_owned(),
                inner: inner.to_owned(),
            });
        }
    }
    let room = staging_room(root)
        .map_err(|source| UnpackError::disk("make a temporary directory for", root, source))?;
    // Tells `sweep` of other processes that this one is in use.
    let lock = std::fs::File::open(room.path())
        .and_then(|lock| lock.lock_shared().map(|()| lock))
        .map_err(|source| UnpackError::disk("lock", room.path(), source))?;
    Ok(Prepared {
        room,
        root: root.to_owned(),
        root_dir,
        inner: inner.to_owned(),
        lock,
    })
}

/// Where one more member goes, whose header announces `size` bytes, if its name and the limits allow it.
pub(super) fn admit(meter: &mut Meter<'_>, raw: &[u8], size: u64) -> Result<PathBuf, UnpackError> {
    let limit = |limit| UnpackError::Limit {
        member: name::display(raw),
        limit,
    };
    meter.member(size).map_err(limit)?;
    meter.path(raw).map_err(limit)?;
    name::relative_path(raw).map_err(|bad| UnpackError::Refused {
        member: name::display(raw),
        refusal: bad.into(),
    })
}

/// A directory on the disk of `root`: beside it, or, where that is another disk, in it.
fn staging_room(root: &Path) -> io::Result<TempDir> {
    use std::os::unix::fs::MetadataExt as _;
    let mut builder = tempfile::Builder::new();
    builder.prefix(STAGING_PREFIX);
    let root = root.canonicalize()?;
    if let Some(parent) = root.parent()
        && parent.metadata()?.dev() == root.metadata()?.dev()
        && let Ok(room) = builder.tempdir_in(parent)
    {
        return Ok(room);
    }
    builder.tempdir_in(root)
}

/// An archive that was received and checked, and waits to be moved into place. Dropping it leaves
/// no trace.
#[derive(Debug)]
pub struct Staged {
    pub(super) room: TempDir,
    pub(super) root: PathBuf,
    pub(super) root_dir: Dir,
    pub(super) inner: PathBuf,
    report: UnpackReport,
    _lock: std::fs::File,
}

impl Staged {
    /// What is in it.
    #[must_use]
    pub const fn report(&self) -> UnpackReport {
        self.report
    }

    /// Moves everything into place.
    ///
    /// # Errors
    /// When something in the target does not fit or the disk fails; the target is as before then.
    pub fn commit(self) -> Result<UnpackReport, UnpackError> {
        let report = self.report;
        place::place(self)?;
        Ok(report)
    }
}
