//! Why a document could not be read.

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtractError {
    /// The document crosses a limit.
    #[error("{what}: got {got}, limit `{limit}` is {allowed}")]
    Limit {
        /// What is too large, in words.
        what: &'static str,
        /// The name of the limit in [`Limits`](crate::Limits).
        limit: &'static str,
        /// How much there is, as far as it was counted.
        got: u64,
        /// How much is allowed.
        allowed: u64,
    },
    /// The document is not what its name or its first bytes promise.
    #[error("broken {format} document: {reason}")]
    Broken {
        /// The format, such as `docx`.
        format: &'static str,
        /// What the parser said.
        reason: String,
    },
    /// The document cannot be read without a password.
    #[error("the {format} document is encrypted")]
    Encrypted {
        /// The format.
        format: &'static str,
    },
    /// The file itself cannot be read, or not be copied to a temporary place.
    #[error("cannot read the file: {reason}")]
    Read {
        /// What the system said.
        reason: String,
    },
    /// The document is of a format that LibreOffice has to convert, and was not converted.
    #[error("the {format} document cannot be converted: {reason}")]
    Convert {
        /// The format, such as `doc`.
        format: String,
        /// Which program failed, and how.
        reason: String,
    },
    /// The parser did not come to an end in time.
    #[error("reading the {format} document took more than {seconds} s (limit `{limit}`)")]
    Timeout {
        /// The format.
        format: &'static str,
        /// The name of the limit.
        limit: &'static str,
        /// The limit in seconds.
        seconds: u64,
    },
}

impl ExtractError {
    #[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
    pub(crate) fn read(error: std::io::Error) -> Self {
        Self::Read {
            reason: error.to_string(),
        }
    }

    pub(crate) fn broken(format: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Broken {
            format,
            reason: reason.to_string(),
        }
    }
}
