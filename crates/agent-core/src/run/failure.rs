//! Who owns a failed model call (`spec/agents.md` §14.2).

use formats::owner::{Failure, Owner};
use formats::trajectory::AgentStatus;
use llm_client::{ChatError, ChatErrorKind};

/// What a provider says when it refuses the pictures of a conversation, lower-case. The model
/// asked for them, and they come again with every request.
const REFUSED_PICTURES: &[&str] = &[
    "not a multimodal model",
    "not support multimodal",
    "not multimodal",
    "many-image",
    "2000 pixels",
    "exceeds 5 mb",
    "5242880",
    "asset is too large",
    "image decode limit exceeded",
    "images, exceeding the maximum of",
];

/// The failure that a failed model call is for the run.
#[must_use]
pub fn model_failure(error: &ChatError) -> Failure {
    let refused_pictures = matches!(
        error.kind,
        ChatErrorKind::BadRequest | ChatErrorKind::TooLarge
    ) && {
        let text = error.message.to_lowercase();
        REFUSED_PICTURES.iter().any(|phrase| text.contains(phrase))
    };
    if refused_pictures {
        Failure::new(Owner::Model, "refused_pictures", error.to_string())
    } else {
        Failure::from(error)
    }
}

/// The status of a run that ends with a failure: what the model owns is `failed`, everything else
/// is `error`.
pub(crate) fn status_of(failure: &Failure) -> AgentStatus {
    match failure.owner {
        Owner::Model => AgentStatus::Failed,
        Owner::Cancelled => AgentStatus::Cancelled,
        Owner::Infrastructure | Owner::Configuration => AgentStatus::Error,
    }
}
