//! Directories to archives.

use std::collections::HashSet;
use std::fs::Metadata;
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::format::ArchiveFormat;
use super::members::{AccountNames, Member, MemberKind, Owner};
use super::sink::{ArchiveSink, Sink};
use crate::database;
use crate::name;
use crate::tree::{Found, Order, Tree};

/// How an archive is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackOptions {
    /// The format. Default `tar.gz`, that of the reference.
    pub format: ArchiveFormat,
    /// 0 (stored) to 9 (smallest), for zstd up to 19. Default: 1, for zstd 3; an archive is mostly sent
    /// over a short wire, where time counts more than size.
    pub compression: Option<u32>,
    /// Whether directories without any content become members. Default `false`, the layout of the
    /// reference (`spec/environment.md` §14.1), in which only files are members.
    pub empty_directories: bool,
    /// Whether the same world gives the same bytes. Default `true`. Otherwise members come as the disk
    /// has them.
    pub reproducible: bool,
    /// Whether every file gets mode 0644, time 0 and owner 0, so that only paths and contents count.
    /// Default `false`.
    pub fixed_metadata: bool,
    /// How many threads compress a `tar.gz`. Default: as many as there are cores, at most 8. The bytes
    /// are the same for any number.
    pub threads: Option<NonZeroUsize>,
    /// How long to wait for the locks of a SQLite database that is in use. Default 5 s; without the
    /// locks it is captured as it is found, and reported.
    pub database_patience: Duration,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self {
            format: ArchiveFormat::TarGz,
            compression: None,
            empty_directories: false,
            reproducible: true,
            fixed_metadata: false,
            threads: None,
            database_patience: Duration::from_secs(5),
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
    /// SQLite databases whose locks somebody kept; they may be torn.
    pub unlocked: Vec<String>,
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

/// Packs directories, each under the name of its subsystem, as an archive.
///
/// The members are regular files named `<subsystem>/<path>`: files as they are, each further name of
/// a hard link and each symbolic link to a file inside one of the `roots` as a full copy. So no
/// reader loses anything by ignoring links. Links that lead elsewhere (their content is not part of
/// the world), links to directories, FIFOs, sockets and devices are left out and reported.
/// Mode, numeric owner and group, their names, and the time of modification are kept (in a zip: mode,
/// and the time to the second).
///
/// The same tree gives the same bytes: members come in the order of their names, directory by
/// directory, what is written about a member is taken from the tree alone, and the compressed stream has
/// no time in it. A root that does not exist has no members.
///
/// Files may change meanwhile: one that vanishes is left out; one that shrinks is filled up with
/// zeros to the size it had, and reported; one that grows is cut at that size. SQLite databases are
/// captured as they were at one moment, also while they are written: the database, then its journal or
/// write-ahead log; the shared memory of its users (`-shm`) is left out.
///
/// # Errors
/// When something cannot be read or `out` cannot be written; then `out` holds no complete archive.
pub fn pack(
    roots: &[(&str, &Path)],
    out: impl Write,
    options: &PackOptions,
) -> Result<PackReport, PackError> {
    let end_error = |source| PackError::Write {
        member: "end of archive".to_owned(),
        source,
    };
    let mut archive = ArchiveSink::new(out, options).map_err(end_error)?;
    let report = pack_into(roots, &mut archive, options)?;
    archive.finish().map_err(end_error)?;
    Ok(report)
}

/// Like [`pack`], as `tar.gz` whatever the options say.
///
/// # Errors
/// As [`pack`].
pub fn pack_tar_gz(
    roots: &[(&str, &Path)],
    out: impl Write,
    options: &PackOptions,
) -> Result<PackReport, PackError> {
    let options = PackOptions {
        format: ArchiveFormat::TarGz,
        ..options.clone()
    };
    pack(roots, out, &options)
}

/// Like [`pack`], with members that go to `sink` instead of into an archive.
///
/// # Errors
/// When something cannot be read or the sink fails.
pub fn pack_into(
    roots: &[(&str, &Path)],
    sink: &mut dyn Sink,
    options: &PackOptions,
) -> Result<PackReport, PackError> {
    let mut trees = Vec::new();
    for (subsystem, path) in roots {
        let tree = Tree::open(path).map_err(|source| PackError::Read {
            path: (*path).to_owned(),
            source,
        })?;
        trees.extend(tree.map(|tree| ((*subsystem).to_owned(), tree)));
    }
    let mut packer = Packer {
        sink,
        options,
        trees: &trees,
        users: AccountNames::read("/etc/passwd"),
        groups: AccountNames::read("/etc/group"),
        of_databases: HashSet::new(),
        report: PackReport::default(),
    };
    packer.pack()?;
    Ok(packer.report)
}

struct Packer<'p> {
    sink: &'p mut dyn Sink,
    options: &'p PackOptions,
    trees: &'p [(String, Tree)],
    users: AccountNames,
    groups: AccountNames,
    /// Names of files that belong to a database that was packed already.
    of_databases: HashSet<Vec<u8>>,
    report: PackReport,
}

impl Packer<'_> {
    fn pack(&mut self) -> Result<(), PackError> {
        let order = if self.options.reproducible {
            Order::Names
        } else {
            Order::Disk
        };
        for (subsystem, tree) in self.trees {
            let mut last_directory: Option<Found> = None;
            for found in tree.walk_in(order) {
                let found = found.map_err(|source| PackError::Read {
                    path: tree.path().to_owned(),
                    source,
                })?;
                // Parents come before children: a directory not followed by one of its own is empty.
                if let Some(directory) = last_directory.take()
                    && self.options.empty_directories
                    && !found.path.starts_with(&directory.path)
                {
                    self.directory(subsystem, &directory)?;
                }
                if found.metadata.is_dir() {
                    last_directory = Some(found);
                } else {
                    self.entry(subsystem, tree, &found)?;
                }
            }
            if let Some(directory) = last_directory
                && self.options.empty_directories
            {
                self.directory(subsystem, &directory)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, subsystem: &str, tree: &Tree, found: &Found) -> Result<(), PackError> {
        let name = member_name(subsystem, &found.path);
        if self.of_databases.contains(&name)
            || database::belongs_to_another(tree, &found.path).unwrap_or(false)
        {
            return Ok(());
        }
        let opened = if found.metadata.is_file() {
            Some((tree, found.path.clone()))
        } else if found.metadata.is_symlink() {
            linked_file(tree, self.trees, &found.path)
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
        let Some(mut file) = tree.open_file(&path).map_err(read_error)? else {
            return self.skip(&name, "vanished while packing");
        };
        if database::is_database(&file).map_err(read_error)? {
            return self.database(&name, tree, &path);
        }
        let metadata = file.metadata().map_err(read_error)?;
        self.file(&name, &metadata, metadata.len(), &mut file)
    }

    /// A SQLite database and what belongs to it, as they were at one moment.
    fn database(&mut self, name: &[u8], tree: &Tree, path: &Path) -> Result<(), PackError> {
        let captured = database::capture(tree, path, self.options.database_patience);
        let captured = captured.map_err(|source| PackError::Read {
            path: tree.path().join(path),
            source,
        })?;
        let Some(mut captured) = captured else {
            return self.skip(name, "vanished while packing");
        };
        if !captured.consistent {
            let member = name::display(name);
            tracing::warn!(
                member,
                "the locks of a database were not free; it may be torn"
            );
            self.report.unlocked.push(member);
        }
        self.of_databases.extend(database::companion_names(name));
        for file in &mut captured.files {
            let name = [name, file.suffix.as_bytes()].concat();
            self.file(&name, &file.metadata, file.length, &mut file.content)?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        name: &[u8],
        metadata: &Metadata,
        length: u64,
        content: &mut dyn Read,
    ) -> Result<(), PackError> {
        let member = if self.options.fixed_metadata {
            Member {
                name,
                kind: MemberKind::File(length),
                mode: 0o644,
                owner: Owner::default(),
                modified: SystemTime::UNIX_EPOCH,
            }
        } else {
            Member {
                name,
                kind: MemberKind::File(length),
                mode: metadata.mode(),
                owner: owner(&self.users, &self.groups, metadata),
                modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            }
        };
        let missing = self
            .sink
            .append(&member, content)
            .map_err(|source| write_error(name, source))?;
        if missing > 0 {
            tracing::warn!(member = %name::display(name), missing, "a file became shorter while it was packed");
            self.report.shortened.push(name::display(name));
        }
        self.report.members += 1;
        self.report.bytes += length;
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
        self.sink
            .append(&member, &mut io::empty())
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
