//! Models at AWS Bedrock, over its Converse interface.
//!
//! Converse has Anthropic's rules of turns, calls and results in other words: conversations are put
//! together by `messages` and written here. Requests carry an API key for Bedrock, or are
//! signed with AWS keys.

mod answer;
mod blocks;
mod credentials;
mod parameters;
mod profile;
mod request;
mod signing;
mod stream;

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::HeaderMap;
use serde_json::Value;

pub use credentials::{Authority, Identity, Missing, VARIABLES};

use crate::messages::answer::{Reading, WINDOW_FULL};
use llm_wire::exchange::{Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Reply, failure};
use parameters::Given;
use request::Converse;
use stream::Frames;

/// The media type of a stream of frames.
const FRAMES: &str = "application/vnd.amazon.eventstream";

/// One model in one region.
#[derive(Debug)]
pub struct Bedrock {
    server: Server,
    model: String,
    identity: Identity,
}

impl Bedrock {
    /// The address of Bedrock in `region`.
    pub fn address(region: &str) -> String {
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        format!("https://bedrock-runtime.{region}.{domain}")
    }

    /// The model (or inference profile, by id or ARN) `model` at `server`.
    pub fn new(server: Server, model: &str, identity: Identity) -> Self {
        Self {
            server,
            model: model.to_owned(),
            identity,
        }
    }

    /// The path of the model: an ARN has colons and slashes, which are no part of the path.
    fn path(&self, stream: bool) -> String {
        let mut path = "/model/".to_owned();
        for byte in self.model.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                path.push(char::from(byte));
            } else {
                path.push_str(&format!("%{byte:02X}"));
            }
        }
        path.push_str(if stream {
            "/converse-stream"
        } else {
            "/converse"
        });
        path
    }

    fn signature(&self, path: &str, body: &[u8]) -> Result<HeaderMap, ChatError> {
        let Authority::Keys(keys) = &self.identity.authority else {
            return Ok(HeaderMap::new());
        };
        let address = self.server.endpoint.address(path);
        signing::signature(
            keys,
            &self.identity.region,
            &address,
            body,
            SystemTime::now(),
        )
        .map_err(|reason| self.server.error(ChatErrorKind::Auth, &reason))
    }

    /// Reads a stream to the end of its message.
    async fn follow(
        &self,
        answer: &mut Answer<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<(Value, BTreeMap<usize, String>), ChatError> {
        let mut frames = Frames::default();
        answer.pieces(|bytes| frames.push(bytes, sink)).await?;
        frames
            .finish()
            .map_err(|_| answer.broken_off("the stream ended before the message was whole"))
    }
}

impl Served for Bedrock {
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
        let mut given = Given::read(request.extra_args).map_err(refused)?;
        let rest = std::mem::take(&mut given.rest);
        let settings = Settings::read(&rest).map_err(refused)?;
        let request = ChatRequest {
            extra_args: &rest,
            ..request
        };
        let names = ToolNames::new(request.tools, request.messages);
        let mut body = Converse::new(&request, &settings, given, &names, &self.model)
            .map_err(|(kind, reason)| self.server.error(kind, &reason))?;
        body.stream |= sink.is_some();
        let bytes = self.server.written(&body)?;
        let mut headers = self
            .server
            .endpoint
            .call_headers(&request.labels, &settings);
        let path = self.path(body.stream);
        headers.extend(self.signature(&path, &bytes)?);
        let mut answer = self.server.post(&path, headers, bytes).await?;
        let request_id = failure::request_id(&answer.headers);
        let mut arguments = BTreeMap::new();
        let streamed = answer.is_of_type(FRAMES);
        let raw = if streamed {
            let (message, written) = self.follow(&mut answer, sink).await?;
            arguments = written;
            message
        } else {
            answer.json().await?
        };
        let stop = raw.get("stopReason").or_else(|| raw.get("stop_reason"));
        if stop.and_then(Value::as_str) == Some(WINDOW_FULL) {
            let mut error = self.server.error(
                ChatErrorKind::ContextWindow,
                "the reply filled the rest of the context window (stopReason `model_context_window_exceeded`)",
            );
            error.request_id = request_id;
            return Err(error);
        }
        let reading = Reading {
            model: &self.model,
            names: &names,
            answer_tool: body.answer_tool,
            arguments: &arguments,
        };
        let read = if streamed {
            answer::finished(raw, reading)
        } else {
            answer::read(raw, reading)
        };
        let mut reply = read.map_err(|reason| answer.malformed(&reason))?;
        reply.request_id = request_id;
        Ok(reply)
    }
}

#[cfg(test)]
mod vector_tests;
