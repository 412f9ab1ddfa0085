//! Servers that are processes and speak over their stdin and stdout, one message per line.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use formats::apps::ServerConfig;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::lines::{Line, next_line};
use super::peer::{NoticeSink, Outgoing, Peer};
use super::process::Process;
use super::stderr::Stderr;
use crate::options::GatewayOptions;

/// The variables that a server inherits (`spec/environment.md` §6.1).
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
/// How many messages may wait for a server to read them.
const OUTBOX: usize = 64;
/// Bytes of messages that are written together, which is what a pipe holds.
const AT_ONCE: usize = 64 * 1024;
/// How long the pipes of an exited server may still be read; a grandchild can hold them open.
const SETTLE: Duration = Duration::from_millis(500);

/// Why a server's process could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("working directory `{0}` does not exist")]
    NoDirectory(String),
    #[error("cannot start `{command}`: {error}")]
    Spawn {
        command: String,
        error: std::io::Error,
    },
}

/// A running server process.
pub(crate) struct StdioLink {
    pub(crate) peer: Peer,
    pub(crate) process_id: u32,
    pub(crate) stderr: Stderr,
    closing: CancellationToken,
    supervisor: JoinHandle<()>,
}

impl StdioLink {
    /// Starts the process; the MCP handshake is the caller's.
    pub(crate) fn spawn(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        notices: NoticeSink,
    ) -> Result<Self, SpawnError> {
        let program = config.command.clone().unwrap_or_default();
        let mut command = Command::new(&program);
        command
            .args(config.args.iter().flatten())
            .env_clear()
            .envs(
                INHERITED
                    .iter()
                    .filter_map(|name| std::env::var_os(name).map(|value| (*name, value))),
            )
            .envs(&options.environment)
            .envs(config.env.iter().flatten())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &config.cwd {
            if !Path::new(directory).is_dir() {
                return Err(SpawnError::NoDirectory(directory.clone()));
            }
            command.current_dir(directory);
        }
        let spawn_error = |error| SpawnError::Spawn {
            command: program.clone(),
            error,
        };
        let mut process = Process::spawn(&mut command).map_err(spawn_error)?;
        let pipes = process.pipes();
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (pipes.stdin.take(), pipes.stdout.take(), pipes.stderr.take())
        else {
            return Err(spawn_error(std::io::Error::other("no pipes")));
        };
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let peer = Peer::new(name.clone(), outbox, notices);
        let closing = CancellationToken::new();
        let stderr = Stderr::drain(name.clone(), stderr, options.stderr_lines);
        let writing = write_messages(stdin, messages, peer.clone(), closing.clone());
        tokio::spawn(writing);
        let reader = tokio::spawn(read_messages(
            stdout,
            peer.clone(),
            options.max_message_bytes,
        ));
        let process_id = process.id();
        let supervisor = tokio::spawn(supervise(Supervised {
            name: name.clone(),
            process,
            reader,
            stderr: stderr.clone(),
            peer: peer.clone(),
            closing: closing.clone(),
            grace: options.stop_grace,
        }));
        Ok(Self {
            peer,
            process_id,
            stderr,
            closing,
            supervisor,
        })
    }

    /// Ends the process and all that it started, and waits for that. When the future is dropped
    /// before, they are killed.
    pub(crate) async fn stop(mut self) {
        struct Impatient<'a>(&'a mut JoinHandle<()>);
        impl Drop for Impatient<'_> {
            fn drop(&mut self) {
                // With its owner the group is killed.
                self.0.abort();
            }
        }
        self.closing.cancel();
        let supervisor = Impatient(&mut self.supervisor);
        // It fails only if the supervisor panicked, which killed the group.
        let _ = (&mut *supervisor.0).await;
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        // The supervisor ends the process in the background.
        self.closing.cancel();
    }
}

struct Supervised {
    name: Arc<str>,
    process: Process,
    reader: JoinHandle<()>,
    stderr: Stderr,
    peer: Peer,
    closing: CancellationToken,
    grace: Duration,
}

/// Owns the process from its start to the end of its whole group.
async fn supervise(mut this: Supervised) {
    let name = &this.name;
    let exited = tokio::select! {
        status = this.process.wait() => status.ok(),
        () = this.closing.cancelled() => None,
        // It closed its stdout, which it can never open again. It is probably about to exit.
        _ = &mut this.reader => tokio::time::timeout(this.grace, this.process.wait()).await.ok().and_then(Result::ok),
    };
    if this.closing.is_cancelled() {
        this.peer.close(&format!("server `{name}` was stopped"));
    } else {
        if exited.is_some() && !this.reader.is_finished() {
            // Answers that it wrote before it exited still count.
            let _ = tokio::time::timeout(SETTLE, &mut this.reader).await;
        }
        this.stderr.settled(SETTLE).await;
        let reason = format!("{}{}", describe(name, exited), this.stderr.quoted());
        tracing::warn!(server = %name, "{reason}");
        this.peer.close(&reason);
        this.closing.cancel();
    }
    this.process.stop(this.grace).await;
    this.reader.abort();
}

fn describe(name: &str, status: Option<ExitStatus>) -> String {
    match status {
        Some(status) => format!("server `{name}` exited ({status})"),
        None => format!("server `{name}` closed its output"),
    }
}

/// Writes messages until the server goes or `closing` is cancelled; then stdin is closed.
async fn write_messages(
    mut stdin: ChildStdin,
    mut messages: mpsc::Receiver<Outgoing>,
    peer: Peer,
    closing: CancellationToken,
) {
    let write = async {
        while let Some(message) = messages.recv().await {
            if peer.is_busy() {
                // Other calls that are ready now get to the outbox first.
                tokio::task::yield_now().await;
            }
            let mut lines = message.text.into_bytes();
            lines.push(b'\n');
            // They go along: one write, and one wake-up of the server, for all.
            while lines.len() < AT_ONCE
                && let Ok(next) = messages.try_recv()
            {
                lines.extend_from_slice(next.text.as_bytes());
                lines.push(b'\n');
            }
            if stdin.write_all(&lines).await.is_err() {
                // The supervisor sees the end of the process and reports it.
                return;
            }
        }
    };
    tokio::select! {
        () = write => {}
        () = closing.cancelled() => {}
    }
}

async fn read_messages(stdout: ChildStdout, peer: Peer, limit: usize) {
    let mut reader = BufReader::with_capacity(64 * 1024, stdout);
    while let Ok(Some(line)) = next_line(&mut reader, limit).await {
        match line {
            Line::Whole(line) => peer.receive(&line, None),
            Line::TooLong { bytes, head, tail } => {
                peer.fail_too_long(bytes, limit, &head, &tail);
            }
        }
    }
}
