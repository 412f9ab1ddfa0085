//! Servers that speak OpenAI's chat-completions format (`spec/llm.md` §17, §20).

mod answer;
mod dialect;
mod interfaces;
mod parameters;
mod request;
mod stream;
mod wire;

use http::HeaderMap;
use serde_json::Value;

pub use dialect::Dialect;
pub(crate) use dialect::is_reasoning_model;
pub use interfaces::{Choice, EitherInterface};

use llm_wire::exchange::{Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Reply, failure};
use request::Body;
use stream::Growing;

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
}

/// Reads a stream to the end of its reply.
async fn follow(answer: &mut Answer<'_>, sink: Option<DeltaSink<'_>>) -> Result<Value, ChatError> {
    let mut growing = Growing::default();
    let end = answer.events(|data| growing.push(data, sink)).await?;
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

    async fn ask(
        &self,
        request: ChatRequest<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Reply, ChatError> {
        let refused = |reason: String| {
            self.server
                .error(ChatErrorKind::UnsupportedParameter, &reason)
        };
        let settings = Settings::read(request.extra_args).map_err(refused)?;
        let mut body =
            Body::new(&request, &settings, self.dialect, &self.model).map_err(refused)?;
        body.stream = sink.is_some();
        let bytes = self.server.written(&body)?;
        let endpoint = &self.server.endpoint;
        let mut headers = endpoint.call_headers(&request.labels, &settings);
        endpoint.tell_wait(&mut headers, settings.timeout.unwrap_or(request.timeout));
        let mut answer = self
            .server
            .post("/chat/completions", headers, bytes)
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
}

#[cfg(test)]
mod golden_tests;
