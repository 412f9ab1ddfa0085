//! Who is to blame for a failure, and the exit codes that say so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The owner of a failure: who has to act so that it does not happen again.
///
/// It is decided where the failure is known and carried unchanged through error types, the
/// trajectory, the ledger and the exit code. Only a failure that the model owns counts against its
/// score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The model under test: it gave up, ran out of steps, overflowed its context, was filtered.
    Model,
    /// The machine, the network, a provider, an environment, a tool server.
    Infrastructure,
    /// Whoever wrote the flags, the task files or the environment variables.
    Configuration,
    /// The user or a signal ended it.
    Cancelled,
}

impl Owner {
    /// The exit code of a program that ends with a failure of this owner
    /// (contract 6 of the design: 1 agent or grade failed, 2 configuration, 3 infrastructure,
    /// 130 cancelled).
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Model => 1,
            Self::Configuration => 2,
            Self::Infrastructure => 3,
            Self::Cancelled => 130,
        }
    }

    /// The word that stands in files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Infrastructure => "infrastructure",
            Self::Configuration => "configuration",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failure as it stands in a file: who owns it, what kind it is, what happened, and whether the
/// same attempt could succeed when repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Who has to act.
    pub owner: Owner,
    /// A stable word for programs, such as `context_window`, `step_limit`, `rate_limit`.
    pub kind: String,
    /// One sentence for people.
    pub message: String,
    /// Whether a repetition without any change could succeed.
    #[serde(default)]
    pub retryable: bool,
}

impl Failure {
    /// A failure that a repetition would not mend.
    pub fn new(owner: Owner, kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            owner,
            kind: kind.into(),
            message: message.into(),
            retryable: false,
        }
    }

    /// The same failure, marked as one that may pass when repeated.
    #[must_use]
    pub const fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        let codes: Vec<u8> = [
            Owner::Model,
            Owner::Configuration,
            Owner::Infrastructure,
            Owner::Cancelled,
        ]
        .into_iter()
        .map(Owner::exit_code)
        .collect();
        assert_eq!(codes, [1, 2, 3, 130]);
    }
}
