//! One run of a program of others, from its start to its end or its limits.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use confinement::{Confined, Group, Isolation};

use super::{DrawError, ExternalProgram};
use crate::limits::Limits;

/// Between two looks at the clock and the folder.
const LOOK: Duration = Duration::from_millis(10);

/// Bytes of what the program says that are kept for an error.
const SAID: u64 = 4 << 10;

/// Files of a folder that are counted; a program that makes more has no good in mind.
const FILES: usize = 10_000;

/// What a program may cost, with the names of the limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    pub(super) time: (Duration, &'static str),
    /// Of all files of its folder together.
    pub(super) bytes: (u64, &'static str),
    /// Of its address space.
    pub(super) memory: u64,
}

/// A run to be.
pub(super) struct Run<'a> {
    pub(super) program: ExternalProgram,
    pub(super) arguments: Vec<OsString>,
    /// Where it runs, and the only place where it may write.
    pub(super) folder: &'a Path,
    pub(super) cost: Cost,
}

/// Why a run came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It could not be started.
    #[error("{0}")]
    Start(String),
    /// It crossed a limit and was ended.
    #[error("{0}")]
    Limit(String),
    /// It ended without what it was run for.
    #[error("{0}")]
    NoResult(String),
}

impl Failure {
    /// Whom to blame: the document, if the program works with a `harmless` one.
    pub(super) fn blame<T>(
        self,
        program: ExternalProgram,
        harmless: impl FnOnce() -> Result<T, Self>,
    ) -> DrawError {
        let reason = match self {
            Self::Start(reason) => reason,
            Self::Limit(reason) | Self::NoResult(reason) => match harmless() {
                Ok(_) => return DrawError::Document(reason),
                Err(failure) => format!("with a document of ours, {failure}"),
            },
        };
        DrawError::Unusable { program, reason }
    }
}

/// How it ended by itself.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The last line that it said on stderr.
    pub(super) said: String,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.status)?;
        if !self.said.is_empty() {
            write!(f, ": {}", self.said)?;
        }
        Ok(())
    }
}

/// A program that runs. Its group ends before it is waited for, however we get out of here.
struct Running {
    child: Child,
    group: Option<Group>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group = None;
        let _ = self.child.wait();
    }
}

impl Run<'_> {
    /// Runs it. The folder is looked through meanwhile: one file is bounded by the system, all of
    /// them together are not.
    pub(super) fn to_end(&self, limits: &Limits) -> Result<Ended, Failure> {
        let start = |error: &dyn std::fmt::Display| Failure::Start(error.to_string());
        let name = self.program.name();
        let path = &limits.program_path;
        let program = self
            .program
            .find(path)
            .ok_or_else(|| start(&"it is not installed"))?;
        let isolation = Isolation::by(limits.isolation).map_err(|reason| start(&reason))?;
        let (time, time_name) = self.cost.time;
        let (bytes, bytes_name) = self.cost.bytes;
        let errors = tempfile::tempfile().map_err(|error| start(&error))?;
        let confined = Confined {
            isolation,
            folder: self.folder,
            writable: self.folder,
            readable: &[],
            path,
            memory: self.cost.memory,
            cpu_seconds: time.as_secs() + 1,
            open_files: None,
            file_bytes: Some(bytes),
        };
        let mut words = vec![program.into_os_string()];
        words.extend(self.arguments.iter().cloned());
        let child = confined
            .command(&words)
            .env("TMPDIR", self.folder)
            .stderr(errors.try_clone().map_err(|error| start(&error))?)
            .spawn()
            .map_err(|error| start(&error))?;
        let mut running = Running {
            group: Some(Group::of(Some(child.id()))),
            child,
        };
        let deadline = Instant::now() + time;
        loop {
            if let Some(status) = running.child.try_wait().map_err(|error| start(&error))? {
                drop(running);
                let said = last_line(errors);
                return Ok(Ended { status, said });
            }
            if Instant::now() >= deadline {
                let seconds = time.as_secs();
                return Err(Failure::Limit(format!(
                    "`{name}` took more than {seconds} s (limit `{time_name}`)"
                )));
            }
            if written(self.folder) > bytes {
                return Err(Failure::Limit(format!(
                    "`{name}` wrote more than {bytes} bytes (limit `{bytes_name}`)"
                )));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Bytes of all files below a folder; links are not followed.
fn written(folder: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut files = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            if files > FILES {
                return u64::MAX;
            }
            match file.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(file.path()),
                Ok(metadata) => bytes = bytes.saturating_add(metadata.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

/// The last line that is not empty, of the beginning of what was said, without control characters.
fn last_line(mut errors: File) -> String {
    let mut said = Vec::new();
    let read =
        io::Seek::rewind(&mut errors).and_then(|()| errors.take(SAID).read_to_end(&mut said));
    if read.is_err() {
        return String::new();
    }
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim().chars();
    line.filter(|c| !c.is_control()).take(300).collect()
}

/// A file that the program made: no link, which could lead to a file of somebody else.
pub(super) fn made(path: &PathBuf, most: u64) -> io::Result<Option<Vec<u8>>> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() || metadata.len() > most {
        return Ok(None);
    }
    std::fs::read(path).map(Some)
}
