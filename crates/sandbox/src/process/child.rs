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
use super::isolation::{self, Bubblewrap};
use super::{ProcessLimits, ProcessSandbox, session};
use crate::life::{Life, Watch};
use crate::log;
use crate::running::{StopKind, Stopped};
use crate::sandbox::{APPS_DATA, FILESYSTEM};
use crate::{Needs, SandboxError};

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
    /// `None` where the environment sees its roots at their usual places.
    roots: Option<(PathBuf, PathBuf)>,
}

/// What is started, and the folder that it needs.
pub(super) struct Prepared {
    command: Command,
    folder: TrialFolder,
    roots: Option<(PathBuf, PathBuf)>,
}

impl ProcessSandbox {
    /// The command of an environment in `folder`, inside `bubblewrap` if there is one.
    pub(super) async fn command(
        &self,
        folder: TrialFolder,
        bubblewrap: Option<&Bubblewrap>,
        needs: &Needs,
    ) -> Result<Prepared, SandboxError> {
        let at = |source| SandboxError::Folder {
            what: "the view of the machine for",
            path: self.program.clone(),
            source,
        };
        let Some(bubblewrap) = bubblewrap else {
            let mut command = Command::new(&self.program);
            let roots = (
                folder.filesystem().to_owned(),
                folder.apps_data().to_owned(),
            );
            let path = self.search_path(&folder.bin()).map_err(at)?;
            self.describe(&mut command, needs)
                .env("PATH", path)
                .env("TMPDIR", folder.temporary())
                .env("FILESYSTEM_ROOT", &roots.0)
                .env("APPS_DATA_ROOT", &roots.1);
            return Ok(Prepared {
                command,
                folder,
                roots: Some(roots),
            });
        };
        let (root, mounts) = (self.temporary_root.clone(), needs.mounts.clone());
        let home = self.variable("HOME").map(PathBuf::from);
        let put_together = move || {
            let root = root.canonicalize()?;
            let arguments = isolation::arguments(&folder, &root, home.as_deref(), &mounts)?;
            Ok((folder, arguments))
        };
        let (folder, arguments) = tokio::task::spawn_blocking(put_together)
            .await
            .map_err(std::io::Error::other)
            .and_then(|made| made)
            .map_err(at)?;
        let mut command = Command::new(bubblewrap.program());
        command.args(arguments).arg(&self.program);
        let path = self.search_path(Path::new(isolation::BIN)).map_err(at)?;
        self.describe(&mut command, needs)
            .env("PATH", path)
            .env("TMPDIR", "/tmp")
            .env("FILESYSTEM_ROOT", FILESYSTEM)
            .env("APPS_DATA_ROOT", APPS_DATA);
        Ok(Prepared {
            command,
            folder,
            roots: None,
        })
    }

    /// Arguments and variables that do not depend on the place.
    fn describe<'c>(&self, command: &'c mut Command, needs: &Needs) -> &'c mut Command {
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
            .envs(needs.variables.iter().map(|(name, value)| (name, value)))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// Starts what was prepared, its output appended to `log`.
    pub(super) async fn spawn(
        &self,
        prepared: Prepared,
        log: &Path,
    ) -> Result<ProcessGuard, SandboxError> {
        let Prepared {
            command,
            folder,
            roots,
        } = prepared;
        let file = log::open(log).await?;
        let spawn_error = |source| SandboxError::Spawn {
            program: self.program.clone(),
            source,
        };
        let (mut child, output) = spawn_child(command).map_err(spawn_error)?;
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
            roots,
            folder: Some(folder),
        })
    }

    /// The folder of our programs, then the inherited search path.
    fn search_path(&self, bin: &Path) -> std::io::Result<OsString> {
        let inherited = self.variable("PATH").into_iter();
        let folders =
            std::iter::once(bin.to_owned()).chain(inherited.flat_map(std::env::split_paths));
        std::env::join_paths(folders).map_err(std::io::Error::other)
    }
}

impl ProcessGuard {
    /// What others may know of the process.
    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    /// The folders of `filesystem` and `.apps_data`, where they are not at their usual places.
    pub(crate) fn roots(&self) -> Option<(&Path, &Path)> {
        let (filesystem, apps_data) = self.roots.as_ref()?;
        Some((filesystem, apps_data))
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
        let limit = tokio::time::Instant::now() + self.limits.stop_terminated;
        session::terminate(self.session);
        let ended = life.ended_within(self.limits.stop_terminated).await;
        if ended.is_some() {
            // Bubblewrap is gone at once; what it started may still be putting things in order.
            self.gone_until(limit).await;
            return StopKind::Terminated;
        }
        session::kill_members(self.session);
        // The log's end is not waited for here: killed servers may still hold the pipe.
        let _ = life.exit_within(self.limits.stop_killed).await;
        StopKind::Killed
    }

    /// Waits until nothing of the session lives, at most until `limit`.
    async fn gone_until(&self, limit: tokio::time::Instant) {
        while session::is_alive(self.session) && tokio::time::Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills what the process left running; a remark if there was anything.
    async fn end_members(&self) -> Vec<String> {
        let session = self.session;
        let limit = tokio::time::Instant::now() + self.limits.stop_killed;
        if self.roots.is_none() {
            // The system ends everything in a view of its own with it, only a moment later.
            self.gone_until(limit).await;
        }
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

/// Starts `command` in a session of its own; its output comes from one pipe for both streams, so
/// that the log has the lines in the order of printing.
fn spawn_child(mut command: Command) -> std::io::Result<(Box<dyn ChildWrapper>, pipe::Receiver)> {
    let (reader, writer) = std::io::pipe()?;
    let output = pipe::Receiver::from_owned_fd(reader.into())?;
    command
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true);
    // The command owns the writing ends; they close with it at the end of this function.
    let child = CommandWrap::from(command).wrap(ProcessSession).spawn()?;
    Ok((child, output))
}

/// `exit status 3` or `signal 9 (SIGKILL)`.
fn describe(status: ExitStatus) -> String {
    status.to_string().replacen(": ", " ", 1)
}
