//! Environments as containers.

mod body;
mod container;
mod context;
mod engine;
mod holder;
mod images;
mod network;
mod sweep;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::client::ClientSettings;
use crate::log::{self, LogLimits};
use crate::process::plain_name;
use crate::{RunningEnvironment, Sandbox, SandboxError, StartRequest};

use body::{ImageFacts, Reach};
pub(crate) use container::ContainerGuard;
pub use engine::Engine;
pub use images::{BuildNews, ImageBuild, ImageEntry};
use network::Network;

/// The name under which the environment's own image is built.
pub const DEFAULT_IMAGE: &str = "archipelago-env";

/// Starts each environment as a container of its own, by the engine's HTTP interface.
///
/// A container has no capabilities, cannot gain privileges, is limited in memory and processes,
/// cannot reach the containers beside it, and is reached through a free loopback port. Where its
/// image allows it, its root is read-only. It is removed at the end of its trial; what a killed
/// program left behind is removed by the first start of the next one.
#[derive(Debug)]
pub struct DockerSandbox {
    engine: Arc<Engine>,
    image: String,
    variables: Vec<(String, String)>,
    mounts: Vec<BindMount>,
    /// What a container may use.
    pub limits: ContainerLimits,
    /// Whether containers reach the world outside. Default yes. Without, they are reached at
    /// their own addresses, which needs an engine on this machine.
    pub network: bool,
    /// Leaves each container in place, stopped, when its trial ends.
    pub keep: bool,
    /// Waits and sizes.
    pub waits: ContainerWaits,
    /// Limits of the client.
    pub client: ClientSettings,
    prepared: OnceCell<Prepared>,
}

/// A folder or file of the engine's machine inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindMount {
    /// Where it is, absolute.
    pub source: PathBuf,
    /// Where it appears.
    pub target: String,
    /// Whether the container may change it.
    pub writable: bool,
}

/// What one container may use; `None` is no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerLimits {
    /// Bytes of memory, temporary files included. Default 4 GiB.
    pub memory_bytes: Option<u64>,
    /// Processors, in parts of one. Default no limit.
    pub cpus: Option<f64>,
    /// Processes and threads. Default 2048.
    pub pids: Option<u32>,
    /// Bytes of each of the two roots of the world. They lie in memory then, and count to its
    /// limit. Default no limit: they lie on the engine's disk.
    pub world_bytes: Option<u64>,
}

impl Default for ContainerLimits {
    fn default() -> Self {
        Self {
            memory_bytes: Some(4 << 30),
            cpus: None,
            pids: Some(2048),
            world_bytes: None,
        }
    }
}

/// How long a [`DockerSandbox`] waits, and what it keeps of the output.
#[derive(Debug, Clone)]
pub struct ContainerWaits {
    /// From the start of the container until the environment answers. Default 60 s.
    pub ready: Duration,
    /// How long it may go on after `SIGTERM`, in whole seconds. Default 10 s.
    pub stop_terminated: Duration,
    /// Bytes of output that are kept in the log; what follows is dropped. Default 256 MiB.
    pub log_bytes: u64,
    /// Lines that are kept for error messages. Default 20.
    pub last_lines: usize,
    /// Bytes of such a line. Default 500.
    pub line_bytes: usize,
}

impl Default for ContainerWaits {
    fn default() -> Self {
        Self {
            ready: Duration::from_secs(60),
            stop_terminated: Duration::from_secs(10),
            log_bytes: 256 << 20,
            last_lines: 20,
            line_bytes: 500,
        }
    }
}

impl ContainerWaits {
    fn log(&self) -> LogLimits {
        LogLimits {
            bytes: self.log_bytes,
            last_lines: self.last_lines,
            line_bytes: self.line_bytes,
        }
    }
}

/// What all containers of a sandbox have in common.
#[derive(Debug)]
struct Prepared {
    network: Arc<Network>,
    image: ImageFacts,
}

impl DockerSandbox {
    /// Containers of `image` in `engine`. Nothing is asked of the engine yet.
    pub fn new(engine: Engine, image: impl Into<String>) -> Self {
        Self {
            engine: Arc::new(engine),
            image: image.into(),
            variables: Vec::new(),
            mounts: Vec::new(),
            limits: ContainerLimits::default(),
            network: true,
            keep: false,
            waits: ContainerWaits::default(),
            client: ClientSettings::default(),
            prepared: OnceCell::new(),
        }
    }

    /// Sets one variable of the environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Shows a folder or file of the engine's machine to the environment.
    #[must_use]
    pub fn with_mount(mut self, mount: BindMount) -> Self {
        self.mounts.push(mount);
        self
    }

    /// Once per sandbox: the engine answers, the image is there, orphans are gone.
    async fn prepare(&self) -> Result<Prepared, SandboxError> {
        if !self.network
            && let Some(machine) = self.engine.remote()
        {
            return Err(SandboxError::Unsupported(format!(
                "containers without network can only be reached on this machine, and the engine \
                 is on `{machine}`"
            )));
        }
        let docker = self.engine.docker().await?;
        let image = match docker.inspect_image(&self.image).await {
            Ok(image) => image,
            Err(error) if engine::status(&error) == Some(404) => {
                return Err(SandboxError::ImageMissing {
                    image: self.image.clone(),
                    host: self.engine.host().to_owned(),
                });
            }
            Err(error) => {
                return Err(self
                    .engine
                    .refused(format!("inspect the image `{}`", self.image), &error));
            }
        };
        sweep::sweep(docker).await;
        Ok(Prepared {
            network: Arc::new(Network::create(Arc::clone(&self.engine), self.network).await?),
            image: ImageFacts::of(&image),
        })
    }

    async fn start_container(
        &self,
        request: StartRequest,
    ) -> Result<RunningEnvironment, SandboxError> {
        let prepared = tokio::select! {
            () = request.cancel.cancelled() => return Err(SandboxError::Cancelled),
            prepared = self.prepared.get_or_try_init(|| self.prepare()) => prepared?,
        };
        let log = log::open(&request.log).await?;
        let reach = match self.engine.remote() {
            _ if !self.network => Reach::OwnAddress,
            Some(machine) => Reach::Machine(machine),
            None => Reach::Loopback,
        };
        let network = Arc::clone(&prepared.network);
        let plan = container::Plan {
            name: format!(
                "archipelago-{}-{:08x}",
                plain_name(&request.trial),
                fastrand::u32(..)
            ),
            body: self.body(&request.trial, network.name(), &reach, &prepared.image),
            network,
            host: match reach {
                Reach::Loopback => Some("127.0.0.1".to_owned()),
                Reach::Machine(name) => Some(name.to_owned()),
                Reach::OwnAddress => None,
            },
            log,
            log_path: request.log,
            limits: self.limits.clone(),
            waits: self.waits.clone(),
            client: self.client.clone(),
            keep: self.keep,
        };
        // A task of its own: an engine goes on making a container when the one that asked for it
        // is gone, so somebody has to be there to remove it. The token tells the task.
        let cancel = request.cancel.child_token();
        let _dropped = cancel.clone().drop_guard();
        let started = tokio::spawn(Box::pin(container::start(
            Arc::clone(&self.engine),
            plan,
            cancel,
        )));
        match started.await {
            Ok(started) => started,
            // The runtime ends.
            Err(_) => Err(SandboxError::Cancelled),
        }
    }
}

impl Sandbox for DockerSandbox {
    fn name(&self) -> String {
        "docker".to_owned()
    }

    fn start(
        &self,
        request: StartRequest,
    ) -> BoxFuture<'_, Result<RunningEnvironment, SandboxError>> {
        Box::pin(self.start_container(request))
    }
}
