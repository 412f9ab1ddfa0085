//! One exchange over HTTP: a JSON body there, a bounded answer back.
//!
//! Nothing is repeated here; a failure becomes a [`ChatError`] without the address and the key.

use std::error::Error as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;
use serde_json::Value;

use crate::access::AccessToken;
use crate::call::ChatRequest;
use crate::endpoint::Endpoint;
use crate::error::{ChatError, ChatErrorKind};
use crate::failure;
use crate::provider::{DeltaSink, Provider, Reply};
use crate::sse::Events;

/// Most bytes of an answer that are read.
pub const LARGEST_ANSWER: usize = 64 * 1024 * 1024;

/// How long a body may become before its memory grows, in bytes.
const USUAL_BODY: usize = 64 * 1024;

/// Most characters of an unreadable answer that are told.
const LONGEST_BEGINNING: usize = 200;

/// A server, and who is asked there.
#[derive(Debug, Clone)]
pub struct Server {
    /// The provider, as in model names.
    pub provider: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// The connections.
    pub http: reqwest::Client,
}

impl Server {
    /// `body` as JSON.
    ///
    /// # Errors
    /// [`ChatErrorKind::BadRequest`] where it cannot be written.
    pub fn written(&self, body: &impl Serialize) -> Result<Bytes, ChatError> {
        let mut bytes = Vec::with_capacity(USUAL_BODY);
        serde_json::to_writer(&mut bytes, body)
            .map_err(|error| self.error(ChatErrorKind::BadRequest, &error.to_string()))?;
        Ok(bytes.into())
    }

    /// Sends `body`, which is JSON, to `path`. An answer that is no success is the error it tells of.
    ///
    /// # Errors
    /// [`ChatError`] where the exchange breaks, or for an answer that is no success.
    pub async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer<'_>, ChatError> {
        let mut all = self.endpoint.fixed_headers().clone();
        all.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static("application/json"),
        );
        // What the caller gives by name wins.
        all.extend(headers);
        let Some(tokens) = self.endpoint.tokens() else {
            return self.send(path, all, body).await;
        };
        let token = Arc::clone(tokens).token().await?;
        let (first, again) = (with_token(&all, &token), body.clone());
        match self.send(path, first, body).await {
            // It may have been withdrawn before its time.
            Err(error) if error.status == Some(401) => {
                tokens.forget(&token);
                let token = Arc::clone(tokens).token().await?;
                let answer = self.send(path, with_token(&all, &token), again).await;
                answer.map_err(|error| without_token(error, &token))
            }
            answer => answer.map_err(|error| without_token(error, &token)),
        }
    }

    async fn send(
        &self,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer<'_>, ChatError> {
        let mut response = self
            .http
            .post(self.endpoint.address(path))
            .headers(headers)
            .body(body)
            .send()
            .await
            .map_err(|error| self.broken(error))?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut answer = Answer {
            server: self,
            headers,
            response,
            length: 0,
        };
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.whole().await?;
        Err(self.refusal(status, &answer.headers, &body))
    }

    /// An error of the kind `kind`, with the key cut out of `message`.
    pub fn error(&self, kind: ChatErrorKind, message: &str) -> ChatError {
        ChatError::new(kind, &self.provider, self.endpoint.without_key(message))
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ChatError {
        let error = failure::from_answer(&self.provider, status, headers, body);
        self.without_key(error)
    }

    /// Providers repeat wrong keys in their messages.
    pub fn without_key(&self, mut error: ChatError) -> ChatError {
        error.message = self.endpoint.without_key(&error.message);
        error
    }

    fn broken(&self, error: reqwest::Error) -> ChatError {
        self.without_key(broken(&self.provider, self.endpoint.host(), error))
    }
}

/// `headers` with `token`, unless the caller gave something else in its place.
fn with_token(headers: &HeaderMap, token: &AccessToken) -> HeaderMap {
    let mut headers = headers.clone();
    headers
        .entry(header::AUTHORIZATION)
        .or_insert_with(|| token.header());
    headers
}

fn without_token(mut error: ChatError, token: &AccessToken) -> ChatError {
    error.message = token.cut_from(&error.message);
    error
}

/// A model of one server, asked over HTTP: all that such a [`Provider`] has to say for itself.
pub trait Served: Send + Sync {
    /// The server.
    fn server(&self) -> &Server;

    /// Sends `request` once; as a stream that `sink` is told of, where there is one.
    fn ask(
        &self,
        request: ChatRequest<'_>,
        sink: Option<DeltaSink<'_>>,
    ) -> impl Future<Output = Result<Reply, ChatError>> + Send;
}

impl<S: Served> Provider for S {
    fn name(&self) -> &str {
        &self.server().provider
    }

    fn place(&self) -> Option<&str> {
        Some(self.server().endpoint.place())
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        self.ask(request, None).boxed()
    }

    fn send_streaming<'a>(
        &'a self,
        request: ChatRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<Reply, ChatError>> {
        self.ask(request, Some(sink)).boxed()
    }
}

/// What a piece of a stream says.
#[derive(Debug, PartialEq)]
pub enum Step<T = ()> {
    /// The reply grew, or nothing happened.
    Going,
    /// The reply is whole.
    Done(T),
    /// The provider broke off with this error, in the form in which errors stand elsewhere.
    Failed(Value),
}

/// An answer of good status whose body is still to come.
pub struct Answer<'s> {
    server: &'s Server,
    /// Its headers.
    pub headers: HeaderMap,
    response: reqwest::Response,
    length: usize,
}

impl Answer<'_> {
    /// Whether the body is a stream of events.
    pub fn is_event_stream(&self) -> bool {
        self.is_of_type("text/event-stream")
    }

    /// Whether the body is of the media type `media_type`.
    pub fn is_of_type(&self, media_type: &str) -> bool {
        self.headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with(media_type))
    }

    /// The next piece of the body.
    ///
    /// # Errors
    /// [`ChatError`] where the connection breaks or the answer is longer than [`LARGEST_ANSWER`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ChatError> {
        let chunk = self
            .response
            .chunk()
            .await
            .map_err(|error| self.server.broken(error))?;
        self.length += chunk.as_ref().map_or(0, Bytes::len);
        if self.length > LARGEST_ANSWER {
            return Err(
                self.malformed(&format!("the answer is longer than {LARGEST_ANSWER} bytes"))
            );
        }
        Ok(chunk)
    }

    /// Reads a stream of events to its end. `push` takes the data of one event at a time; its error is
    /// a sentence about what is wrong with it. `None` is a stream that ended without saying so.
    ///
    /// # Errors
    /// [`ChatError`] where the connection breaks, `push` refuses an event, or the provider breaks off.
    pub async fn events<T>(
        &mut self,
        mut push: impl FnMut(&str) -> Result<Step<T>, String>,
    ) -> Result<Option<T>, ChatError> {
        let mut events = Events::default();
        self.pieces(|bytes| {
            for event in events.push(bytes) {
                match push(&event.data)? {
                    Step::Going => {}
                    end => return Ok(end),
                }
            }
            Ok(Step::Going)
        })
        .await
    }

    /// Like [`Answer::events`], for streams of another form: `push` takes bytes as they come.
    ///
    /// # Errors
    /// As [`Answer::events`].
    pub async fn pieces<T>(
        &mut self,
        mut push: impl FnMut(&[u8]) -> Result<Step<T>, String>,
    ) -> Result<Option<T>, ChatError> {
        while let Some(chunk) = self.chunk().await? {
            match push(&chunk).map_err(|reason| self.malformed(&reason))? {
                Step::Going => {}
                Step::Done(whole) => return Ok(Some(whole)),
                Step::Failed(error) => {
                    return Err(self.told(&error).unwrap_or_else(|| {
                        self.malformed("the stream broke off with an error that says nothing")
                    }));
                }
            }
        }
        Ok(None)
    }

    async fn whole(&mut self) -> Result<Bytes, ChatError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The whole body as JSON. An error that stands in it is an error.
    ///
    /// # Errors
    /// [`ChatError`] where the connection breaks, the body is no JSON, or an error stands in it.
    pub async fn json(&mut self) -> Result<Value, ChatError> {
        let body = self.whole().await?;
        let value: Value = serde_json::from_slice(&body).map_err(|reason| {
            let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST_BEGINNING)]);
            self.malformed(&format!(
                "the answer is no JSON ({reason}): `{}`",
                text.trim()
            ))
        })?;
        match self.told(&value) {
            Some(error) => Err(error),
            None => Ok(value),
        }
    }

    /// The error that stands in `value`, which came under a good status, if one does.
    pub fn told(&self, value: &Value) -> Option<ChatError> {
        let error = failure::inside_success(&self.server.provider, &self.headers, value)?;
        Some(self.server.without_key(error))
    }

    /// The error that this answer ended before it was whole.
    pub fn broken_off(&self, message: &str) -> ChatError {
        let mut error = self.server.error(ChatErrorKind::Connection, message);
        error.request_id = failure::request_id(&self.headers);
        error
    }

    /// The error that this answer is not what was promised.
    pub fn malformed(&self, message: &str) -> ChatError {
        let mut error = self.server.error(ChatErrorKind::MalformedReply, message);
        error.status = Some(self.response.status().as_u16());
        error.request_id = failure::request_id(&self.headers);
        error
    }
}

/// The error for an exchange with `host` that broke.
pub fn broken(provider: &str, host: &str, error: reqwest::Error) -> ChatError {
    let kind = if error.is_timeout() && !error.is_connect() {
        ChatErrorKind::Timeout
    } else if error.is_builder() {
        ChatErrorKind::BadRequest
    } else {
        ChatErrorKind::Connection
    };
    // The address may hold credentials; the host is enough to find the mistake.
    let error = error.without_url();
    let mut message = format!("{host}: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    ChatError::new(kind, provider, message)
}
