//! OpenAI's Responses interface, used without anything being stored there.
//!
//! It is the interface on which newer models reason and call tools at once. A conversation is a list
//! of items; what the model thought comes sealed, is kept beside the message and goes back unchanged.

mod answer;
mod conversation;
mod items;
mod parameters;
mod parts;
mod request;
mod stream;

use serde_json::Value;

pub(crate) use request::Body;

use llm_wire::exchange::{Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Reply, failure};
use stream::Growing;

#[cfg(test)]
pub(crate) use answer::read;

/// One model of one server.
#[derive(Debug)]
pub struct Responses {
    server: Server,
    model: String,
}

impl Responses {
    /// The model that `server` calls `model`.
    pub fn new(server: Server, model: &str) -> Self {
        Self {
            server,
            model: model.to_owned(),
        }
    }

    /// Reads a stream to the end of its response.
    async fn follow(
        &self,
        answer: &mut Answer<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Value, ChatError> {
        let mut growing = Growing::default();
        let end = answer.events(|data| growing.push(data, sink)).await?;
        let response =
            end.ok_or_else(|| answer.broken_off("the stream ended before the response was whole"))?;
        match answer.told(&response) {
            Some(error) => Err(error),
            None => Ok(response),
        }
    }
}

impl Served for Responses {
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
        let names = ToolNames::new(request.tools, request.messages);
        let mut body = Body::new(&request, &settings, &names, &self.model).map_err(refused)?;
        body.stream = sink.is_some();
        let bytes = self.server.written(&body)?;
        let headers = self
            .server
            .endpoint
            .call_headers(&request.labels, &settings);
        let mut answer = self.server.post("/responses", headers, bytes).await?;
        let raw = if answer.is_event_stream() {
            self.follow(&mut answer, sink).await?
        } else {
            answer.json().await?
        };
        if raw.get("status").and_then(Value::as_str) == Some("failed") {
            return Err(answer.malformed("the response failed and does not say why"));
        }
        let mut reply =
            answer::read(raw, &self.model, &names).map_err(|reason| answer.malformed(&reason))?;
        reply.request_id = failure::request_id(&answer.headers);
        Ok(reply)
    }
}

#[cfg(test)]
mod vector_tests;
