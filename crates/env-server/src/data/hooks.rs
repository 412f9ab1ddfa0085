//! Lifecycle hooks: commands of the caller around populate and snapshot (`spec/environment.md` §11).

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::error::ApiError;
use crate::settings::DataLimits;

/// How long output is still read after a hook has exited; a daemon it left behind may hold the pipes.
const DRAIN: Duration = Duration::from_secs(5);

/// Bytes of one line of output; a longer one is cut into several.
const MAX_LINE: u64 = 1 << 20;

/// Bytes of standard error that are kept for the message of a failure.
const MAX_ERROR_OUTPUT: usize = 64 << 10;

/// Variables of this process that a hook does not get.
const KEPT_BACK: [&str; 2] = ["MODAL_IDENTITY_TOKEN", "ENV_AUTH_TOKEN"];

/// A command that the caller attaches to populate or snapshot.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct Hook {
    /// A label.
    pub(crate) name: String,
    /// What `sh -c` gets.
    pub(crate) command: String,
    /// Variables on top of those of the environment.
    #[serde(default)]
    pub(crate) env: Option<BTreeMap<String, String>>,
    /// How long it may run, in seconds.
    #[serde(default)]
    pub(crate) timeout_seconds: Option<f64>,
}

/// How long a hook took.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct HookTiming {
    /// The label of the hook.
    pub(crate) name: String,
    /// Seconds from its start to its exit.
    pub(crate) duration_s: f64,
}

/// Runs all hooks side by side, each to its end, also when one fails. Each has a process group of
/// its own, which is killed when its time is over or nobody waits for it any more.
pub(crate) async fn run(hooks: &[Hook], limits: &DataLimits) -> Result<Vec<HookTiming>, ApiError> {
    if hooks.len() > limits.max_hooks {
        return Err(ApiError::bad_request(format!(
            "got {} hooks, allowed are {} (max_hooks)",
            hooks.len(),
            limits.max_hooks
        )));
    }
    let results = futures::future::join_all(hooks.iter().map(|hook| run_one(hook, limits))).await;
    let mut timings = Vec::new();
    let mut failures = Vec::new();
    for result in results {
        match result {
            Ok(timing) => timings.push(timing),
            Err(failure) => failures.push(failure),
        }
    }
    match failures.as_slice() {
        [] => Ok(timings),
        [failure] => Err(ApiError::internal(failure.as_str())),
        several => {
            let mut detail = format!("{} lifecycle hooks failed:", several.len());
            for failure in several {
                detail += &format!("\n  - RuntimeError: {failure}");
            }
            Err(ApiError::internal(detail))
        }
    }
}

async fn run_one(hook: &Hook, limits: &DataLimits) -> Result<HookTiming, String> {
    let name = &hook.name;
    let limit = match hook.timeout_seconds {
        None => limits.hook_timeout,
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("Lifecycle hook '{name}' has an impossible time limit"))?,
    };
    let started = Instant::now();
    let cannot_run = |error: std::io::Error| format!("Lifecycle hook '{name}' cannot run: {error}");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(&hook.command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for variable in KEPT_BACK {
        command.env_remove(variable);
    }
    command.envs(hook.env.iter().flatten());
    let mut child = command.spawn().map_err(cannot_run)?;
    let mut group = Group::of(&child);
    let errors = Arc::new(Mutex::new(Vec::new()));
    let reading = tokio::spawn(futures::future::join(
        log(name.clone(), child.stdout.take(), None),
        log(name.clone(), child.stderr.take(), Some(Arc::clone(&errors))),
    ));
    let Ok(exited) = tokio::time::timeout(limit, child.wait()).await else {
        group.kill();
        let _ = child.wait().await;
        reading.abort();
        return Err(format!(
            "Lifecycle hook '{name}' timed out after {}s",
            limit.as_secs()
        ));
    };
    // What the hook left running on purpose stays.
    group.release();
    let duration_s = started.elapsed().as_secs_f64();
    let status = exited.map_err(cannot_run)?;
    let abort = reading.abort_handle();
    if tokio::time::timeout(DRAIN, reading).await.is_err() {
        abort.abort();
    }
    if status.success() {
        return Ok(HookTiming {
            name: name.clone(),
            duration_s,
        });
    }
    let errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
    let text = String::from_utf8_lossy(&errors);
    let text = match text.trim_end() {
        "" => "No error output",
        text => text,
    };
    Err(format!(
        "Lifecycle hook '{name}' failed with exit code {}: {text}",
        exit_code(status)
    ))
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .or_else(|| status.signal().map(|signal| -signal))
        .unwrap_or(-1)
}

/// Logs a pipe line by line, and keeps the beginning of it where asked to.
async fn log(
    name: String,
    pipe: Option<impl AsyncRead + Unpin>,
    keep: Option<Arc<Mutex<Vec<u8>>>>,
) {
    let Some(pipe) = pipe else {
        return;
    };
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut lines)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        tracing::info!(hook = name, line = %String::from_utf8_lossy(&line).trim_end(), "output of a hook");
        if let Some(kept) = &keep {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MAX_ERROR_OUTPUT.saturating_sub(kept.len());
            kept.extend_from_slice(&line[..line.len().min(room)]);
        }
    }
}

/// The process group of a hook, killed when dropped before its release.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(
            child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .map(Pid::from_raw),
        )
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // It may be gone already.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }

    const fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
