//! Environments as processes of this machine.

mod child;
mod folder;
mod isolation;
mod session;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::client::{ClientSettings, EnvironmentClient};
use crate::log::LogLimits;
use crate::{RunningEnvironment, Sandbox, SandboxError, StartRequest};

pub(crate) use child::ProcessGuard;
use folder::TrialFolder;
pub(crate) use folder::plain_name;
use isolation::Bubblewrap;
pub use isolation::Isolation;

/// Starts each environment as a process with temporary roots and a free port of its own.
///
/// The program is called with the given arguments and
/// `--host 127.0.0.1 --port 0 --stop-on-stdin-close`, and with `FILESYSTEM_ROOT` and
/// `APPS_DATA_ROOT` in its environment. It has to print `listening on http://HOST:PORT`. It leads
/// a session of its own, so that everything it started can be found and ended with it, and its
/// standard input closes when this process ends in whatever way.
#[derive(Debug, Clone)]
pub struct ProcessSandbox {
    program: PathBuf,
    args: Vec<OsString>,
    programs: Vec<(String, PathBuf)>,
    variables: Vec<(OsString, OsString)>,
    /// Where the folders of the trials are made. Default: the system's folder for temporary
    /// files.
    pub temporary_root: PathBuf,
    /// Whether environments get a view of the machine of their own. Default no.
    pub isolation: Isolation,
    /// Leaves the folder of each trial in place when its environment stops.
    pub keep: bool,
    /// Waits and sizes.
    pub limits: ProcessLimits,
    /// Limits of the client.
    pub client: ClientSettings,
    /// Whether bubblewrap works here; asked once.
    bubblewrap: Arc<OnceCell<Result<Bubblewrap, String>>>,
}

/// The limits of a [`ProcessSandbox`].
#[derive(Debug, Clone)]
pub struct ProcessLimits {
    /// From the start of the program until it says where it listens, and from there until it
    /// answers. Default 30 s.
    pub ready: Duration,
    /// How long it may go on after its standard input closed. Default 3 s.
    pub stop_asked: Duration,
    /// How long it may go on after `SIGTERM`. Default 3 s.
    pub stop_terminated: Duration,
    /// How long killed processes may take to disappear. Default 2 s.
    pub stop_killed: Duration,
    /// Bytes of output that are kept in the log; what follows is dropped. Default 256 MiB.
    pub log_bytes: u64,
    /// Lines that are kept for error messages. Default 20.
    pub last_lines: usize,
    /// Bytes of such a line. Default 500.
    pub line_bytes: usize,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(30),
            stop_asked: Duration::from_secs(3),
            stop_terminated: Duration::from_secs(3),
            stop_killed: Duration::from_secs(2),
            log_bytes: 256 << 20,
            last_lines: 20,
            line_bytes: 500,
        }
    }
}

impl ProcessLimits {
    fn log(&self) -> LogLimits {
        LogLimits {
            bytes: self.log_bytes,
            last_lines: self.last_lines,
            line_bytes: self.line_bytes,
        }
    }
}

/// The variables that an environment may inherit: what programs need to run and to speak the
/// user's language, and nothing that could be a secret.
const INHERITED: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_COLLATE",
    "LC_MESSAGES",
    "TZ",
    "NO_COLOR",
    "RUST_LOG",
    "RUST_BACKTRACE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

impl ProcessSandbox {
    /// Environments that are started as `program args…`.
    ///
    /// They inherit no variable until [`ProcessSandbox::inherit`] is called.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            programs: Vec::new(),
            variables: Vec::new(),
            temporary_root: std::env::temp_dir(),
            isolation: Isolation::default(),
            keep: false,
            limits: ProcessLimits::default(),
            client: ClientSettings::default(),
            bubblewrap: Arc::default(),
        }
    }

    /// Lets the environment find `executable` on its `PATH` under `name`, before anything else.
    #[must_use]
    pub fn with_program(mut self, name: impl Into<String>, executable: impl Into<PathBuf>) -> Self {
        self.programs.push((name.into(), executable.into()));
        self
    }

    /// Passes those of `variables` on that are on the list of harmless ones: `PATH`, `HOME`,
    /// `LANG` and the like. A program calls it with `std::env::vars_os()`.
    #[must_use]
    pub fn inherit(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.variables.extend(
            variables
                .into_iter()
                .filter(|(name, _)| INHERITED.iter().any(|known| name == OsStr::new(known))),
        );
        self
    }

    /// Sets one variable of the environment, whatever its name.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    async fn start_process(
        &self,
        request: StartRequest,
    ) -> Result<RunningEnvironment, SandboxError> {
        let mut remarks: Vec<String> = request.needs.without_containers().into_iter().collect();
        let (bubblewrap, remark) = self.isolated().await?;
        remarks.extend(remark);
        if bubblewrap.is_none() {
            request
                .needs
                .refuse_mounts("a process without bubblewrap")?;
        }
        let folder = self.make_folder(request.trial).await?;
        let command = self.command(folder, bubblewrap, &request.needs).await?;
        let mut guard = self.spawn(command, &request.log).await?;
        let started = tokio::select! {
            () = request.cancel.cancelled() => Err(SandboxError::Cancelled),
            ready = self.wait_until_ready(&mut guard) => ready,
        };
        match started {
            Ok(client) => Ok(RunningEnvironment::process(
                client,
                Box::new(guard),
                remarks,
            )),
            Err(error) => {
                guard.stop().await;
                Err(error)
            }
        }
    }

    /// The bubblewrap to use, and what the log should say about it.
    async fn isolated(&self) -> Result<(Option<&Bubblewrap>, Option<String>), SandboxError> {
        if self.isolation == Isolation::None {
            return Ok((None, None));
        }
        let path = self.variable("PATH");
        let found = self.bubblewrap.get_or_init(|| Bubblewrap::find(path)).await;
        match (found, self.isolation) {
            (Ok(bubblewrap), _) => {
                let remark = format!("the environment is isolated by {}", bubblewrap.version());
                Ok((Some(bubblewrap), Some(remark)))
            }
            (Err(reason), Isolation::Bubblewrap) => Err(SandboxError::Unsupported(format!(
                "the environment cannot be isolated: {reason}"
            ))),
            (Err(reason), _) => Ok((
                None,
                Some(format!(
                    "the environment is not isolated from this machine, it only has roots of its \
                     own: {reason}"
                )),
            )),
        }
    }

    /// The value of an inherited or set variable.
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut values = self.variables.iter().rev();
        values.find_map(|(known, value)| (known == name).then_some(value.as_os_str()))
    }

    async fn make_folder(&self, trial: String) -> Result<TrialFolder, SandboxError> {
        let (root, programs, keep) = (
            self.temporary_root.clone(),
            self.programs.clone(),
            self.keep,
        );
        let make = move || TrialFolder::create(&root, &trial, &programs, keep);
        let made = tokio::task::spawn_blocking(make).await;
        made.map_err(std::io::Error::other)
            .and_then(|made| made)
            .map_err(|source| SandboxError::Folder {
                what: "the folder of the environment in",
                path: self.temporary_root.clone(),
                source,
            })
    }

    async fn wait_until_ready(
        &self,
        guard: &mut ProcessGuard,
    ) -> Result<EnvironmentClient, SandboxError> {
        let base_url = guard.listening(self.limits.ready).await?;
        let client = EnvironmentClient::new(&base_url, self.client.clone())
            .map_err(|error| SandboxError::Unhealthy(Box::new(error)))?
            .of_life(Arc::clone(guard.life()));
        client
            .wait_until_healthy(self.limits.ready)
            .await
            .map_err(|error| SandboxError::Unhealthy(Box::new(error)))?;
        Ok(client)
    }
}

impl Sandbox for ProcessSandbox {
    fn name(&self) -> String {
        "process".to_owned()
    }

    fn start(
        &self,
        request: StartRequest,
    ) -> BoxFuture<'_, Result<RunningEnvironment, SandboxError>> {
        Box::pin(self.start_process(request))
    }
}
