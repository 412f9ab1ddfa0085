//! Directories to `tar.gz`.

use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::{Compression, GzBuilder};
use tar::Builder;

use super::members::{self, AccountNames, Member, MemberKind, Owner};
use crate::name;
use crate::tree::{Found, Tree};

/// How an archive is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackOptions {
    /// 0 (stored) to 9 (smallest). Default 1: an archive is mostly sent over a short wire, where
    /// time counts more than size.
    pub compression: u32,
    /// Whether directories without any content become members. Default `false`, the layout of the
    /// reference (`spec/environment.md` §14.1), in which only files are members.
    pub empty_directories: bool,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            compression: 1,
            empty_directories: false,
        }
    }
}

/// What was packed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackReport {
    /// Members of the archive.
    pub members: u64,
    /// Bytes of all files, unpacked.
    pub bytes: u64,
    /// What is in the directories but not in the archive.
    pub skipped: Vec<Skipped>,
    /// Files that became shorter while they were read; the archive has zeros in place of their end.
    pub shortened: Vec<String>,
}

/// An entry that is not in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in the archive, had it become a member.
    pub name: String,
    /// Why.
    pub reason: &'static str,
}

/// Packing failed. What was written so far is no complete archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A directory or a file of the world could not be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The path on disk.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The archive could not be written.
    #[error("cannot write the archive at member `{member}`")]
    Write {
        /// The member being written.
        member: String,
        /// What the writer says.
        source: io::Error,
    },
}

/// Packs directories, each under the name of its subsystem, as `tar.gz`.
///
/// The members are regular files named `<subsystem>/<path>`: files as they are, each further name of
/// a hard link and each symbolic link to a file inside one of the `roots` as a full copy. So no
/// reader loses anything by ignoring links. Links that lead elsewhere (their content is not part of
/// the world), links to directories, FIFOs, sockets and devices are left out and reported.
/// Mode, numeric owner and group, their names, and the time of modification are kept.
///
/// The same tree gives the same bytes: members come in the order of their names, directory by
/// directory, and the compressed stream has no time in it. A root that does not exist has no members.
///
/// Files may change meanwhile: one that vanishes is left out; one that shrinks is filled up with
/// zeros to the size it had, and reported; one that grows is cut at that size.
///
/// # Errors
/// When something cannot be read or `out` cannot be written; then `out` holds no complete archive.
pub fn pack_tar_gz(
    roots: &[(&str, &Path)],
    out: impl Write,
    options: &PackOptions,
) -> Result<PackReport, PackError> {
    let gzip = GzBuilder::new().write(out, Compression::new(options.compression.min(9)));
    let mut packer = Packer {
        archive: Builder::new(gzip),
        trees: Vec::new(),
        users: AccountNames::read("/etc/passwd"),
        groups: AccountNames::read("/etc/group"),
        report: PackReport::default(),
    };
    for (subsystem, path) in roots {
        let tree = Tree::open(path).map_err(|source| PackError::Read {
            path: (*path).to_owned(),
            source,
        })?;
        packer
            .trees
            .extend(tree.map(|tree| ((*subsystem).to_owned(), tree)));
    }
    packer.pack(options)?;
    let Packer {
        archive, report, ..
    } = packer;
    archive
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .and_then(|mut out| out.flush())
        .map_err(|source| PackError::Write {
            member: "end of archive".to_owned(),
            source,
        })?;
    Ok(report)
}

struct Packer<W: Write> {
    archive: Builder<W>,
    trees: Vec<(String, Tree)>,
    users: AccountNames,
    groups: AccountNames,
    report: PackReport,
}

impl<W: Write> Packer<W> {
    fn pack(&mut self, options: &PackOptions) -> Result<(), PackError> {
        let trees = std::mem::take(&mut self.trees);
        for (subsystem, tree) in &trees {
            let mut last_directory: Option<Found> = None;
            for found in tree.walk() {
                let found = found.map_err(|source| PackError::Read {
                    path: tree.path().to_owned(),
                    source,
                })?;
                // Parents come before children: a directory not followed by one of its own is empty.
                if let Some(directory) = last_directory.take()
                    && options.empty_directories
                    && !found.path.starts_with(&directory.path)
                {
                    self.directory(subsystem, &directory)?;
                }
                if found.metadata.is_dir() {
                    last_directory = Some(found);
                } else {
                    self.entry(subsystem, tree, &trees, &found)?;
                }
            }
            if let Some(directory) = last_directory
                && options.empty_directories
            {
                self.directory(subsystem, &directory)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        subsystem: &str,
        tree: &Tree,
        trees: &[(String, Tree)],
        found: &Found,
    ) -> Result<(), PackError> {
        let name = member_name(subsystem, &found.path);
        let opened = if found.metadata.is_file() {
            Some((tree, found.path.clone()))
        } else if found.metadata.is_symlink() {
            linked_file(tree, trees, &found.path)
        } else {
            return self.skip(&name, "is neither a file nor a directory");
        };
        let Some((tree, path)) = opened else {
            return self.skip(&name, "is a link to something that is no file of the world");
        };
        let read_error = |source| PackError::Read {
            path: tree.path().join(&path),
            source,
        };
        let Some(file) = tree.open_file(&path).map_err(read_error)? else {
            return self.skip(&name, "vanished while packing");
        };
        let metadata = file.metadata().map_err(read_error)?;
        self.file(&name, &metadata, file)
    }

    fn file(
        &mut self,
        name: &[u8],
        metadata: &Metadata,
        file: std::fs::File,
    ) -> Result<(), PackError> {
        let member = Member {
            name,
            kind: MemberKind::File(metadata.len()),
            mode: metadata.mode(),
            owner: owner(&self.users, &self.groups, metadata),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        };
        let missing = members::append(&mut self.archive, &member, file)
            .map_err(|source| write_error(name, source))?;
        if missing > 0 {
            tracing::warn!(member = %name::display(name), missing, "a file became shorter while it was packed");
            self.report.shortened.push(name::display(name));
        }
        self.report.members += 1;
        self.report.bytes += metadata.len();
        Ok(())
    }

    fn directory(&mut self, subsystem: &str, found: &Found) -> Result<(), PackError> {
        let mut name = member_name(subsystem, &found.path);
        name.push(b'/');
        let member = Member {
            name: &name,
            kind: MemberKind::Directory,
            mode: found.metadata.mode(),
            owner: owner(&self.users, &self.groups, &found.metadata),
            modified: found.metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        };
        members::append(&mut self.archive, &member, io::empty())
            .map_err(|source| write_error(&name, source))?;
        self.report.members += 1;
        Ok(())
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "ends the branches of a fallible function"
    )]
    fn skip(&mut self, name: &[u8], reason: &'static str) -> Result<(), PackError> {
        let name = name::display(name);
        tracing::debug!(member = name, reason, "not part of the archive");
        self.report.skipped.push(Skipped { name, reason });
        Ok(())
    }
}

fn owner<'n>(users: &'n AccountNames, groups: &'n AccountNames, metadata: &Metadata) -> Owner<'n> {
    let (uid, gid) = (u64::from(metadata.uid()), u64::from(metadata.gid()));
    Owner {
        uid,
        gid,
        user: users.get(uid),
        group: groups.get(gid),
    }
}

/// The regular file a link leads to, when it lies in one of the trees.
fn linked_file<'t>(
    tree: &Tree,
    trees: &'t [(String, Tree)],
    link: &Path,
) -> Option<(&'t Tree, PathBuf)> {
    let real = tree.real_path(link).ok()?;
    let (home, path) = trees
        .iter()
        .find_map(|(_, home)| Some((home, home.within(&real)?.to_owned())))?;
    real.is_file().then_some((home, path))
}

fn member_name(subsystem: &str, path: &Path) -> Vec<u8> {
    [subsystem.as_bytes(), name::bytes(path)].join(&b'/')
}

fn write_error(name: &[u8], source: io::Error) -> PackError {
    PackError::Write {
        member: name::display(name),
        source,
    }
}
