//! Programs of a task's author, which judge what the agent left: run in a folder of their own,
//! with limits, in a process group of their own, without the secrets of this program.

mod family;
mod folder;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use confinement::{Confined, Group, Isolation};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

pub(crate) use self::folder::Folder;
use eval::Case;
use eval::error::{ErrorKind, EvalError};

/// Bytes of each output that are kept; the rest is read and dropped.
const KEPT_OUTPUT: usize = 1 << 20;

/// Open files where nothing else is said.
const OPEN_FILES: u64 = 1024;

/// Processes at the same time where nothing else is said.
const PROCESSES: usize = 256;

/// A program to be run.
pub(crate) struct Program<'a> {
    pub(crate) command: Vec<OsString>,
    /// Where it runs.
    pub(crate) folder: &'a Path,
    /// Where it may write, if that is more than `folder`.
    pub(crate) writable: Option<&'a Path>,
    pub(crate) variables: Vec<(&'static str, OsString)>,
    pub(crate) input: Vec<u8>,
    pub(crate) time: Duration,
    pub(crate) memory_mib: u64,
    /// Seconds of the processor of each of its processes; as many as `time` if absent.
    pub(crate) cpu_seconds: Option<u64>,
    /// Files that a process of it may have open; 1024 if absent.
    pub(crate) open_files: Option<u64>,
    /// Processes that it may have at the same time, itself and what isolates it included; 256 if
    /// absent.
    pub(crate) processes: Option<usize>,
}

impl<'a> Program<'a> {
    /// A program without variables and input.
    pub(crate) const fn new(
        command: Vec<OsString>,
        folder: &'a Path,
        time: Duration,
        memory_mib: u64,
    ) -> Self {
        Self {
            command,
            folder,
            writable: None,
            variables: Vec::new(),
            input: Vec::new(),
            time,
            memory_mib,
            cpu_seconds: None,
            open_files: None,
            processes: None,
        }
    }
}

/// How it ended.
pub(crate) struct Finished {
    /// `None` where its time ran out.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// How it was kept from the machine.
    pub(crate) isolation: Isolation,
}

impl Program<'_> {
    /// Runs it to its end, or to the end of its time, as the case has it.
    pub(crate) async fn run(self, case: &Case) -> Result<Finished, EvalError> {
        let path: &OsStr = &case.program_path;
        let rule = case.isolation;
        // The first one tries it, which blocks.
        let isolation = tokio::task::spawn_blocking(move || Isolation::by(rule))
            .await
            .unwrap_or_else(|error| Err(format!("the trial was ended: {error}")))
            .map_err(|reason| EvalError::new(ErrorKind::Sandbox, reason))?;
        let name = self.command.first().cloned().unwrap_or_default();
        let failed = |error: std::io::Error| {
            let name = name.to_string_lossy();
            EvalError::new(
                ErrorKind::Sandbox,
                format!("`{name}` cannot be run: {error}"),
            )
        };
        let confined = Confined {
            isolation,
            folder: self.folder,
            writable: self.writable.unwrap_or(self.folder),
            readable: &case.task_folder.as_deref().into_iter().collect::<Vec<_>>(),
            path,
            memory: self.memory_mib << 20,
            cpu_seconds: self.cpu_seconds.unwrap_or(self.time.as_secs() + 1),
            open_files: Some(self.open_files.unwrap_or(OPEN_FILES)),
            file_bytes: None,
        };
        let mut child = Command::from(confined.command(&self.command))
            .envs(self.variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let group = Group::of(child.id());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let input = self.input;
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A program need not read its input.
                let _ = stdin.write_all(&input).await;
            }
        };
        let work = async {
            let (status, (), out, err) =
                tokio::join!(child.wait(), feed, read(stdout), read(stderr));
            status.map(|status| (status, out, err))
        };
        let leader = group.leader();
        let limit = self.processes.unwrap_or(PROCESSES);
        let ended = tokio::select! {
            ended = tokio::time::timeout(self.time, Box::pin(work)) => ended,
            count = family::outgrown(leader, limit) => {
                return Err(EvalError::new(
                    ErrorKind::Sandbox,
                    format!("the program had {count} processes at once (limit `processes`: {limit})"),
                ));
            }
        };
        // Also what the program left running.
        drop(group);
        match ended {
            Ok(Ok((status, stdout, stderr))) => Ok(Finished {
                status: Some(status),
                stdout,
                stderr,
                isolation,
            }),
            Ok(Err(error)) => Err(failed(error)),
            Err(_) => Ok(Finished {
                status: None,
                stdout: String::new(),
                stderr: String::new(),
                isolation,
            }),
        }
    }
}

async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else {
        return String::new();
    };
    let mut kept = Vec::new();
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        let room = KEPT_OUTPUT.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&buffer[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// The last `limit` characters of `text`.
pub(crate) fn ending(text: &str, limit: usize) -> &str {
    let chars = text.chars().count();
    let skipped = text.char_indices().nth(chars.saturating_sub(limit));
    skipped.map_or("", |(start, _)| &text[start..])
}
