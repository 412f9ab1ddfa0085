//! Servers that speak OpenAI's chat-completions format (`spec/llm.md` §17, §20).

mod answer;
mod dialect;
mod interfaces;
mod parameters;
mod request;
mod stream;
mod transport;
mod wire;

use async_openai::Client;
use async_openai::error::OpenAIError;
use async_openai::traits::RequestOptionsBuilder;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::Value;

pub use dialect::Dialect;
pub(crate) use dialect::is_reasoning_model;
pub use interfaces::{Choice, EitherInterface};

use llm_wire::exchange::{self, Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Reply, failure};
use request::Body;
use stream::Growing;
use transport::{Exchange, NotJson, Place, Refusal, TooLong};

/// One model of one server.
#[derive(Debug)]
pub struct OpenAi {
    server: Server,
    model: String,
    dialect: Dialect,
}

impl OpenAi {
    /// The model that `server` calls `model`.
    pub fn new(server: Server, model: &str, dialect: Dialect) -> Self {
        Self {
            server,
            model: model.to_owned(),
            dialect,
        }
    }

    /// Sends `request` once, and tells `sink` of the pieces of the reply.
    async fn listen(
        &self,
        request: ChatRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<Reply, ChatError> {
        let refused = |reason: String| {
            self.server
                .error(ChatErrorKind::UnsupportedParameter, &reason)
        };
        let settings = Settings::read(request.extra_args).map_err(refused)?;
        let mut body =
            Body::new(&request, &settings, self.dialect, &self.model).map_err(refused)?;
        body.stream = true;
        let bytes = serde_json::to_vec(&body).map_err(|error| {
            self.server
                .error(ChatErrorKind::BadRequest, &error.to_string())
        })?;
        let mut headers = self
            .server
            .endpoint
            .call_headers(&request.labels, &settings);
        let wait = settings.timeout.unwrap_or(request.timeout);
        self.server.endpoint.tell_wait(&mut headers, wait);
        let mut answer = self
            .server
            .post("/chat/completions", headers, bytes.into())
            .await?;
        let raw = if answer.is_event_stream() {
            follow(&mut answer, sink).await?
        } else {
            answer.json().await?
        };
        let mut reply = answer::read(raw, &self.model, &body.names)
            .map_err(|reason| answer.malformed(&reason))?;
        reply.request_id = failure::request_id(&answer.headers);
        reply.cost_usd = cost_header(&answer.headers).or(reply.cost_usd);
        Ok(reply)
    }

    async fn ask(&self, request: ChatRequest<'_>) -> Result<Reply, ChatError> {
        let settings = Settings::read(request.extra_args).map_err(|reason| {
            self.server
                .error(ChatErrorKind::UnsupportedParameter, &reason)
        })?;
        let body = Body::new(&request, &settings, self.dialect, &self.model).map_err(|reason| {
            self.server
                .error(ChatErrorKind::UnsupportedParameter, &reason)
        })?;
        let Server { endpoint, http, .. } = &self.server;
        let mut headers = endpoint.call_headers(&request.labels, &settings);
        endpoint.tell_wait(&mut headers, settings.timeout.unwrap_or(request.timeout));
        let exchange = Exchange::new(http.clone());
        let client = Client::build(http.clone(), Place(endpoint.clone()))
            .with_http_service(exchange.clone());
        let answer: Result<Value, OpenAIError> =
            client.chat().headers(headers).create_byot(&body).await;
        let raw = answer.map_err(|error| self.failure(error))?;
        let headers = exchange.take_headers();
        if let Some(error) = failure::inside_success(&self.server.provider, &headers, &raw) {
            return Err(self.server.without_key(error));
        }
        let request_id = failure::request_id(&headers);
        let mut reply = answer::read(raw, &self.model, &body.names).map_err(|reason| {
            let mut error = self.server.error(ChatErrorKind::MalformedReply, &reason);
            error.status = Some(200);
            error.request_id.clone_from(&request_id);
            error
        })?;
        reply.request_id = request_id;
        reply.cost_usd = cost_header(&headers).or(reply.cost_usd);
        Ok(reply)
    }

    fn failure(&self, error: OpenAIError) -> ChatError {
        let error = match error {
            OpenAIError::Reqwest(error) => {
                exchange::broken(&self.server.provider, self.server.endpoint.host(), error)
            }
            OpenAIError::Boxed(error) => match error.downcast::<Refusal>() {
                Ok(refusal) => failure::from_answer(
                    &self.server.provider,
                    refusal.status,
                    &refusal.headers,
                    &refusal.body,
                ),
                Err(error) if error.is::<TooLong>() || error.is::<NotJson>() => self
                    .server
                    .error(ChatErrorKind::MalformedReply, &error.to_string()),
                Err(error) => self
                    .server
                    .error(ChatErrorKind::Connection, &error.to_string()),
            },
            other => self
                .server
                .error(ChatErrorKind::BadRequest, &other.to_string()),
        };
        self.server.without_key(error)
    }
}

/// Reads a stream to the end of its reply.
async fn follow(answer: &mut Answer<'_>, sink: DeltaSink<'_>) -> Result<Value, ChatError> {
    let mut growing = Growing::default();
    let end = answer.events(|data| growing.push(data, Some(sink))).await?;
    if end.is_some() || growing.has_stopped() {
        return Ok(growing.finish());
    }
    Err(answer.broken_off("the stream ended before the reply was whole"))
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

impl Served for OpenAi {
    fn server(&self) -> &Server {
        &self.server
    }

    fn attempt<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: Option<DeltaSink<'a>>,
    ) -> BoxFuture<'a, Result<Reply, ChatError>> {
        match sink {
            Some(sink) => self.listen(request, sink).boxed(),
            None => self.ask(request).boxed(),
        }
    }
}

#[cfg(test)]
mod golden_tests;
