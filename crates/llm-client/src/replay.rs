//! A provider that plays a recording: `replay/<path>`.
//!
//! It answers each request with what the recorded model answered to the same one, errors and
//! streamed pieces included. A request that is not in the recording is a mistake of whoever set it
//! up, and is told with its difference to the nearest one.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::recording::{Question, Recording};
use llm_wire::secrets::Secrets;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Provider, Reply};

const NAME: &str = "replay";

/// One recording, as a model.
#[derive(Debug)]
pub(crate) struct Replay {
    recording: Arc<Recording>,
    /// The model whose exchanges are played; all if unset.
    model: Option<String>,
    secrets: Secrets,
}

impl Replay {
    /// Plays the exchanges of `recording`, all or those with `model`.
    pub(crate) const fn new(
        recording: Arc<Recording>,
        model: Option<String>,
        secrets: Secrets,
    ) -> Self {
        Self {
            recording,
            model,
            secrets,
        }
    }

    fn answer(
        &self,
        request: &ChatRequest<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Reply, ChatError> {
        let question = Question::new(request, &self.secrets);
        let (deltas, outcome) = self
            .recording
            .play(
                &question,
                self.model.as_deref(),
                request.labels.trajectory_id,
            )
            .map_err(|reason| {
                let path = self.recording.path().display();
                let message = format!("the recording `{path}` has no answer: {reason}");
                ChatError::new(ChatErrorKind::NotRecorded, NAME, message)
            })?;
        if let Some(sink) = sink {
            for delta in deltas {
                sink(delta.delta());
            }
        }
        outcome
    }
}

impl Provider for Replay {
    fn name(&self) -> &str {
        NAME
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        async move { self.answer(&request, None) }.boxed()
    }

    fn send_streaming<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<Reply, ChatError>> {
        async move { self.answer(&request, Some(sink)) }.boxed()
    }
}
