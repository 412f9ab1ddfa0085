//! Which of OpenAI's two interfaces a call goes to.

use futures::future::BoxFuture;
use serde_json::Value;

use super::OpenAi;
use super::dialect::{Needs, needs};
use crate::responses::Responses;
use llm_wire::extra_args::{Api, Settings};
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Provider, Reply};

/// How the interface of a model's calls is chosen, unless the extra argument `api` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Always this one.
    Fixed(Api),
    /// By model and parameters, at OpenAI itself or at Azure.
    ByNeed,
    /// By model and parameters, at another server that may serve OpenAI's models: tools are left to
    /// chat completions where nothing is said about reasoning.
    ByStatedNeed,
}

impl Choice {
    /// The interface for a call of `model`.
    pub(crate) fn interface(
        self,
        model: &str,
        request: &ChatRequest<'_>,
        settings: &Settings<'_>,
    ) -> Api {
        if let Some(api) = settings.api {
            return api;
        }
        let is_stated = match self {
            Self::Fixed(api) => return api,
            Self::ByNeed => false,
            Self::ByStatedNeed => true,
        };
        let effort = request
            .extra_args
            .get("reasoning_effort")
            .filter(|effort| !effort.is_null())
            .or(settings.reasoning_effort);
        let reasons = match effort.and_then(Value::as_str) {
            Some(effort) => effort != "none",
            None => !is_stated,
        };
        let is_needed = match needs(model) {
            Needs::Responses => true,
            Needs::ResponsesForTools => reasons && !request.tools.is_empty(),
            Needs::Nothing => false,
        };
        let is_asked =
            settings.reasoning_summary.is_some() || request.extra_args.contains_key("native_tools");
        if is_needed || is_asked {
            Api::Responses
        } else {
            Api::ChatCompletions
        }
    }
}

/// A model that is asked over the interface that the call needs.
#[derive(Debug)]
pub struct EitherInterface {
    /// The model, as OpenAI names it.
    pub model: String,
    /// How the interface is chosen.
    pub choice: Choice,
    /// The model over chat completions.
    pub chat: OpenAi,
    /// The model over the Responses interface.
    pub responses: Responses,
}

impl EitherInterface {
    fn chosen(&self, request: &ChatRequest<'_>) -> Result<&dyn Provider, ChatError> {
        let settings = Settings::read(request.extra_args).map_err(|reason| {
            ChatError::new(ChatErrorKind::UnsupportedParameter, self.name(), reason)
        })?;
        Ok(
            match self.choice.interface(&self.model, request, &settings) {
                Api::ChatCompletions => &self.chat,
                Api::Responses => &self.responses,
            },
        )
    }
}

impl Provider for EitherInterface {
    fn name(&self) -> &str {
        self.chat.name()
    }

    fn place(&self) -> Option<&str> {
        self.chat.place()
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        match self.chosen(&request) {
            Ok(provider) => provider.send(request),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    fn send_streaming<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<Reply, ChatError>> {
        match self.chosen(&request) {
            Ok(provider) => provider.send_streaming(request, sink),
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }
}
