//! Why a configuration is not applied.

use std::time::Duration;

use formats::owner::Owner;
use serde_json::{Map, Value, json};

/// Why [`Gateway::apply`](crate::Gateway::apply) failed. The previous configuration keeps serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The configuration cannot be used as it is (HTTP 400).
    #[error("{0}")]
    Invalid(String),
    /// Servers did not get ready (HTTP 503).
    #[error("{}", not_ready(.0))]
    NotReady(Vec<FailedServer>),
    /// Other configurations were being applied for too long (HTTP 503).
    #[error("gave up after waiting {:.1} s for another configuration to be applied (apply_queue_timeout)", .0.as_secs_f64())]
    Busy(Duration),
    /// The gateway was shut down (HTTP 503).
    #[error("the gateway was shut down")]
    ShutDown,
    /// A defect of ours (HTTP 500).
    #[error("{0}")]
    Internal(String),
}

/// A server that did not get ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedServer {
    /// Its name.
    pub server: String,
    /// What happened: the error of the operating system, the exit status, the last lines of stderr.
    pub error: String,
    /// How many times it was tried.
    pub attempts: u32,
}

fn not_ready(failed: &[FailedServer]) -> String {
    let each: Vec<String> = failed
        .iter()
        .map(|one| format!("`{}`: {}", one.server, one.error))
        .collect();
    format!("MCP servers not ready: {}", each.join("; "))
}

impl ApplyError {
    /// The HTTP status of the answer (`spec/environment.md` §5.2).
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) => 400,
            Self::NotReady(_) | Self::Busy(_) | Self::ShutDown => 503,
            Self::Internal(_) => 500,
        }
    }

    /// The value of `detail` in the answer: a text, or the object of `spec/environment.md` §5.4.
    #[must_use]
    pub fn detail(&self) -> Value {
        let Self::NotReady(failed) = self else {
            return Value::String(self.to_string());
        };
        let names: Vec<&str> = failed.iter().map(|one| one.server.as_str()).collect();
        let details: Map<String, Value> = failed
            .iter()
            .map(|one| {
                let value = json!({"error": one.error, "attempts": one.attempts});
                (one.server.clone(), value)
            })
            .collect();
        json!({
            "error": format!("MCP servers not ready: {}", names.join(", ")),
            "failed_servers": names,
            "details": details,
        })
    }

    /// Who has to act. A server that does not start is a matter of the configuration that names it.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Invalid(_) | Self::NotReady(_) => Owner::Configuration,
            Self::Busy(_) | Self::Internal(_) => Owner::Infrastructure,
            Self::ShutDown => Owner::Cancelled,
        }
    }
}
