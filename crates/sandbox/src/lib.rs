//! Where an environment runs, and the client that talks to it.
//!
//! A [`Sandbox`] starts an environment and hands back a [`RunningEnvironment`]; what runs inside
//! is talked to by an [`EnvironmentClient`] over the environment's HTTP interface
//! (`spec/environment.md`). Three back ends are here: [`ProcessSandbox`], a process of this machine
//! with its own temporary roots; [`DockerSandbox`], a container; and [`UrlSandbox`], an environment
//! that someone else started.
//!
//! Every failure says who owns it ([`SandboxError::owner`], [`ClientError::owner`]), and a lost
//! connection is reported together with the exit status and the last log lines of the environment
//! that was behind it.

mod client;
mod docker;
mod error;
mod life;
mod log;
mod needs;
mod process;
mod rewrite;
mod running;
mod sandbox;
mod url;

pub use client::{
    Call, ClientError, ClientSettings, EnvironmentClient, FailedServer, Populated, SnapshotSaved,
};
pub use docker::{
    BuildNews, ContainerLimits, ContainerWaits, DEFAULT_IMAGE, DockerSandbox, Engine, ImageBuild,
    ImageEntry,
};
pub use error::{EnvironmentDied, LastLines, SandboxError};
pub use needs::{BindMount, Needs, Resources};
pub use process::{Isolation, ProcessLimits, ProcessSandbox};
pub use running::{RunningEnvironment, StopKind, Stopped};
pub use sandbox::{Sandbox, StartRequest};
pub use url::UrlSandbox;
