//! An initialized session with a server, whatever the transport.

use std::sync::Arc;

use formats::apps::ServerConfig;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::events::EventsLink;
use super::http::HttpLink;
use super::peer::{CallError, NoticeSink, Peer, RequestOptions};
use super::remote::HttpConfigError;
use super::stdio::{SpawnError, StdioLink};
use crate::jsonrpc::{self, METHOD_NOT_FOUND, RawObject};
use crate::options::GatewayOptions;

/// The protocol revision that the gateway offers to servers.
const OFFERED_VERSION: &str = "2025-11-25";

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Config(#[from] HttpConfigError),
    #[error("{0}")]
    Handshake(String),
    /// It failed to start a short time ago.
    #[error("server `{server}` is not running: {reason} (next attempt in {wait_ms} ms)")]
    BackingOff {
        server: Arc<str>,
        reason: String,
        wait_ms: u128,
    },
}

/// A list of a server, or why there is none.
pub(crate) type ListResult = Result<Vec<RawObject>, String>;

/// An initialized session with a server.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) info: Value,
    pub(crate) version: String,
    name: Arc<str>,
    capabilities: Value,
    link: Link,
}

enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
    Events(EventsLink),
}

impl Link {
    fn open(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        notices: NoticeSink,
    ) -> Result<Self, StartError> {
        Ok(match config.transport.as_str() {
            "stdio" => Self::Stdio(StdioLink::spawn(name, config, options, notices)?),
            "sse" => Self::Events(EventsLink::open(name, config, options, notices)?),
            _ => Self::Http(HttpLink::open(name, config, options, notices)?),
        })
    }

    fn peer(&self) -> Peer {
        match self {
            Self::Stdio(link) => link.peer.clone(),
            Self::Http(link) => link.peer.clone(),
            Self::Events(link) => link.peer.clone(),
        }
    }

    async fn stop(self) {
        match self {
            Self::Stdio(link) => link.stop().await,
            Self::Http(link) => link.stop().await,
            Self::Events(link) => link.stop(),
        }
    }
}

impl Connection {
    /// Starts or reaches the server and shakes hands. When it fails, or `stopped` is cancelled,
    /// nothing is left behind.
    pub(crate) async fn open(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        notices: NoticeSink,
        stopped: &CancellationToken,
    ) -> Result<Self, StartError> {
        let link = Link::open(name, config, options, notices)?;
        let peer = link.peer();
        let answer = tokio::select! {
            answer = handshake(name, &peer, options) => answer,
            () = stopped.cancelled() => Err(format!("server `{name}` was stopped")),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(reason) => {
                let heard = match &link {
                    Link::Stdio(link) if peer.closed().is_none() => link.stderr.quoted(),
                    _ => String::new(),
                };
                link.stop().await;
                return Err(StartError::Handshake(format!("{reason}{heard}")));
            }
        };
        let version = answer.text("protocolVersion").unwrap_or_default();
        if let Link::Http(link) = &link {
            link.established(&version);
        }
        peer.notify("notifications/initialized", None).await;
        Ok(Self {
            peer,
            info: answer.read("serverInfo").unwrap_or_default(),
            version,
            name: name.clone(),
            capabilities: answer.read("capabilities").unwrap_or_default(),
            link,
        })
    }

    pub(crate) fn is_alive(&self) -> bool {
        let expired = match &self.link {
            Link::Stdio(_) | Link::Events(_) => false,
            Link::Http(link) => link.is_expired(),
        };
        !expired && self.peer.closed().is_none()
    }

    /// The id of the server's process, where it has one.
    pub(crate) fn process_id(&self) -> Option<u32> {
        match &self.link {
            Link::Stdio(link) => Some(link.process_id),
            Link::Http(_) | Link::Events(_) => None,
        }
    }

    /// Whether the server named a capability such as `/resources/subscribe` (a JSON pointer).
    pub(crate) fn can(&self, pointer: &str) -> bool {
        !matches!(
            self.capabilities.pointer(pointer),
            None | Some(Value::Null | Value::Bool(false))
        )
    }

    /// Sends a request of the gateway's own whose answer does not matter.
    pub(crate) async fn tell(&self, method: &str, params: &Value, options: &GatewayOptions) {
        let Ok(params) = RawObject::parse(Some(&jsonrpc::raw(params))) else {
            return;
        };
        let options = RequestOptions {
            timeout: options.list_timeout,
            ..RequestOptions::default()
        };
        if let Err(error) = self.peer.request(method, params, options).await {
            tracing::debug!(server = %self.name, method, %error, "not told");
        }
    }

    /// All pages of a list; empty where the server has no such list.
    pub(crate) async fn list(
        &self,
        method: &str,
        key: &str,
        options: &GatewayOptions,
    ) -> ListResult {
        let name = &self.name;
        let capability = method.split('/').next().unwrap_or(method);
        // Tools are asked for in any case: there are servers that do not declare them.
        if capability != "tools" && !self.can(&format!("/{capability}")) {
            return Ok(Vec::new());
        }
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..options.max_list_pages {
            let mut params = RawObject::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", jsonrpc::raw(cursor));
            }
            // The limit of the whole list is the caller's.
            let request = RequestOptions {
                timeout: options.call_timeout,
                ..RequestOptions::default()
            };
            let page = match self.peer.request(method, params, request).await {
                Ok(Ok(page)) => RawObject::parse(Some(&page)).map_err(|error| error.message())?,
                Ok(Err(error)) if error.code() == Some(METHOD_NOT_FOUND) => return Ok(items),
                Ok(Err(error)) => {
                    let reason = error.message();
                    return Err(format!("server `{name}` refused `{method}`: {reason}"));
                }
                Err(error) => return Err(error.to_string()),
            };
            items.extend(page.read::<Vec<RawObject>>(key).unwrap_or_default());
            match page.text("nextCursor") {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                Some(_) => {
                    return Err(format!(
                        "server `{name}` gave the same cursor twice for `{method}`"
                    ));
                }
                None => return Ok(items),
            }
        }
        Err(format!(
            "server `{name}`: `{method}` has more than {} pages (max_list_pages)",
            options.max_list_pages
        ))
    }

    /// Ends the session, and the process where there is one, and waits for that.
    pub(crate) async fn stop(self) {
        self.link.stop().await;
    }
}

async fn handshake(name: &str, peer: &Peer, options: &GatewayOptions) -> Result<RawObject, String> {
    let params = json!({
        "protocolVersion": OFFERED_VERSION,
        "capabilities": {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
        "clientInfo": {"name": "archipelago-gateway", "version": env!("CARGO_PKG_VERSION")},
    });
    let params = RawObject::parse(Some(&jsonrpc::raw(&params))).map_err(|error| error.message())?;
    let request = RequestOptions {
        timeout: options.start_timeout,
        ..RequestOptions::default()
    };
    match peer.request("initialize", params, request).await {
        Ok(Ok(result)) => RawObject::parse(Some(&result)).map_err(|error| error.message()),
        Ok(Err(error)) => {
            let reason = error.message();
            Err(format!("server `{name}` refused `initialize`: {reason}"))
        }
        Err(CallError::Timeout { server, limit_s }) => Err(format!(
            "server `{server}` did not answer `initialize` within {limit_s} s (start_timeout)"
        )),
        Err(error) => Err(error.to_string()),
    }
}
