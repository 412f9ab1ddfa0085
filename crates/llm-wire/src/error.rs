//! What can go wrong, who owns it, and whether a repetition can help.

use std::time::Duration;

use formats::owner::{Failure, Owner};

/// A failed chat call.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{provider}: {message}")]
pub struct ChatError {
    /// What kind of failure it is.
    pub kind: ChatErrorKind,
    /// The provider, as in model names.
    pub provider: String,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// What the provider or the transport said, secrets removed, at most a few thousand characters.
    pub message: String,
    /// How long the provider asks to wait before the next attempt.
    pub retry_after: Option<Duration>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// The provider said that a repetition is useless (`x-should-retry: false`).
    pub final_word: bool,
}

impl ChatError {
    /// A failure without an answer of the provider.
    pub fn new(
        kind: ChatErrorKind,
        provider: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            provider: provider.into(),
            status: None,
            message: message.into(),
            retry_after: None,
            request_id: None,
            final_word: false,
        }
    }

    /// Whether the same request could succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        self.kind.is_retryable() && !self.final_word
    }
}

/// The kinds of failure of a chat call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// Too many requests or tokens for now.
    RateLimit,
    /// The account has no credit or quota left; waiting does not help.
    Credit,
    /// The provider is overloaded.
    Overloaded,
    /// The provider failed.
    Server,
    /// No whole reply in time.
    Timeout,
    /// The connection could not be made or broke.
    Connection,
    /// The reply is not what the interface promises.
    MalformedReply,
    /// The conversation does not fit into the model's context.
    ContextWindow,
    /// The request was refused for its content.
    ContentFilter,
    /// The request is malformed in the provider's eyes.
    BadRequest,
    /// A parameter that this model does not take.
    UnsupportedParameter,
    /// The request is too large in bytes or tokens.
    TooLarge,
    /// The credentials are missing, wrong or not allowed to do this.
    Auth,
    /// The model or the address does not exist.
    NotFound,
    /// A budget of ours is used up.
    Budget,
    /// A script has no answer for the conversation.
    Script,
    /// A recording has no answer for the conversation.
    NotRecorded,
    /// The call cannot be recorded as asked.
    Recording,
}

impl ChatErrorKind {
    /// A stable word for files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimit => "rate_limit",
            Self::Credit => "credit",
            Self::Overloaded => "overloaded",
            Self::Server => "server_error",
            Self::Timeout => "model_timeout",
            Self::Connection => "connection",
            Self::MalformedReply => "malformed_reply",
            Self::ContextWindow => "context_window",
            Self::ContentFilter => "content_filter",
            Self::BadRequest => "bad_request",
            Self::UnsupportedParameter => "unsupported_parameter",
            Self::TooLarge => "request_too_large",
            Self::Auth => "auth",
            Self::NotFound => "not_found",
            Self::Budget => "budget",
            Self::Script => "script",
            Self::NotRecorded => "not_recorded",
            Self::Recording => "recording",
        }
    }

    /// The kind that [`as_str`](Self::as_str) names `word`.
    pub fn from_word(word: &str) -> Option<Self> {
        const ALL: [ChatErrorKind; 18] = [
            ChatErrorKind::RateLimit,
            ChatErrorKind::Credit,
            ChatErrorKind::Overloaded,
            ChatErrorKind::Server,
            ChatErrorKind::Timeout,
            ChatErrorKind::Connection,
            ChatErrorKind::MalformedReply,
            ChatErrorKind::ContextWindow,
            ChatErrorKind::ContentFilter,
            ChatErrorKind::BadRequest,
            ChatErrorKind::UnsupportedParameter,
            ChatErrorKind::TooLarge,
            ChatErrorKind::Auth,
            ChatErrorKind::NotFound,
            ChatErrorKind::Budget,
            ChatErrorKind::Script,
            ChatErrorKind::NotRecorded,
            ChatErrorKind::Recording,
        ];
        ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether the same request could succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::RateLimit
                | Self::Overloaded
                | Self::Server
                | Self::Timeout
                | Self::Connection
                | Self::MalformedReply
        )
    }

    /// Who has to act.
    #[must_use]
    pub const fn owner(self) -> Owner {
        match self {
            Self::ContextWindow | Self::ContentFilter => Owner::Model,
            Self::Auth
            | Self::NotFound
            | Self::UnsupportedParameter
            | Self::Credit
            | Self::Budget
            | Self::Script
            | Self::NotRecorded => Owner::Configuration,
            Self::RateLimit
            | Self::Overloaded
            | Self::Server
            | Self::Timeout
            | Self::Connection
            | Self::MalformedReply
            | Self::BadRequest
            | Self::TooLarge
            | Self::Recording => Owner::Infrastructure,
        }
    }
}

impl From<&ChatError> for Failure {
    fn from(error: &ChatError) -> Self {
        Self::new(error.kind.owner(), error.kind.as_str(), error.to_string())
            .retryable(error.is_retryable())
    }
}

/// The provider that a bare name most likely means.
fn maker(name: &str) -> &'static str {
    let makers = [("claude", "anthropic"), ("gemini", "gemini")];
    let known = makers
        .into_iter()
        .find(|(beginning, _)| name.starts_with(beginning));
    known.map_or("openai", |(_, provider)| provider)
}

/// A model name that cannot be used; found before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelNameError {
    /// The name has no provider in front.
    #[error(
        "model `{name}` names no provider; write `provider/model`, such as `{}/{name}`",
        maker(name)
    )]
    NoProvider {
        /// The name.
        name: String,
    },
    /// The provider is not known.
    #[error("model `{name}`: unknown provider `{provider}`; known are {known}")]
    UnknownProvider {
        /// The name.
        name: String,
        /// Its first part.
        provider: String,
        /// The providers there are.
        known: String,
    },
    /// The provider is known, but this version has no translation for it.
    #[error("model `{name}`: provider `{provider}` is not available in this version, {hint}")]
    NotAvailable {
        /// The name.
        name: String,
        /// Its first part.
        provider: String,
        /// What to do instead.
        hint: String,
    },
    /// Credentials are missing.
    #[error("model `{name}` needs credentials: set {variables}")]
    NoCredentials {
        /// The name.
        name: String,
        /// The environment variables that would do.
        variables: String,
    },
    /// A setting of the provider is unusable.
    #[error("model `{name}`: {reason}")]
    Invalid {
        /// The name.
        name: String,
        /// What is wrong, with the value.
        reason: String,
    },
}
