//! SQLite databases that may be in use, captured as they were at one moment.
//!
//! A database is more than its file: what was committed last may lie in its write-ahead log, and both
//! change while they are copied. SQLite guards them with advisory locks on fixed bytes (its "Database
//! File Format" and "WAL-mode File Format" say which). Held as a reader holds them, they stop what
//! would tear a copy and let writers go on:
//!
//! * a shared lock on the database file: no commit in rollback mode, no last connection that cleans up;
//! * in WAL mode shared locks on the bytes of the checkpointer and of one reader in the `-shm` file:
//!   nothing moves from the log to the database, and the log is not begun anew. It may grow; of a log
//!   that was cut anywhere SQLite uses the complete transactions.
//!
//! The copies lie in files without names, so the locks are held only as long as copying takes, however
//! slow the receiver is. No part of SQLite is needed for this, and the files stay as they are: the log
//! is captured beside the database, not merged into it.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::tree::Tree;

/// How every SQLite database begins.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What follows the name of a database in the names of the files that belong to it.
const COMPANIONS: [&str; 2] = ["-journal", "-wal"];

/// The index over the log: shared memory in the form of a file, rebuilt by whoever opens the database.
pub(crate) const SHARED_MEMORY: &str = "-shm";

/// How long to wait before a lock that somebody has is tried again.
const RETRY: Duration = Duration::from_micros(300);

// Bytes of the database file.
const PENDING: i64 = 0x4000_0000;
const SHARED: (i64, i64) = (PENDING + 2, 510);
// Bytes of the shared memory file: locks begin at 120, readers at the fourth, the second reader's mark
// is the first that stands for the log.
const CHECKPOINT: i64 = 121;
const READER: i64 = 124;

/// A file as it was when its database was captured.
#[derive(Debug)]
pub(crate) struct Captured {
    /// What follows the name of the database; empty for itself.
    pub(crate) suffix: &'static str,
    pub(crate) metadata: Metadata,
    pub(crate) length: u64,
    pub(crate) content: File,
}

/// A database and what belongs to it.
#[derive(Debug)]
pub(crate) struct Capture {
    /// The database first.
    pub(crate) files: Vec<Captured>,
    /// Whether the locks were got; without them the copy may be torn.
    pub(crate) consistent: bool,
}

/// Whether a file is a database.
pub(crate) fn is_database(file: &File) -> io::Result<bool> {
    let mut head = [0; MAGIC.len()];
    Ok(file.read_at(&mut head, 0)? == head.len() && head == *MAGIC)
}

/// The names of everything that belongs to a database of this name, itself not counted.
pub(crate) fn companion_names(name: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    COMPANIONS
        .into_iter()
        .chain([SHARED_MEMORY])
        .map(move |suffix| [name, suffix.as_bytes()].concat())
}

/// Whether the file at `path` belongs to a database beside it, and is captured with that.
pub(crate) fn belongs_to_another(tree: &Tree, path: &Path) -> io::Result<bool> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = crate::name::bytes(path);
    let owner = COMPANIONS
        .into_iter()
        .chain([SHARED_MEMORY])
        .find_map(|suffix| name.strip_suffix(suffix.as_bytes()));
    let Some(owner) = owner else {
        return Ok(false);
    };
    let owner = Path::new(std::ffi::OsStr::from_bytes(owner));
    match tree.open_file(owner)? {
        Some(file) => is_database(&file),
        None => Ok(false),
    }
}

/// Copies the database at `path`, with locks where they are free within `patience`. `None` where
/// there is no file any more.
pub(crate) fn capture(tree: &Tree, path: &Path, patience: Duration) -> io::Result<Option<Capture>> {
    let deadline = Instant::now() + patience;
    loop {
        let Some(main) = tree.open_file(path)? else {
            return Ok(None);
        };
        let locked = lock_database(&main, deadline)?;
        let write_ahead = is_write_ahead(&main)?;
        let index_path = with_suffix(path, SHARED_MEMORY);
        let index = if locked && write_ahead {
            tree.open_file(&index_path)?
        } else {
            None
        };
        let index_locked = match &index {
            Some(index) => lock_index(index, deadline)?,
            None => true,
        };
        let mut files = vec![copy("", &main)?];
        for suffix in COMPANIONS {
            if let Some(file) = tree.open_file(&with_suffix(path, suffix))? {
                files.push(copy(suffix, &file)?);
            }
        }
        // Nobody had the database open, and somebody has now: it was free to do anything.
        let opened_meanwhile =
            locked && write_ahead && index.is_none() && tree.open_file(&index_path)?.is_some();
        if !opened_meanwhile || Instant::now() >= deadline {
            return Ok(Some(Capture {
                files,
                consistent: locked && index_locked && !opened_meanwhile,
            }));
        }
    }
}

/// Whether the header says that the database has a write-ahead log.
fn is_write_ahead(main: &File) -> io::Result<bool> {
    let mut version = [0];
    main.read_at(&mut version, 18)?;
    Ok(version[0] == 2)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

fn copy(suffix: &'static str, source: &File) -> io::Result<Captured> {
    let metadata = source.metadata()?;
    let mut content = tempfile::tempfile()?;
    let mut reader = source;
    reader.rewind()?;
    let length = io::copy(&mut reader, &mut content)?;
    content.rewind()?;
    Ok(Captured {
        suffix,
        metadata,
        length,
        content,
    })
}

/// The lock of a reader, taken the way SQLite takes it: through the byte that a waiting writer holds.
fn lock_database(main: &File, deadline: Instant) -> io::Result<bool> {
    if !lock_until(main, PENDING, 1, deadline)? {
        return Ok(false);
    }
    let locked = lock_until(main, SHARED.0, SHARED.1, deadline)?;
    lock::release(main, PENDING, 1)?;
    Ok(locked)
}

fn lock_index(index: &File, deadline: Instant) -> io::Result<bool> {
    Ok(lock_until(index, CHECKPOINT, 1, deadline)? && lock_until(index, READER, 1, deadline)?)
}

fn lock_until(file: &File, start: i64, length: i64, deadline: Instant) -> io::Result<bool> {
    loop {
        if lock::share(file, start, length)? {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(RETRY);
    }
}

/// Locks that belong to the open file, not to the process: SQLite may be used by this process too, and
/// the locks end when the file is closed.
#[cfg(target_os = "linux")]
mod lock {
    use std::fs::File;
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    /// Whether the bytes could be locked for reading.
    pub(super) fn share(file: &File, start: i64, length: i64) -> io::Result<bool> {
        match set(file, libc::F_RDLCK, start, length) {
            Ok(()) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            // A disk without locks has none that anybody could hold.
            Err(Errno::ENOLCK | Errno::EINVAL | Errno::ENOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn release(file: &File, start: i64, length: i64) -> io::Result<()> {
        match set(file, libc::F_UNLCK, start, length) {
            Err(error) if error != Errno::EINVAL => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn set(file: &File, kind: libc::c_int, start: i64, length: i64) -> Result<(), Errno> {
        let range = libc::flock {
            l_type: i16::try_from(kind).map_err(|_| Errno::EINVAL)?,
            l_whence: i16::try_from(libc::SEEK_SET).map_err(|_| Errno::EINVAL)?,
            l_start: start,
            l_len: length,
            l_pid: 0,
        };
        fcntl(file, FcntlArg::F_OFD_SETLK(&range)).map(drop)
    }
}

/// Elsewhere there are no such locks; a copy is then marked as possibly torn.
#[cfg(not(target_os = "linux"))]
mod lock {
    use std::fs::File;
    use std::io;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature of the other system"
    )]
    pub(super) fn share(_: &File, _: i64, _: i64) -> io::Result<bool> {
        Ok(false)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the signature of the other system"
    )]
    pub(super) fn release(_: &File, _: i64, _: i64) -> io::Result<()> {
        Ok(())
    }
}
