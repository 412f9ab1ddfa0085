//! Why a verifier could not be judged.

use evidence::EvidenceError;
use formats::Object;
use formats::owner::Owner;
use judge::{JudgeError, JudgeErrorKind};
use serde_json::Value;

/// What kind of obstacle kept a verifier from being judged (`spec/grading.md` §9.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The verifier, its eval config or the settings are wrong.
    Config,
    /// The judge model does not exist or refuses our credentials.
    JudgeAuth,
    /// The judge could not be reached, or failed, as often as it was asked.
    JudgeTransport,
    /// The prompt does not fit into the judge's context.
    JudgeContext,
    /// The judge answered, and never with a verdict that can be read.
    JudgeOutput,
    /// The judge was not shown what would decide, or the judges' votes have no majority.
    CannotAssess,
    /// A limit on the money for judging is used up.
    Budget,
    /// A program of the task's author failed in a way that says nothing about the agent.
    Sandbox,
    /// Something that several verifiers share, such as the diff, could not be made.
    Helper,
    /// A time limit of ours ran out.
    Timeout,
    /// Grading was ended from outside.
    Cancelled,
    /// A defect of this program.
    Internal,
}

impl ErrorKind {
    /// The word in `grades.json`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::JudgeAuth => "judge_auth",
            Self::JudgeTransport => "judge_transport",
            Self::JudgeContext => "judge_context",
            Self::JudgeOutput => "judge_output",
            Self::CannotAssess => "cannot_assess",
            Self::Budget => "budget",
            Self::Sandbox => "sandbox",
            Self::Helper => "helper",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }

    /// Who has to act. Never the model under test: what it did wrong is a verdict, not an error.
    #[must_use]
    pub const fn owner(self) -> Owner {
        match self {
            Self::Config
            | Self::JudgeAuth
            | Self::JudgeContext
            | Self::CannotAssess
            | Self::Budget => Owner::Configuration,
            Self::JudgeTransport
            | Self::JudgeOutput
            | Self::Sandbox
            | Self::Helper
            | Self::Timeout
            | Self::Internal => Owner::Infrastructure,
            Self::Cancelled => Owner::Cancelled,
        }
    }
}

/// A verifier that could not be judged. It becomes a result with status `error`; other verifiers
/// keep theirs.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    /// What kind of obstacle it was.
    pub kind: ErrorKind,
    /// One sentence for people.
    pub message: String,
    /// What else is known, such as the judge's raw replies; stands in the result's values.
    pub values: Object,
}

impl EvalError {
    /// An error without further values.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            values: Object::new(),
        }
    }

    /// A mistake in the verifier, its eval config or the settings.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// A shared piece of evidence could not be made.
    pub fn helper(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Helper, message)
    }

    /// The same error with one more value.
    #[must_use]
    pub fn with_value(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.values.insert(key.to_owned(), value.into());
        self
    }
}

impl From<EvidenceError> for EvalError {
    fn from(error: EvidenceError) -> Self {
        let kind = match error {
            EvidenceError::Request(_) => ErrorKind::Config,
            _ => ErrorKind::Helper,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<JudgeError> for EvalError {
    fn from(error: JudgeError) -> Self {
        let kind = match error.kind {
            JudgeErrorKind::Config => ErrorKind::Config,
            JudgeErrorKind::Auth => ErrorKind::JudgeAuth,
            JudgeErrorKind::Transport => ErrorKind::JudgeTransport,
            JudgeErrorKind::Context => ErrorKind::JudgeContext,
            JudgeErrorKind::Output => ErrorKind::JudgeOutput,
            JudgeErrorKind::CannotAssess => ErrorKind::CannotAssess,
            JudgeErrorKind::Budget => ErrorKind::Budget,
            _ => ErrorKind::Internal,
        };
        Self {
            kind,
            message: error.message,
            values: error.values,
        }
    }
}
