//! Why an environment could not be started, and that one ended on its own.

use std::path::PathBuf;
use std::time::Duration;

use formats::owner::{Failure, Owner};

use crate::ClientError;

/// An environment that ended although nobody stopped it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment ended with {exit}{last_lines}")]
pub struct EnvironmentDied {
    /// `exit status 3` or `signal 9 (SIGKILL)`.
    pub exit: String,
    /// The last lines that it printed.
    pub last_lines: LastLines,
    /// Where all of its output is.
    pub log: PathBuf,
}

impl EnvironmentDied {
    /// The failure as it stands in files.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::new(
            Owner::Infrastructure,
            "environment_died",
            format!("{self} (all output: `{}`)", self.log.display()),
        )
        .retryable(true)
    }
}

/// The last lines of a log, the oldest first; bounded in number and length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastLines(pub Vec<String>);

impl std::fmt::Display for LastLines {
    /// The end of a sentence: an indented block, or that there is nothing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str(" without printing anything");
        }
        f.write_str("; its last lines:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// Why an environment could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The folder or the log of the trial cannot be made.
    #[error("cannot make {what} `{path}`: {source}")]
    Folder {
        /// What it is for, in words.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The environment's program cannot be started.
    #[error("cannot start the environment program `{program}`: {source}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended before it was ready.
    #[error("the environment did not become ready: {0}")]
    Died(EnvironmentDied),
    /// It neither ended nor said where it listens.
    #[error("the environment did not say within {limit:?} where it listens{last_lines}")]
    NotListening {
        /// The limit `ready` of the sandbox.
        limit: Duration,
        /// What it printed last.
        last_lines: LastLines,
    },
    /// It said where it listens and does not answer there.
    #[error("the environment does not answer: {0}")]
    Unhealthy(#[source] Box<ClientError>),
    /// The same, with what it printed, where the client does not know it.
    #[error("the environment does not answer: {source}{last_lines}")]
    NotHealthy {
        /// The last health check.
        source: Box<ClientError>,
        /// What it printed last.
        last_lines: LastLines,
    },
    /// The container engine does not answer.
    #[error(
        "cannot reach the container engine at `{host}`: {reason}; start it, or name another one \
         in `DOCKER_HOST`"
    )]
    Engine {
        /// Its address, as in `DOCKER_HOST`.
        host: String,
        /// What is wrong.
        reason: String,
    },
    /// The engine does not have the image.
    #[error(
        "the container engine at `{host}` has no image `{image}`; build it with `archipelago image \
         build`, or fetch it with `docker pull {image}`"
    )]
    ImageMissing {
        /// The image.
        image: String,
        /// The engine.
        host: String,
    },
    /// The engine refused something.
    #[error("the container engine could not {doing}: {reason}")]
    Refused {
        /// What it was asked for.
        doing: String,
        /// What it said.
        reason: String,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Unsupported(String),
    /// The caller's token was cancelled.
    #[error("the start of the environment was cancelled")]
    Cancelled,
}

impl SandboxError {
    /// Who has to act.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match self {
            Self::Spawn { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                    Owner::Configuration
                }
                _ => Owner::Infrastructure,
            },
            Self::Unhealthy(error) => error.owner(),
            Self::Cancelled => Owner::Cancelled,
            Self::ImageMissing { .. } | Self::Unsupported(_) => Owner::Configuration,
            Self::Folder { .. }
            | Self::Died(_)
            | Self::NotListening { .. }
            | Self::NotHealthy { .. }
            | Self::Engine { .. }
            | Self::Refused { .. } => Owner::Infrastructure,
        }
    }

    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "sandbox_folder",
            Self::Spawn { .. } => "environment_program",
            Self::Died(_) => "environment_died",
            Self::NotListening { .. } => "environment_not_ready",
            Self::Unhealthy(error) => error.kind(),
            Self::NotHealthy { source, .. } => source.kind(),
            Self::Engine { .. } => "engine_unreachable",
            Self::ImageMissing { .. } => "image_missing",
            Self::Refused { .. } => "engine_refused",
            Self::Unsupported(_) => "sandbox_unsupported",
            Self::Cancelled => "cancelled",
        }
    }

    /// The failure as it stands in files.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::new(self.owner(), self.kind(), self.to_string())
            .retryable(self.owner() == Owner::Infrastructure)
    }
}
