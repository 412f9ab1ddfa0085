//! Why a piece of evidence cannot be given.

use formats::owner::Owner;

/// Why a piece of evidence cannot be given. The sentence names the world, file or database.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// A world, or a file of one, could not be read.
    #[error("{0}")]
    Unreadable(String),
    /// What was asked for cannot be answered: no such database, a query that fails.
    #[error("{0}")]
    Request(String),
}

impl EvidenceError {
    /// Who has to act. Never the model: what it left behind is evidence, however broken.
    #[must_use]
    pub const fn owner(&self) -> Owner {
        match self {
            Self::Unreadable(_) => Owner::Infrastructure,
            Self::Request(_) => Owner::Configuration,
        }
    }

    pub(crate) fn unreadable(text: impl Into<String>) -> Self {
        Self::Unreadable(text.into())
    }

    pub(crate) fn request(text: impl Into<String>) -> Self {
        Self::Request(text.into())
    }
}
