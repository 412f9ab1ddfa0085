//! The tools of an MCP endpoint: one session for the whole run (`spec/agents.md` §7).

mod convert;
mod failure;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use formats::Object;
use formats::owner::Failure;
use http::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, PaginatedRequestParams, ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::error::CallError;
use super::output::ToolOutput;
use crate::registry::AgentConfigError;

/// An MCP server reached over streamable HTTP, such as the gateway of an environment.
#[derive(Clone)]
pub struct McpEndpoint {
    /// The address, used exactly as given, trailing slash included.
    pub url: String,
    /// Bearer token; not sent when there is an `actor_id`.
    pub auth_token: Option<String>,
    /// Actor id, sent as bearer token.
    pub actor_id: Option<String>,
    /// Further headers of every request, such as `X-Agent-Id`.
    pub headers: HeaderMap,
    /// Time and size limits.
    pub limits: McpLimits,
}

/// Limits of the connection to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// For a TCP connection. Default 30 s.
    pub connect: Duration,
    /// For the handshake, and for each page of the list of tools. Default 60 s.
    pub handshake: Duration,
    /// How long a new session is sought when the old one is lost. Default 5 s.
    pub reconnect: Duration,
    /// For closing the session at the end. Default 5 s.
    pub close: Duration,
    /// Bytes of one result. Default 64 MiB.
    pub result_bytes: usize,
    /// Calls on the way at the same time. Default 64.
    pub parallel_calls: usize,
    /// Pages of the list of tools. Default 1000.
    pub pages: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            handshake: Duration::from_secs(60),
            reconnect: Duration::from_secs(5),
            close: Duration::from_secs(5),
            result_bytes: 64 * 1024 * 1024,
            parallel_calls: 64,
            pages: 1000,
        }
    }
}

impl McpEndpoint {
    /// The endpoint at `url` without credentials.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            auth_token: None,
            actor_id: None,
            headers: HeaderMap::new(),
            limits: McpLimits::default(),
        }
    }

    /// The bearer token: the actor id before the token, empty counting as none.
    fn bearer(&self) -> Option<&str> {
        let given =
            |value: &'_ Option<String>| value.as_deref().is_some_and(|text| !text.is_empty());
        if given(&self.actor_id) {
            self.actor_id.as_deref()
        } else if given(&self.auth_token) {
            self.auth_token.as_deref()
        } else {
            None
        }
    }

    /// Finds before the run what could never work.
    pub(crate) fn check(&self) -> Result<(), AgentConfigError> {
        let wrong = |reason: String| AgentConfigError::Endpoint {
            url: self.url.clone(),
            reason,
        };
        match reqwest::Url::parse(&self.url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {}
            Ok(url) => {
                return Err(wrong(format!(
                    "scheme `{}` is not http or https",
                    url.scheme()
                )));
            }
            Err(error) => return Err(wrong(error.to_string())),
        }
        match self.bearer().map(HeaderValue::from_str) {
            Some(Err(_)) => Err(wrong(
                "the token has characters that a header cannot carry".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for McpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("McpEndpoint")
            .field("url", &self.url)
            .field("bearer", &self.bearer().map(|_| "…"))
            .field("headers", &headers)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// A connected MCP endpoint.
pub(super) struct McpConnection {
    endpoint: McpEndpoint,
    http: reqwest::Client,
    service: RunningService<RoleClient, ClientConfig>,
    opened: Instant,
}

impl McpConnection {
    /// Opens the session.
    pub(super) async fn open(endpoint: McpEndpoint) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .connect_timeout(endpoint.limits.connect)
            .tcp_nodelay(true)
            .pool_max_idle_per_host(endpoint.limits.parallel_calls)
            .redirect(reqwest::redirect::Policy::limited(10))
            // The library reads no environment; proxies are for the outside, the gateway is near.
            .no_proxy()
            .build()
            .map_err(|error| failure::unusable(&endpoint.url, &error))?;
        let service = handshake(&endpoint, &http).await?;
        Ok(Self {
            endpoint,
            http,
            service,
            opened: Instant::now(),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.endpoint.url
    }

    /// All tools, page by page.
    pub(super) async fn list_tools(&self) -> Result<Vec<Tool>, Failure> {
        let limits = self.endpoint.limits;
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..limits.pages {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let listed =
                tokio::time::timeout(limits.handshake, self.service.list_tools(Some(page)))
                    .await
                    .map_err(|_| failure::slow(self.url(), "tools/list", limits.handshake))?
                    .map_err(|error| failure::of_session(self.url(), &error))?;
            tools.extend(listed.tools);
            match listed.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(failure::too_many_pages(self.url(), limits.pages))
    }

    /// Calls a tool and waits for its result at most `limit` and then, in case it is just about
    /// to arrive, `grace`; after that the server is told that nobody waits any more.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Object,
        limit: Duration,
        grace: Duration,
    ) -> Result<ToolOutput, CallError> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self
            .service
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await
            .map_err(|error| failure::of_sending(self.url(), &error))?;
        let mut call = PendingCall::new(handle);
        match tokio::time::timeout(limit + grace, call.result()).await {
            Ok(Ok(result)) => convert::output(result),
            Ok(Err(error)) => Err(failure::of_call(self.url(), &error)),
            Err(_) => {
                call.cancel("the time limit of the call is over").await;
                Err(CallError::TimedOut(limit))
            }
        }
    }

    /// Replaces a session that was lost by a call begun at `since`. One that is younger than that
    /// call stays: several calls can lose the same session.
    pub(super) async fn reconnect(&mut self, since: Instant) -> Result<(), Failure> {
        if self.opened > since {
            return Ok(());
        }
        let deadline = tokio::time::Instant::now() + self.endpoint.limits.reconnect;
        loop {
            match handshake(&self.endpoint, &self.http).await {
                Ok(service) => {
                    // Dropping the old session closes it in the background.
                    self.service = service;
                    self.opened = Instant::now();
                    return Ok(());
                }
                Err(failure) if tokio::time::Instant::now() >= deadline => return Err(failure),
                Err(_) => tokio::time::sleep(RECONNECT_PAUSE).await,
            }
        }
    }

    /// Ends the session.
    pub(super) async fn close(mut self) {
        let limit = self.endpoint.limits.close;
        if let Err(error) = self.service.close_with_timeout(limit).await {
            tracing::debug!(%error, url = self.url(), "the session did not close cleanly");
        }
    }
}

const RECONNECT_PAUSE: Duration = Duration::from_millis(250);

/// A session is resumed twice, 1 s apart, as the reference does.
const STREAM_RESUMPTIONS: usize = 2;

async fn handshake(
    endpoint: &McpEndpoint,
    http: &reqwest::Client,
) -> Result<RunningService<RoleClient, ClientConfig>, Failure> {
    let limits = endpoint.limits;
    let headers: HashMap<HeaderName, HeaderValue> = endpoint
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut resumption = FixedInterval::default();
    resumption.max_times = Some(STREAM_RESUMPTIONS);
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .max_concurrent_requests(limits.parallel_calls)
        .max_sse_event_size(limits.result_bytes)
        .max_json_response_size(limits.result_bytes)
        .custom_headers(headers)
        // A lost session is replaced here, where the run can be told.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(resumption);
    if let Some(token) = endpoint.bearer() {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::with_client(http.clone(), config);
    let client = ClientConfig::new(
        ClientCapabilities::default(),
        Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
    )
    // The SDK's default is a revision without `initialize`, which strict servers refuse here.
    .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    let opening = Box::pin(rmcp::serve_client(client, transport));
    let service = tokio::time::timeout(limits.handshake, opening)
        .await
        .map_err(|_| failure::slow(&endpoint.url, "initialize", limits.handshake))?
        .map_err(|error| failure::of_handshake(&endpoint.url, &error))?;
    // Lists are asked for once; an answer from a cache after an error would hide the error.
    service
        .set_response_cache_config(rmcp::service::ClientCacheConfig::disabled())
        .await;
    Ok(service)
}

/// A call on its way. When it is dropped unanswered, because the run was cut off, the server is
/// told.
struct PendingCall {
    handle: Option<RequestHandle<RoleClient>>,
}

impl PendingCall {
    fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self {
            handle: Some(handle),
        }
    }

    async fn result(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.handle else {
            return Err(ServiceError::TransportClosed);
        };
        let answered = (&mut handle.rx).await;
        self.handle = None;
        answered.map_err(|_| ServiceError::TransportClosed)?
    }

    async fn cancel(mut self, reason: &str) {
        if let Some(handle) = self.handle.take()
            && let Err(error) = handle.cancel(Some(reason.to_owned())).await
        {
            tracing::debug!(%error, "failed to cancel a tool call");
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let reason = "the run ended".to_owned();
                if let Err(error) = handle.cancel(Some(reason)).await {
                    tracing::debug!(%error, "failed to cancel a tool call");
                }
            });
        }
    }
}
