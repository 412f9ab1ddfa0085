//! Why a call to an environment failed, and who has to act.

use std::error::Error as _;
use std::path::PathBuf;
use std::time::Duration;

use formats::owner::{Failure, Owner};

use super::FailedServer;
use crate::EnvironmentDied;

/// The calls, as error messages name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `GET /health`.
    Health,
    /// `POST /data/populate`.
    Populate,
    /// `POST /apps`.
    Apps,
    /// `POST /data/snapshot`.
    Snapshot,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Health => "`GET /health`",
            Self::Populate => "`POST /data/populate`",
            Self::Apps => "`POST /apps`",
            Self::Snapshot => "`POST /data/snapshot`",
        })
    }
}

/// Why a call to an environment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is none.
    #[error("`{url}` is no address of an environment: {reason}")]
    Address {
        /// The address.
        url: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// The environment could not be reached, or the connection broke.
    #[error("{call} at {url} failed: {reason}{}", after(died.as_ref()))]
    Lost {
        /// Which call.
        call: Call,
        /// The environment.
        url: String,
        /// What the connection said.
        reason: String,
        /// How the environment ended, where it is known to have.
        died: Option<EnvironmentDied>,
    },
    /// It took too long.
    #[error("{call} was not answered within {limit:?}")]
    TimedOut {
        /// Which call.
        call: Call,
        /// The limit that it crossed.
        limit: Duration,
    },
    /// The environment answered with an error.
    #[error("{call} was answered with status {status}: {detail}")]
    Refused {
        /// Which call.
        call: Call,
        /// The HTTP status.
        status: u16,
        /// What the environment said, bounded.
        detail: String,
    },
    /// Servers of the configuration did not become ready.
    #[error("the environment could not start {}", servers(failed, summary))]
    ServersNotReady {
        /// The environment's own summary.
        summary: String,
        /// Each server that failed.
        failed: Vec<FailedServer>,
    },
    /// The reply is not of the documented shape.
    #[error("{call} was answered with something else than the interface says: {reason}")]
    Reply {
        /// Which call.
        call: Call,
        /// What does not fit.
        reason: String,
    },
    /// The reply is larger than the caller is willing to take.
    #[error("the reply to {call} is larger than the limit of {limit} bytes")]
    TooLarge {
        /// Which call.
        call: Call,
        /// The limit in bytes.
        limit: u64,
    },
    /// The world to send cannot be read.
    #[error("cannot read the world `{path}`: {reason}")]
    World {
        /// The archive or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Something on this machine failed.
    #[error("cannot write `{path}`: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl ClientError {
    /// Who has to act.
    ///
    /// A refusal with a 4xx status belongs to whoever wrote what was sent. Servers that did not
    /// become ready belong to the configuration where every one of them names a program or a
    /// folder that does not exist, else to the infrastructure.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match self {
            Self::Address { .. } | Self::World { .. } => Owner::Configuration,
            // 408 and 429 say that the environment was busy, not that the request was wrong.
            Self::Refused {
                status: 408 | 429, ..
            } => Owner::Infrastructure,
            Self::Refused { status, .. } if (400..500).contains(status) => Owner::Configuration,
            Self::ServersNotReady { failed, .. }
                if !failed.is_empty() && failed.iter().all(|server| server.missing) =>
            {
                Owner::Configuration
            }
            _ => Owner::Infrastructure,
        }
    }

    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Address { .. } => "environment_address",
            Self::Lost { died: Some(_), .. } => "environment_died",
            Self::Lost { .. } => "environment_lost",
            Self::TimedOut { .. } => "environment_timeout",
            Self::Refused { call, .. } => match call {
                Call::Health => "environment_unhealthy",
                Call::Populate => "populate_refused",
                Call::Apps => "apps_refused",
                Call::Snapshot => "snapshot_refused",
            },
            Self::ServersNotReady { .. } => "servers_not_ready",
            Self::Reply { .. } => "environment_reply",
            Self::TooLarge { .. } => "environment_reply_too_large",
            Self::World { .. } => "world_unreadable",
            Self::Write { .. } => "write_failed",
        }
    }

    /// How the environment ended, where that is why the call failed.
    #[must_use]
    pub const fn died(&self) -> Option<&EnvironmentDied> {
        match self {
            Self::Lost { died, .. } => died.as_ref(),
            _ => None,
        }
    }

    /// The failure as it stands in files.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::new(self.owner(), self.kind(), self.to_string())
            .retryable(self.owner() == Owner::Infrastructure)
    }

    /// Whether the same call could succeed on the environment as it is.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Lost { died, .. } => died.is_none(),
            Self::TimedOut { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || matches!(status, 408 | 429),
            _ => false,
        }
    }
}

fn after(died: Option<&EnvironmentDied>) -> String {
    died.map(|died| format!("; {died}")).unwrap_or_default()
}

fn servers(failed: &[FailedServer], summary: &str) -> String {
    match failed {
        [] => format!("its servers: {summary}"),
        [one] => format!("server `{}`: {}", one.name, one.reason),
        many => {
            let lines: Vec<String> = many
                .iter()
                .map(|server| format!("\n    `{}`: {}", server.name, server.reason))
                .collect();
            format!("{} servers:{}", many.len(), lines.concat())
        }
    }
}

/// An error with its causes, each said once. The address is left out: messages name it already.
pub(super) fn chain(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        cause = error.source();
    }
    if parts.is_empty() {
        return error.to_string();
    }
    parts.join(": ")
}
