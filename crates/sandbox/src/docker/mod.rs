//! Environments as containers.

mod body;
mod container;
mod context;
mod engine;
mod holder;
mod images;
mod network;
mod sweep;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::OnceCell;

use crate::client::ClientSettings;
use crate::log::{self, LogLimits};
use crate::process::plain_name;
use crate::{BindMount, Needs, Resources, RunningEnvironment, Sandbox, SandboxError, StartRequest};

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
    /// The image of all containers; `None` leaves it to the tasks.
    image: Option<String>,
    variables: Vec<(String, String)>,
    mounts: Vec<BindMount>,
    /// What a container may use where its task says nothing.
    pub limits: ContainerLimits,
    /// Whether containers reach the world outside, where the task says nothing. Default yes.
    /// Without, they are reached at their own addresses, which needs an engine on this machine.
    pub network: bool,
    /// What holds whatever tasks say. Default nothing.
    pub fixed: Resources,
    /// Leaves each container in place, stopped, when its trial ends.
    pub keep: bool,
    /// Waits and sizes.
    pub waits: ContainerWaits,
    /// Limits of the client.
    pub client: ClientSettings,
    swept: OnceCell<()>,
    /// Without a way out, and with one; made when the first container needs them.
    networks: [OnceCell<Arc<Network>>; 2],
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

impl DockerSandbox {
    /// Containers of `image` in `engine`, whatever tasks say. Nothing is asked of the engine yet.
    pub fn new(engine: Engine, image: impl Into<String>) -> Self {
        Self {
            image: Some(image.into()),
            ..Self::by_task(engine)
        }
    }

    /// Containers of the image that each task names, or of [`DEFAULT_IMAGE`].
    pub fn by_task(engine: Engine) -> Self {
        Self {
            engine: Arc::new(engine),
            image: None,
            variables: Vec::new(),
            mounts: Vec::new(),
            limits: ContainerLimits::default(),
            network: true,
            fixed: Resources::default(),
            keep: false,
            waits: ContainerWaits::default(),
            client: ClientSettings::default(),
            swept: OnceCell::new(),
            networks: [OnceCell::new(), OnceCell::new()],
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

    /// What the engine says about `image`; the first call also removes orphans.
    async fn inspect(&self, image: &str) -> Result<ImageFacts, SandboxError> {
        let docker = self.engine.docker().await?;
        let inspected = match docker.inspect_image(image).await {
            Ok(inspected) => inspected,
            Err(error) if engine::status(&error) == Some(404) => {
                return Err(SandboxError::ImageMissing {
                    image: image.to_owned(),
                    host: self.engine.host().to_owned(),
                });
            }
            Err(error) => {
                return Err(self
                    .engine
                    .refused(format!("inspect the image `{image}`"), &error));
            }
        };
        self.swept.get_or_init(|| sweep::sweep(docker)).await;
        Ok(ImageFacts::of(&inspected))
    }

    /// The network of all containers with this way out.
    async fn network(&self, way_out: bool) -> Result<Arc<Network>, SandboxError> {
        let make = || async {
            let engine = Arc::clone(&self.engine);
            Ok(Arc::new(Network::create(engine, way_out).await?))
        };
        let network = self.networks[usize::from(way_out)].get_or_try_init(make);
        network.await.map(Arc::clone)
    }

    /// What cannot be had from this engine.
    fn refuse(&self, needs: &Needs, way_out: bool) -> Result<(), SandboxError> {
        let Some(machine) = self.engine.remote() else {
            return Ok(());
        };
        needs.refuse_mounts(&format!("the engine on `{machine}`"))?;
        if way_out {
            return Ok(());
        }
        Err(SandboxError::Unsupported(format!(
            "containers without network can only be reached on this machine, and the engine is on \
             `{machine}`"
        )))
    }

    /// What the container of a task may use, and whether it reaches the world outside.
    fn resources(&self, needs: &Needs) -> (ContainerLimits, bool) {
        let asked = self.fixed.or(needs.resources);
        let limits = ContainerLimits {
            memory_bytes: asked.memory_bytes.or(self.limits.memory_bytes),
            cpus: asked.cpus.or(self.limits.cpus),
            pids: asked.pids.or(self.limits.pids),
            world_bytes: self.limits.world_bytes,
        };
        (limits, asked.network.unwrap_or(self.network))
    }

    async fn start_container(
        &self,
        request: StartRequest,
    ) -> Result<RunningEnvironment, SandboxError> {
        let needs = &request.needs;
        let (limits, way_out) = self.resources(needs);
        self.refuse(needs, way_out)?;
        let image = self.image.as_deref().or(needs.image.as_deref());
        let image = image.unwrap_or(DEFAULT_IMAGE);
        let prepare = async { Ok((self.inspect(image).await?, self.network(way_out).await?)) };
        let (facts, network) = tokio::select! {
            () = request.cancel.cancelled() => return Err(SandboxError::Cancelled),
            prepared = prepare => prepared?,
        };
        let log = log::open(&request.log).await?;
        let reach = match self.engine.remote() {
            _ if !way_out => Reach::OwnAddress,
            Some(machine) => Reach::Machine(machine),
            None => Reach::Loopback,
        };
        let plan = container::Plan {
            name: format!(
                "archipelago-{}-{:08x}",
                plain_name(&request.trial),
                fastrand::u32(..)
            ),
            body: self.body(&body::Occasion {
                trial: &request.trial,
                image,
                facts: &facts,
                network: network.name(),
                reach: &reach,
                limits: &limits,
                needs,
            }),
            network,
            host: match reach {
                Reach::Loopback => Some("127.0.0.1".to_owned()),
                Reach::Machine(name) => Some(name.to_owned()),
                Reach::OwnAddress => None,
            },
            log,
            log_path: request.log,
            limits,
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
