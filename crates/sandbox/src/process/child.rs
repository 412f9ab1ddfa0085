//! One environment process: start, watch, stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessSession};
use tokio::net::unix::pipe;
use tokio::process::{ChildStdin, Command};
use tokio::sync::oneshot;

use super::folder::TrialFolder;
use super::{ProcessLimits, ProcessSandbox, session};
use crate::SandboxError;
use crate::life::{Life, Watch};
use crate::log;
use crate::running::{StopKind, Stopped};

/// How long a destructor may block until killed processes have disappeared.
const KILL_IN_DROP: Duration = Duration::from_millis(500);

/// Owns a process, everything that it started, and its folder. Dropping it kills and removes them.
#[derive(Debug)]
pub(crate) struct ProcessGuard {
    life: Arc<Life>,
    session: Pid,
    /// The process stops when this closes.
    stdin: Option<ChildStdin>,
    address: oneshot::Receiver<String>,
    limits: ProcessLimits,
    stopped: bool,
    folder: Option<TrialFolder>,
    roots: (PathBuf, PathBuf),
}

impl ProcessSandbox {
    /// Starts the program with `folder`, its output appended to `log`.
    pub(super) async fn spawn(
        &self,
        folder: TrialFolder,
        log: &Path,
    ) -> Result<ProcessGuard, SandboxError> {
        let file = log::open(log).await?;
        let spawn_error = |source| SandboxError::Spawn {
            program: self.program.clone(),
            source,
        };
        let (mut child, output) = self.spawn_child(&folder).map_err(spawn_error)?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let session = Pid::from_raw(
            id.ok_or_else(|| spawn_error(std::io::Error::other("it has no process id")))?,
        );
        let stdin = child.stdin().take();

        let (address_sender, address) = oneshot::channel();
        let (life, watch) = Life::new(log.to_owned());
        let Watch {
            exit: exit_sender,
            log_ended,
            last,
        } = watch;
        let limits = self.limits.log();
        tokio::spawn(async move {
            log::follow(output, file, last, Some(address_sender), limits).await;
            log_ended.send_replace(true);
        });
        // This task reaps the process; it ends with it.
        tokio::spawn(async move {
            let exit = match child.wait().await {
                Ok(status) => describe(status),
                Err(error) => format!("an unknown exit status ({error})"),
            };
            exit_sender.send_replace(Some(exit));
        });
        Ok(ProcessGuard {
            life: Arc::new(life),
            session,
            stdin,
            address,
            limits: self.limits.clone(),
            stopped: false,
            roots: (
                folder.filesystem().to_owned(),
                folder.apps_data().to_owned(),
            ),
            folder: Some(folder),
        })
    }

    fn spawn_child(
        &self,
        folder: &TrialFolder,
    ) -> std::io::Result<(Box<dyn ChildWrapper>, pipe::Receiver)> {
        // One pipe for both streams, so that the log has the lines in the order of printing.
        let (reader, writer) = std::io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .args([
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--stop-on-stdin-close",
            ])
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("PATH", self.search_path(&folder.bin())?)
            .env("TMPDIR", folder.temporary())
            .env("FILESYSTEM_ROOT", folder.filesystem())
            .env("APPS_DATA_ROOT", folder.apps_data())
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .kill_on_drop(true);
        // The command owns the writing ends; they close with it at the end of this function.
        let child = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
        Ok((child, output))
    }

    /// The folder of our programs, then the inherited search path.
    fn search_path(&self, bin: &Path) -> std::io::Result<OsString> {
        let inherited = self.variables.iter().rev().find(|(name, _)| name == "PATH");
        let mut folders = vec![bin.to_owned()];
        folders.extend(
            inherited
                .into_iter()
                .flat_map(|(_, path)| std::env::split_paths(path)),
        );
        std::env::join_paths(folders).map_err(std::io::Error::other)
    }
}

impl ProcessGuard {
    /// What others may know of the process.
    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// The folders of `filesystem` and `.apps_data`.
    pub(crate) fn roots(&self) -> (&Path, &Path) {
        (&self.roots.0, &self.roots.1)
    }

    /// The address that the process prints, or why there is none.
    pub(super) async fn listening(&mut self, limit: Duration) -> Result<String, SandboxError> {
        let life = Arc::clone(&self.life);
        tokio::select! {
            biased;
            Ok(url) = &mut self.address => Ok(url),
            died = life.ended_within(limit) => Err(match died {
                Some(died) => SandboxError::Died(died),
                None => SandboxError::NotListening {
                    limit,
                    last_lines: life.last_lines(),
                },
            }),
        }
    }

    /// Ends the process and everything that it started, and removes its folder.
    pub(crate) async fn stop(mut self) -> Stopped {
        let kind = self.end_process().await;
        let mut remarks = self.end_members().await;
        self.stopped = true;
        let kept = self.remove_folder().await.unwrap_or_else(|error| {
            remarks.push(format!(
                "the environment's folder could not be removed: {error}"
            ));
            None
        });
        Stopped {
            kind,
            exit: self.life.exit(),
            kept,
            remarks,
        }
    }

    async fn end_process(&mut self) -> StopKind {
        if self.life.exit().is_some() {
            return StopKind::AlreadyEnded;
        }
        drop(self.stdin.take());
        let life = Arc::clone(&self.life);
        if life.ended_within(self.limits.stop_asked).await.is_some() {
            return StopKind::Asked;
        }
        session::terminate(self.session);
        if life
            .ended_within(self.limits.stop_terminated)
            .await
            .is_some()
        {
            return StopKind::Terminated;
        }
        session::kill_members(self.session);
        // The log's end is not waited for here: killed servers may still hold the pipe.
        let _ = life.exit_within(self.limits.stop_killed).await;
        StopKind::Killed
    }

    /// Kills what the process left running; a remark if there was anything.
    async fn end_members(&self) -> Vec<String> {
        let session = self.session;
        let limit = tokio::time::Instant::now() + self.limits.stop_killed;
        let first = session::kill_members(session);
        let mut left = first;
        while left > 0 && tokio::time::Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(5)).await;
            left = session::kill_members(session);
        }
        match (first, left) {
            (0, _) => Vec::new(),
            (first, 0) => vec![format!(
                "{first} processes outlived the environment and were killed"
            )],
            (_, left) => vec![format!(
                "{left} processes of the environment could not be killed within {:?}",
                self.limits.stop_killed
            )],
        }
    }

    async fn remove_folder(&mut self) -> std::io::Result<Option<PathBuf>> {
        let Some(folder) = self.folder.take() else {
            return Ok(None);
        };
        tokio::task::spawn_blocking(move || folder.finish())
            .await
            .map_err(std::io::Error::other)?
    }
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        if !self.stopped {
            session::kill_and_wait(self.session, KILL_IN_DROP);
        }
    }
}

/// `exit status 3` or `signal 9 (SIGKILL)`.
fn describe(status: ExitStatus) -> String {
    status.to_string().replacen(": ", " ", 1)
}
