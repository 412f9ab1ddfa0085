//! Google's `generateContent` interface (<https://ai.google.dev/api/generate-content>), at the Gemini API
//! and at Vertex AI.

mod answer;
mod blocks;
mod conversation;
mod family;
mod parameters;
mod request;
mod stream;
mod thinking;
mod tools;
mod wire;

use http::HeaderName;
use secrecy::SecretString;
use serde_json::Value;

use answer::Reading;
use conversation::Signatures;
pub use family::version;
use family::{Abilities, abilities};
use llm_wire::exchange::{Answer, Served, Server};
use llm_wire::extra_args::Settings;
use llm_wire::{ChatError, ChatErrorKind, ChatRequest, DeltaSink, Endpoint, Reply, failure};
use request::Body;
use stream::Growing;
use tools::Functions;

/// The version of the interface that addresses without a path get.
const VERSION: &str = "v1beta";

/// One Gemini model at one server.
#[derive(Debug)]
pub struct Gemini {
    server: Server,
    model: String,
    abilities: Abilities,
    /// The path of the model, without what is asked of it.
    path: String,
}

/// How one attempt went wrong, for whoever can ask in another way.
#[derive(Debug)]
struct Failed {
    error: ChatError,
    /// The request held signatures, and the server does not know them.
    unknown_signature: bool,
}

impl Gemini {
    /// The server of the Gemini API at `base`, which may be given with or without a version.
    ///
    /// # Errors
    /// What is wrong with the base URL or the key.
    pub fn endpoint(base: &str, key: Option<SecretString>) -> Result<Endpoint, String> {
        let base = base.trim_end_matches('/');
        let host = base.split_once("://").map_or(base, |(_, host)| host);
        let base = if host.contains('/') {
            base.to_owned()
        } else {
            format!("{base}/{VERSION}")
        };
        Endpoint::with_key_in(&base, key, &HeaderName::from_static("x-goog-api-key"))
    }

    /// The model `model` at the Gemini API.
    pub fn new(provider: &str, model: &str, endpoint: Endpoint, http: reqwest::Client) -> Self {
        // Tuned models have a collection of their own.
        let path = if model.contains('/') {
            format!("/{model}")
        } else {
            format!("/models/{model}")
        };
        Self::at(provider, model, &path, endpoint, http)
    }

    /// The model `model` at `path` of a server.
    pub fn at(
        provider: &str,
        model: &str,
        path: &str,
        endpoint: Endpoint,
        http: reqwest::Client,
    ) -> Self {
        Self {
            server: Server {
                provider: provider.to_owned(),
                endpoint,
                http,
            },
            abilities: abilities(model),
            model: model.to_owned(),
            path: path.to_owned(),
        }
    }

    async fn ask_with(
        &self,
        request: ChatRequest<'_>,
        settings: &Settings<'_>,
        functions: &Functions,
        signatures: Signatures,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Reply, Failed> {
        let fail = |error: ChatError| Failed {
            error,
            unknown_signature: false,
        };
        let body = Body::new(
            &request,
            settings,
            functions,
            &self.model,
            self.abilities,
            signatures,
        )
        .map_err(|(kind, reason)| fail(self.server.error(kind, &reason)))?;
        let bytes = self.server.written(&body).map_err(fail)?;
        let headers = self.server.endpoint.call_headers(&request.labels, settings);
        let streams = sink.is_some();
        let path = self.address(streams);
        let mut answer = self
            .server
            .post(&path, headers, bytes)
            .await
            .map_err(|error| Failed {
                unknown_signature: signatures == Signatures::Own
                    && error.status == Some(400)
                    && is_about_signature(&error.message),
                error,
            })?;
        let raw = if answer.is_event_stream() {
            self.follow(&mut answer, sink).await.map_err(fail)?
        } else {
            answer.json().await.map_err(fail)?
        };
        let reading = Reading {
            model: &self.model,
            functions,
            answer: body.answer.as_ref(),
            one_call: body.one_call,
        };
        let request_id = failure::request_id(&answer.headers);
        let mut reply = answer::read(raw, reading).map_err(|(kind, reason)| {
            let mut error = answer.malformed(&reason);
            error.kind = kind;
            fail(error)
        })?;
        reply.request_id = reply.request_id.or(request_id);
        Ok(reply)
    }

    fn address(&self, streams: bool) -> String {
        let verb = if streams {
            ":streamGenerateContent?alt=sse"
        } else {
            ":generateContent"
        };
        format!("{}{verb}", self.path)
    }

    /// Reads a stream to its end.
    async fn follow(
        &self,
        answer: &mut Answer<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Value, ChatError> {
        let mut growing = Growing::default();
        answer.events(|data| growing.push(data, sink)).await?;
        growing
            .finish()
            .ok_or_else(|| answer.broken_off("the stream ended before the answer was whole"))
    }
}

/// Whether a refusal is about a signature that the server cannot read.
fn is_about_signature(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("thought signature") || message.contains("thought_signature")
}

impl Served for Gemini {
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
        let language = parameters::language(request.extra_args);
        let functions = Functions::new(request.tools, request.messages, language)
            .map_err(|reason| self.server.error(ChatErrorKind::BadRequest, &reason))?;
        let ask = |signatures| self.ask_with(request, &settings, &functions, signatures, sink);
        match ask(Signatures::Own).await {
            Ok(reply) => Ok(reply),
            // A conversation that began at another server or with another model can go on here, if
            // not with the thoughts of before.
            Err(failed) if failed.unknown_signature => {
                let provider = &self.server.provider;
                tracing::warn!(provider, "thought signatures are refused, and left out");
                let again = ask(Signatures::StandIn).await;
                again.map_err(|failed| failed.error)
            }
            Err(failed) => Err(failed.error),
        }
    }
}

#[cfg(test)]
mod golden_tests;
