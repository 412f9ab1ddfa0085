//! A server's process and everything that it started: one process group with one owner.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// How often a group is asked whether it is gone.
const POLL: Duration = Duration::from_millis(10);

/// A process that leads its own group. When it is dropped, the whole group is killed.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Pid,
    gone: bool,
}

impl Process {
    /// Starts `command` as the leader of a new group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self {
            child,
            group: Pid::from_raw(id),
            gone: false,
        })
    }

    pub(crate) fn pipes(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The id of the process, which is also that of its group.
    pub(crate) fn id(&self) -> u32 {
        self.group.as_raw().unsigned_abs()
    }

    /// Waits for the leader to exit. Cancellation-safe.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the group: waits `grace` for it to end by itself (its stdin is closed), then sends TERM
    /// and waits again, then KILL. Returns how the leader exited, where that is known.
    pub(crate) async fn stop(mut self, grace: Duration) -> Option<ExitStatus> {
        let mut status = timeout(grace, self.child.wait())
            .await
            .ok()
            .and_then(Result::ok);
        if status.is_some() && self.is_empty() {
            self.gone = true;
            return status;
        }
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            // A group that has ended in the meantime is what we want.
            let _ = killpg(self.group, signal);
            let deadline = Instant::now() + grace;
            if status.is_none() {
                status = timeout(grace, self.child.wait())
                    .await
                    .ok()
                    .and_then(Result::ok);
            }
            while status.is_some() && Instant::now() < deadline {
                if self.is_empty() {
                    self.gone = true;
                    return status;
                }
                sleep(POLL).await;
            }
        }
        tracing::warn!(group = %self.group, "a process group did not end after KILL");
        status
    }

    /// Whether no process of the group is left. Only to be asked once the leader was waited for:
    /// it also collects members that were handed to us as orphans (we may be process 1).
    fn is_empty(&self) -> bool {
        let any = Pid::from_raw(-self.group.as_raw());
        while let Ok(status) = waitpid(any, Some(WaitPidFlag::WNOHANG)) {
            if status == WaitStatus::StillAlive {
                break;
            }
        }
        killpg(self.group, None).is_err()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.gone {
            // An error means that the group is gone already.
            let _ = killpg(self.group, Signal::SIGKILL);
        }
    }
}
