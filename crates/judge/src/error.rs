//! Why there is no verdict.

use formats::Object;
use llm_client::{ChatError, ChatErrorKind, ModelNameError};
use serde_json::Value;

/// What kind of obstacle kept the judges from a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JudgeErrorKind {
    /// The settings are wrong.
    Config,
    /// The model does not exist or refuses our credentials.
    Auth,
    /// It could not be reached, or failed, as often as it was asked.
    Transport,
    /// The prompt does not fit into its context.
    Context,
    /// It answered, and never with a verdict that can be read.
    Output,
    /// It was not shown what would decide, or the votes have no majority.
    CannotAssess,
    /// A limit on the money for judging is used up.
    Budget,
    /// A defect of this program.
    Internal,
}

/// The judges gave no verdict.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct JudgeError {
    /// What kind of obstacle it was.
    pub kind: JudgeErrorKind,
    /// One sentence for people.
    pub message: String,
    /// What else is known, such as the raw replies.
    pub values: Object,
}

impl JudgeError {
    pub(crate) fn new(kind: JudgeErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            values: Object::new(),
        }
    }

    pub(crate) fn config(message: impl Into<String>) -> Self {
        Self::new(JudgeErrorKind::Config, message)
    }

    pub(crate) fn with_value(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.values.insert(key.to_owned(), value.into());
        self
    }
}

impl From<&ChatError> for JudgeError {
    fn from(error: &ChatError) -> Self {
        let kind = match error.kind {
            ChatErrorKind::Auth
            | ChatErrorKind::NotFound
            | ChatErrorKind::Credit
            | ChatErrorKind::UnsupportedParameter => JudgeErrorKind::Auth,
            ChatErrorKind::ContextWindow | ChatErrorKind::TooLarge => JudgeErrorKind::Context,
            ChatErrorKind::ContentFilter | ChatErrorKind::MalformedReply => JudgeErrorKind::Output,
            ChatErrorKind::Budget => JudgeErrorKind::Budget,
            ChatErrorKind::Script | ChatErrorKind::NotRecorded => JudgeErrorKind::Config,
            _ => JudgeErrorKind::Transport,
        };
        Self::new(kind, format!("the judge could not be asked: {error}"))
            .with_value("judge_error", error.kind.as_str())
    }
}

impl From<&ModelNameError> for JudgeError {
    fn from(error: &ModelNameError) -> Self {
        let kind = match error {
            ModelNameError::NoCredentials { .. } => JudgeErrorKind::Auth,
            _ => JudgeErrorKind::Config,
        };
        Self::new(kind, format!("the judge cannot be used: {error}"))
    }
}
