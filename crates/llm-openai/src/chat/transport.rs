//! The HTTP exchange: one request, a bounded body, status and headers kept.
//!
//! async-openai's own transport repeats failed requests by itself and drops the headers of an
//! answer. This one sends once, and hands the whole answer on when it is no success.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use serde::de::IgnoredAny;

use llm_wire::Endpoint;
use llm_wire::exchange::LARGEST_ANSWER;
use secrecy::SecretString;

/// How many bytes of an unreadable answer are told.
const LONGEST_BEGINNING: usize = 200;

/// An answer that is no success.
#[derive(Debug, thiserror::Error)]
#[error("status {status}")]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer that is longer than we read.
#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than {LARGEST_ANSWER} bytes")]
pub(crate) struct TooLong;

/// An answer of good status that is no JSON.
///
/// Found here, because async-openai would write the whole of it into the log.
#[derive(Debug, thiserror::Error)]
#[error("the answer is no JSON ({reason}): `{beginning}`")]
pub(crate) struct NotJson {
    reason: serde_json::Error,
    beginning: String,
}

/// A server, to async-openai.
///
/// Its own configuration reads environment variables for whatever it is not given; this one holds
/// what it was given and nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Place(pub(crate) Endpoint);

impl Config for Place {
    fn headers(&self) -> HeaderMap {
        self.0.fixed_headers().clone()
    }

    fn url(&self, path: &str) -> String {
        self.0.address(path)
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        self.0.base()
    }

    fn api_key(&self) -> &SecretString {
        self.0.key()
    }
}

/// Sends one request and keeps the headers of the answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    http: reqwest::Client,
    headers: Arc<Mutex<HeaderMap>>,
}

impl Exchange {
    pub(crate) fn new(http: reqwest::Client) -> Self {
        Self {
            http,
            headers: Arc::default(),
        }
    }

    /// The headers of the answer, empty before it has come.
    pub(crate) fn take_headers(&self) -> HeaderMap {
        std::mem::take(&mut self.headers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn run(self, request: HttpRequestFactory) -> Result<reqwest::Response, OpenAIError> {
        let request = request.build().await?;
        let mut response = self.http.execute(request).await?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let body = bounded_body(response).await?;
        if !status.is_success() {
            return Err(OpenAIError::Boxed(Box::new(Refusal {
                status,
                headers,
                body,
            })));
        }
        if let Err(reason) = serde_json::from_slice::<IgnoredAny>(&body) {
            let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST_BEGINNING)]);
            return Err(OpenAIError::Boxed(Box::new(NotJson {
                reason,
                beginning: text.trim().to_owned(),
            })));
        }
        *self.headers.lock().unwrap_or_else(PoisonError::into_inner) = headers;
        let mut whole = http::Response::new(body);
        *whole.status_mut() = status;
        Ok(whole.into())
    }
}

async fn bounded_body(mut response: reqwest::Response) -> Result<Bytes, OpenAIError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > LARGEST_ANSWER {
            return Err(OpenAIError::Boxed(Box::new(TooLong)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

impl tower::Service<HttpRequestFactory> for Exchange {
    type Response = reqwest::Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<reqwest::Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        Box::pin(self.clone().run(request))
    }
}
