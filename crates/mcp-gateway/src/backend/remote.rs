//! What all servers over HTTP have in common: where they are, what they are sent, and how their
//! failures are told.

use std::sync::Arc;
use std::time::Duration;

use formats::apps::ServerConfig;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url};

use super::peer::CallError;
use crate::options::GatewayOptions;

/// How long a message that is no request may take to be delivered: those after it wait.
pub(super) const DELIVERY: Duration = Duration::from_secs(10);
/// How much of an error's body is quoted.
const QUOTED_BYTES: usize = 500;

/// Why a server cannot be reached as configured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpConfigError {
    #[error("`url` is not a valid address: `{url}`: {reason}")]
    Url { url: String, reason: String },
    #[error("header `{0}` has a name or value that HTTP does not allow")]
    Header(String),
    #[error(
        "`auth` is {0}: it is a bearer token (a string); a sign-in needs a person at a browser, which an environment does not have, so get a token first and give it as `auth` or in `headers`"
    )]
    Auth(&'static str),
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
}

/// A server over HTTP.
pub(super) struct Remote {
    pub(super) name: Arc<str>,
    pub(super) client: Client,
    pub(super) url: Url,
    /// The configured headers; they win over those of the caller.
    headers: HeaderMap,
    pub(super) max_message_bytes: usize,
}

/// Checks what can be checked without a connection.
pub(crate) fn check(config: &ServerConfig) -> Result<(Url, HeaderMap), HttpConfigError> {
    let text = config.url.clone().unwrap_or_default();
    let invalid = |reason: String| HttpConfigError::Url {
        url: text.clone(),
        reason,
    };
    let url = Url::parse(&text).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("its scheme is not http or https".to_owned()));
    }
    let mut headers = HeaderMap::new();
    match &config.auth {
        None | Some(serde_json::Value::Null) => {}
        Some(serde_json::Value::String(token)) if token != "oauth" => {
            let value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| HttpConfigError::Header("authorization".to_owned()))?;
            headers.insert(header::AUTHORIZATION, value);
        }
        Some(serde_json::Value::String(_)) => return Err(HttpConfigError::Auth("`oauth`")),
        Some(_) => return Err(HttpConfigError::Auth("not a string")),
    }
    for (name, value) in config.headers.iter().flatten() {
        let wrong = || HttpConfigError::Header(name.clone());
        headers.insert(
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?,
            HeaderValue::from_str(value).map_err(|_| wrong())?,
        );
    }
    for value in headers.values_mut() {
        value.set_sensitive(true);
    }
    Ok((url, headers))
}

/// A client without a limit of its own for silence.
pub(super) fn client(options: &GatewayOptions) -> ClientBuilder {
    Client::builder()
        .connect_timeout(options.http_connect_timeout)
        .tcp_nodelay(true)
}

impl Remote {
    pub(super) fn new(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        client: ClientBuilder,
    ) -> Result<Self, HttpConfigError> {
        let (url, headers) = check(config)?;
        Ok(Self {
            name: name.clone(),
            client: client
                .build()
                .map_err(|error| HttpConfigError::Client(error.to_string()))?,
            url,
            headers,
            max_message_bytes: options.max_message_bytes,
        })
    }

    /// Adds headers to a request, and the configured ones, which win.
    pub(super) fn prepare(
        &self,
        request: RequestBuilder,
        mut headers: HeaderMap,
    ) -> RequestBuilder {
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        request.headers(headers)
    }

    pub(super) fn failure(&self, error: &reqwest::Error) -> CallError {
        let name = &self.name;
        CallError::Upstream(if error.is_connect() {
            format!("cannot connect to server `{name}`: {}", chain(error))
        } else if error.is_timeout() {
            "Upstream request timed out, please retry".to_owned()
        } else {
            format!("the connection to server `{name}` failed: {}", chain(error))
        })
    }

    /// The failure of an answer with a bad status and this body.
    pub(super) fn bad_status(&self, status: StatusCode, body: &[u8]) -> CallError {
        if status == StatusCode::TOO_MANY_REQUESTS {
            return CallError::Upstream(
                "Rate limited by upstream API, please retry later".to_owned(),
            );
        }
        let text = String::from_utf8_lossy(&body[..body.len().min(QUOTED_BYTES)]);
        let name = &self.name;
        CallError::Upstream(format!("server `{name}` answered HTTP {status}: {text}"))
    }

    /// A whole body, within the limit.
    pub(super) async fn collect(&self, response: Response) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.failure(&error))?;
            if body.len() + piece.len() > self.max_message_bytes {
                return Err(CallError::TooLarge {
                    server: self.name.clone(),
                    bytes: body.len() + piece.len(),
                    limit: self.max_message_bytes,
                    limit_name: "max_message_bytes",
                });
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// An error with its causes, without the address, which may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    if text.is_empty() {
        text = error.to_string();
    }
    text
}

/// The kind of an answer, where it is one of the two that MCP uses.
pub(super) fn content_type(response: &Response) -> Option<&'static str> {
    let value = response
        .headers()
        .get(header::CONTENT_TYPE)?
        .to_str()
        .ok()?;
    let kind = value.split(';').next().unwrap_or(value).trim();
    ["text/event-stream", "application/json"]
        .into_iter()
        .find(|known| kind.eq_ignore_ascii_case(known))
}
