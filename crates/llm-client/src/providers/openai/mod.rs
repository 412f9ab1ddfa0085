//! Servers that speak OpenAI's chat-completions format (`spec/llm.md` §17, §20).

mod answer;
mod dialect;
mod parameters;
mod request;
mod transport;
mod wire;

use async_openai::Client;
use async_openai::error::OpenAIError;
use async_openai::traits::RequestOptionsBuilder;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::Value;

pub(crate) use dialect::Dialect;

use crate::call::ChatRequest;
use crate::error::{ChatError, ChatErrorKind};
use crate::extra_args::Settings;
use crate::provider::{Provider, Reply};
use crate::providers::{Endpoint, exchange, failure};
use request::Body;
use transport::{Exchange, NotJson, Refusal, TooLong};

/// One model of one server.
#[derive(Debug)]
pub(crate) struct OpenAi {
    provider: String,
    model: String,
    endpoint: Endpoint,
    dialect: Dialect,
    http: reqwest::Client,
}

impl OpenAi {
    /// The model that the server at `endpoint` calls `model`.
    pub(crate) fn new(
        provider: &str,
        model: &str,
        endpoint: Endpoint,
        dialect: Dialect,
        http: reqwest::Client,
    ) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            endpoint,
            dialect,
            http,
        }
    }

    async fn attempt(&self, request: ChatRequest<'_>) -> Result<Reply, ChatError> {
        let settings = Settings::read(request.extra_args)
            .map_err(|reason| self.error(ChatErrorKind::UnsupportedParameter, reason))?;
        let body = Body::new(&request, &settings, self.dialect, &self.model)
            .map_err(|reason| self.error(ChatErrorKind::UnsupportedParameter, reason))?;
        let headers = self.endpoint.call_headers(&request.labels, &settings);
        let exchange = Exchange::new(self.http.clone());
        let client = Client::build(self.http.clone(), self.endpoint.clone())
            .with_http_service(exchange.clone());
        let answer: Result<Value, OpenAIError> =
            client.chat().headers(headers).create_byot(&body).await;
        let raw = answer.map_err(|error| self.failure(error))?;
        let headers = exchange.take_headers();
        if let Some(error) = failure::inside_success(&self.provider, &headers, &raw) {
            return Err(self.without_key(error));
        }
        let request_id = failure::request_id(&headers);
        let mut reply = answer::read(raw, &self.model, &body.names).map_err(|reason| {
            let mut error = self.error(ChatErrorKind::MalformedReply, reason);
            error.status = Some(200);
            error.request_id.clone_from(&request_id);
            error
        })?;
        reply.request_id = request_id;
        reply.cost_usd = cost_header(&headers).or(reply.cost_usd);
        Ok(reply)
    }

    fn error(&self, kind: ChatErrorKind, message: impl Into<String>) -> ChatError {
        ChatError::new(kind, &self.provider, message)
    }

    /// Providers repeat wrong keys in their messages.
    fn without_key(&self, mut error: ChatError) -> ChatError {
        error.message = self.endpoint.without_key(&error.message);
        error
    }

    fn failure(&self, error: OpenAIError) -> ChatError {
        let error = match error {
            OpenAIError::Reqwest(error) => {
                exchange::broken(&self.provider, self.endpoint.host(), error)
            }
            OpenAIError::Boxed(error) => match error.downcast::<Refusal>() {
                Ok(refusal) => failure::from_answer(
                    &self.provider,
                    refusal.status,
                    &refusal.headers,
                    &refusal.body,
                ),
                Err(error) if error.is::<TooLong>() || error.is::<NotJson>() => {
                    self.error(ChatErrorKind::MalformedReply, error.to_string())
                }
                Err(error) => self.error(ChatErrorKind::Connection, error.to_string()),
            },
            other => self.error(ChatErrorKind::BadRequest, other.to_string()),
        };
        self.without_key(error)
    }
}

/// What a proxy says that the call cost.
fn cost_header(headers: &HeaderMap) -> Option<f64> {
    headers
        .get("x-litellm-response-cost")?
        .to_str()
        .ok()?
        .parse()
        .ok()
        .filter(|cost: &f64| cost.is_finite() && *cost >= 0.0)
}

impl Provider for OpenAi {
    fn name(&self) -> &str {
        &self.provider
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        self.attempt(request).boxed()
    }
}

#[cfg(test)]
mod golden_tests;
