//! Anthropic's Messages interface (`spec/llm.md` §18).

pub(crate) mod answer;
mod blocks;
pub(crate) mod cache;
pub(crate) mod conversation;
pub(crate) mod family;
pub(crate) mod output;
mod parameters;
pub(crate) mod request;
pub(crate) mod stream;
mod thinking;
pub(crate) mod tools;
pub(crate) mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use answer::{Reading, WINDOW_FULL};
use llm_wire::exchange::{Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Endpoint, Reply, failure};
use request::{Body, Style};
use stream::Growing;

/// The version of the interface that this client speaks.
const VERSION: &str = "2023-06-01";

/// The header with the beta features that a request uses.
const BETA_HEADER: &str = "anthropic-beta";
/// How tokens of people's accounts begin, which are no keys.
const OAUTH_BEGINNING: &str = "sk-ant-oat";
/// The beta feature by which such tokens are taken.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// How requests to Anthropic itself are written.
const DIRECT: Style = Style {
    marks: true,
    names_model: true,
    version: None,
};

/// How requests to Vertex AI are written: the address names the model.
const VERTEX: Style = Style {
    marks: true,
    names_model: false,
    version: Some("vertex-2023-10-16"),
};

/// `base` without the path of the interface, with which it may be given.
fn without_path(base: &str) -> &str {
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/messages").unwrap_or(base);
    base.strip_suffix("/v1").unwrap_or(base)
}

/// One Claude model at one server.
#[derive(Debug)]
pub struct Anthropic {
    server: Server,
    model: String,
    style: Style,
    route: Route,
}

/// A body as it is sent.
struct Written {
    bytes: Bytes,
    /// Whether it asks for a stream.
    streams: bool,
    /// The tool by which the answer comes, if it comes so.
    answer_tool: Option<&'static str>,
}

/// The address of a model.
#[derive(Debug)]
enum Route {
    /// That of all models.
    Messages,
    /// Its own path at Vertex AI, without what is asked of it.
    Vertex(String),
}

impl Route {
    fn address(&self, streams: bool) -> Cow<'static, str> {
        match (self, streams) {
            (Self::Messages, _) => Cow::Borrowed("/v1/messages"),
            (Self::Vertex(path), true) => Cow::Owned(format!("{path}:streamRawPredict")),
            (Self::Vertex(path), false) => Cow::Owned(format!("{path}:rawPredict")),
        }
    }
}

impl Anthropic {
    /// The server at `base`, which may be given with or without `/v1`.
    ///
    /// # Errors
    /// What is wrong with the base URL or the key.
    pub fn endpoint(base: &str, key: Option<SecretString>) -> Result<Endpoint, String> {
        let base = without_path(base);
        let is_oauth = |key: &SecretString| key.expose_secret().starts_with(OAUTH_BEGINNING);
        match key {
            Some(token) if is_oauth(&token) => {
                Self::with_bearer(base, token)?.with_header(BETA_HEADER, OAUTH_BETA)
            }
            key => Endpoint::with_key_in(base, key, &HeaderName::from_static("x-api-key"))?
                .with_header("anthropic-version", VERSION),
        }
    }

    /// The same server for a token, which some proxies want in the place of a key.
    ///
    /// # Errors
    /// What is wrong with the base URL or the token.
    pub fn endpoint_with_token(base: &str, token: SecretString) -> Result<Endpoint, String> {
        if token.expose_secret().starts_with(OAUTH_BEGINNING) {
            return Self::endpoint(base, Some(token));
        }
        Self::with_bearer(without_path(base), token)
    }

    fn with_bearer(base: &str, token: SecretString) -> Result<Endpoint, String> {
        Endpoint::new(base, Some(token))?.with_header("anthropic-version", VERSION)
    }

    /// The model that the server at `endpoint` calls `model`.
    pub fn new(provider: &str, model: &str, endpoint: Endpoint, http: reqwest::Client) -> Self {
        Self {
            server: Server {
                provider: provider.to_owned(),
                endpoint,
                http,
            },
            model: model.to_owned(),
            style: DIRECT,
            route: Route::Messages,
        }
    }

    /// The model `model` at `path` of Vertex AI.
    pub fn on_vertex(
        provider: &str,
        model: &str,
        path: String,
        endpoint: Endpoint,
        http: reqwest::Client,
    ) -> Self {
        Self {
            style: VERTEX,
            route: Route::Vertex(path),
            ..Self::new(provider, model, endpoint, http)
        }
    }

    /// Adds the beta features of a call to those of the server and of `extra_headers`.
    fn add_betas(&self, headers: &mut HeaderMap, betas: &[&str]) {
        let fixed = self.server.endpoint.fixed_headers().get(BETA_HEADER);
        let given = headers.get(BETA_HEADER);
        let known = [fixed, given].into_iter().flatten();
        let all: Vec<&str> = known
            .filter_map(|value| value.to_str().ok())
            .chain(betas.iter().copied())
            .collect();
        if let Ok(value) = HeaderValue::try_from(all.join(","))
            && !all.is_empty()
        {
            headers.insert(BETA_HEADER, value);
        }
    }

    fn written(
        &self,
        request: &ChatRequest<'_>,
        settings: &Settings<'_>,
        names: &ToolNames,
        stream: bool,
    ) -> Result<Written, ChatError> {
        let mut body = Body::new(request, settings, names, &self.model, self.style)
            .map_err(|(kind, reason)| self.server.error(kind, &reason))?;
        body.stream |= stream;
        Ok(Written {
            bytes: self.server.written(&body)?,
            streams: body.stream,
            answer_tool: body.answer_tool,
        })
    }

    /// Reads a stream to the end of its message.
    async fn follow(
        &self,
        answer: &mut Answer<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<(Value, BTreeMap<usize, String>), ChatError> {
        let mut growing = Growing::default();
        match answer.events(|data| growing.push(data, sink)).await? {
            Some(()) => growing.finish().map_err(|reason| answer.malformed(&reason)),
            None => Err(answer.broken_off("the stream ended before the message was whole")),
        }
    }
}

impl Served for Anthropic {
    fn server(&self) -> &Server {
        &self.server
    }

    async fn ask(
        &self,
        request: ChatRequest<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Reply, ChatError> {
        let settings = Settings::read(request.extra_args).map_err(|reason| {
            self.server
                .error(ChatErrorKind::UnsupportedParameter, &reason)
        })?;
        let names = ToolNames::new(request.tools, request.messages);
        let Written {
            bytes,
            streams,
            answer_tool,
        } = self.written(&request, &settings, &names, sink.is_some())?;
        let mut headers = self
            .server
            .endpoint
            .call_headers(&request.labels, &settings);
        self.add_betas(&mut headers, &settings.betas);
        let mut answer = self
            .server
            .post(&self.route.address(streams), headers, bytes)
            .await?;
        let (raw, arguments) = if answer.is_event_stream() {
            self.follow(&mut answer, sink).await?
        } else {
            (answer.json().await?, BTreeMap::new())
        };
        let request_id = failure::request_id(&answer.headers);
        if raw.get("stop_reason").and_then(Value::as_str) == Some(WINDOW_FULL) {
            // A larger limit would not help, only a shorter conversation.
            let mut error = self.server.error(
                ChatErrorKind::ContextWindow,
                "the reply filled the rest of the context window (stop_reason `model_context_window_exceeded`)",
            );
            error.request_id = request_id;
            return Err(error);
        }
        let reading = Reading {
            model: &self.model,
            names: &names,
            answer_tool,
            arguments: &arguments,
        };
        let mut reply = answer::read(raw, reading).map_err(|reason| answer.malformed(&reason))?;
        reply.request_id = request_id;
        Ok(reply)
    }
}

#[cfg(test)]
mod golden_tests;
#[cfg(test)]
mod request_tests;
