//! One configured server: started once, kept, and started again when it is needed after its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use formats::apps::ServerConfig;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::http::{HttpConfigError, HttpLink};
use super::peer::{CallError, NoticeSink, Peer, RequestOptions};
use super::stdio::{SpawnError, StdioLink};
use crate::endpoint::caller::Caller;
use crate::jsonrpc::{self, METHOD_NOT_FOUND, Outcome, RawObject};
use crate::options::GatewayOptions;
use crate::schema_cleanup;
use crate::state::{ServerPhase, ServerState};

/// The protocol revision that the gateway offers to servers.
const OFFERED_VERSION: &str = "2025-11-25";
/// The wait after the first failed restart; it doubles up to `max_restart_delay`.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(250);
/// The wait between two attempts to reach a remote server that is not up yet.
const CONNECT_RETRY: Duration = Duration::from_secs(1);

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

/// A list of a server and how it was come by.
pub(crate) type ListResult = Result<Vec<RawObject>, String>;

/// One server of a configuration.
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    pub(crate) config: ServerConfig,
    options: Arc<GatewayOptions>,
    notices: NoticeSink,
    current: ArcSwapOption<Connection>,
    /// Held while the server starts.
    starting: Arc<tokio::sync::Mutex<Failures>>,
    permits: Semaphore,
    stopped: CancellationToken,
    status: Mutex<Status>,
}

#[derive(Default)]
struct Failures {
    count: u32,
    last: Option<(Instant, String)>,
}

#[derive(Default)]
struct Status {
    phase: ServerPhase,
    error: Option<String>,
    starts: u32,
    tools: Option<usize>,
    log_level: Option<&'static str>,
    subscriptions: std::collections::BTreeSet<String>,
}

/// An initialized session with the server.
pub(crate) struct Connection {
    peer: Peer,
    link: Link,
    capabilities: Value,
    info: Value,
    version: String,
}

enum Link {
    Stdio(StdioLink),
    Http(HttpLink),
}

impl Link {
    async fn stop(self) {
        match self {
            Self::Stdio(link) => link.stop().await,
            Self::Http(link) => link.stop().await,
        }
    }
}

impl Connection {
    fn is_alive(&self) -> bool {
        let expired = match &self.link {
            Link::Stdio(_) => false,
            Link::Http(link) => link.is_expired(),
        };
        !expired && self.peer.closed().is_none()
    }

    /// Whether the server named a capability such as `/resources/subscribe` (a JSON pointer).
    pub(crate) fn can(&self, pointer: &str) -> bool {
        !matches!(
            self.capabilities.pointer(pointer),
            None | Some(Value::Null | Value::Bool(false))
        )
    }
}

impl Server {
    pub(crate) fn new(
        name: &str,
        config: ServerConfig,
        options: Arc<GatewayOptions>,
        notices: NoticeSink,
    ) -> Self {
        Self {
            name: name.into(),
            config,
            permits: Semaphore::new(options.max_calls_per_server),
            options,
            notices,
            current: ArcSwapOption::empty(),
            starting: Arc::default(),
            stopped: CancellationToken::new(),
            status: Mutex::default(),
        }
    }

    /// Starts the server and reads its tools. A remote server is tried until the limit, a process
    /// that cannot start fails at once. Also returns the number of attempts.
    pub(crate) async fn prepare(self: &Arc<Self>) -> (Result<Vec<RawObject>, String>, u32) {
        let deadline = Instant::now() + self.options.start_timeout;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = match self.connection().await {
                Ok(_) => self.list("tools/list", "tools").await,
                Err(error) => Err(error.to_string()),
            };
            let error = match result {
                Ok(tools) => return (Ok(tools), attempts),
                Err(error) => error,
            };
            let may_retry =
                self.config.transport != "stdio" && Instant::now() + CONNECT_RETRY < deadline;
            if !may_retry {
                self.set_phase(ServerPhase::Failed, Some(error.clone()));
                return (Err(error), attempts);
            }
            tokio::time::sleep(CONNECT_RETRY).await;
            self.starting.lock().await.last = None;
        }
    }

    /// The live session, starting the server where there is none.
    pub(crate) async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, StartError> {
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        let mut failures = self.starting.clone().lock_owned().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        if self.stopped.is_cancelled() {
            return Err(StartError::Handshake(self.stopped_text()));
        }
        if let Some((at, reason)) = &failures.last {
            let delay = (FIRST_RESTART_DELAY * 2_u32.saturating_pow(failures.count.min(16)))
                .min(self.options.max_restart_delay);
            if let Some(wait) = delay.checked_sub(at.elapsed()) {
                return Err(StartError::BackingOff {
                    server: self.name.clone(),
                    reason: reason.clone(),
                    wait_ms: wait.as_millis(),
                });
            }
        }
        // The start goes on even if the caller that needs it gives up.
        let (done, result) = oneshot::channel();
        let server = self.clone();
        tokio::spawn(async move {
            let started = server.start().await;
            match &started {
                Ok(connection) => {
                    *failures = Failures::default();
                    server.current.store(Some(connection.clone()));
                    server.set_phase(ServerPhase::Ready, None);
                }
                Err(error) => {
                    failures.count += 1;
                    failures.last = Some((Instant::now(), error.to_string()));
                    server.set_phase(ServerPhase::Failed, Some(error.to_string()));
                }
            }
            drop(failures);
            let _ = done.send(started);
        });
        result.await.unwrap_or_else(|_| {
            Err(StartError::Handshake(format!(
                "starting server `{}` was interrupted",
                self.name
            )))
        })
    }

    fn live(&self) -> Option<Arc<Connection>> {
        self.current
            .load_full()
            .filter(|connection| connection.is_alive())
    }

    async fn start(self: &Arc<Self>) -> Result<Arc<Connection>, StartError> {
        self.lock().starts += 1;
        let name = &self.name;
        let notices = self.notices.clone();
        let (link, peer) = if self.config.transport == "stdio" {
            let link = StdioLink::spawn(name, &self.config, &self.options, notices)?;
            let peer = link.peer.clone();
            (Link::Stdio(link), peer)
        } else {
            let link = HttpLink::open(name, &self.config, &self.options, notices)?;
            let peer = link.peer.clone();
            (Link::Http(link), peer)
        };
        let handshake = tokio::select! {
            answer = self.handshake(&peer) => answer,
            () = self.stopped.cancelled() => Err(self.stopped_text()),
        };
        match handshake {
            Ok(answer) => {
                let version = answer.text("protocolVersion").unwrap_or_default();
                if let Link::Http(link) = &link {
                    link.established(&version);
                }
                peer.notify("notifications/initialized", None).await;
                let connection = Arc::new(Connection {
                    peer,
                    link,
                    capabilities: answer.read("capabilities").unwrap_or_default(),
                    info: answer.read("serverInfo").unwrap_or_default(),
                    version,
                });
                self.restore(&connection).await;
                Ok(connection)
            }
            Err(reason) => {
                let heard = match &link {
                    Link::Stdio(link) if peer.closed().is_none() => link.stderr.quoted(),
                    _ => String::new(),
                };
                link.stop().await;
                Err(StartError::Handshake(format!("{reason}{heard}")))
            }
        }
    }

    async fn handshake(&self, peer: &Peer) -> Result<RawObject, String> {
        let params = json!({
            "protocolVersion": OFFERED_VERSION,
            "capabilities": {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
            "clientInfo": {"name": "archipelago-gateway", "version": env!("CARGO_PKG_VERSION")},
        });
        let params =
            RawObject::parse(Some(&jsonrpc::raw(&params))).map_err(|error| error.message())?;
        let options = RequestOptions {
            timeout: self.options.start_timeout,
            ..RequestOptions::default()
        };
        match peer.request("initialize", params, options).await {
            Ok(Ok(result)) => RawObject::parse(Some(&result)).map_err(|error| error.message()),
            Ok(Err(error)) => Err(format!(
                "server `{}` refused `initialize`: {}",
                self.name,
                error.message()
            )),
            Err(CallError::Timeout { server, limit_s }) => Err(format!(
                "server `{server}` did not answer `initialize` within {limit_s} s (start_timeout)"
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Tells a server that was started again what its predecessor knew.
    async fn restore(&self, connection: &Connection) {
        let (level, subscriptions) = {
            let status = self.lock();
            (status.log_level, status.subscriptions.clone())
        };
        if let Some(level) = level {
            self.tell(connection, "logging/setLevel", &json!({"level": level}))
                .await;
        }
        for uri in subscriptions {
            self.tell(connection, "resources/subscribe", &json!({"uri": uri}))
                .await;
        }
    }

    async fn tell(&self, connection: &Connection, method: &str, params: &Value) {
        let Ok(params) = RawObject::parse(Some(&jsonrpc::raw(params))) else {
            return;
        };
        let options = RequestOptions {
            timeout: self.options.list_timeout,
            ..RequestOptions::default()
        };
        if let Err(error) = connection.peer.request(method, params, options).await {
            tracing::debug!(server = %self.name, method, %error, "not told");
        }
    }

    /// Forwards a request of a client and returns the server's own answer.
    pub(crate) async fn call(
        self: &Arc<Self>,
        method: &str,
        params: RawObject,
        caller: Option<Arc<Caller>>,
        headers: HeaderMap,
    ) -> Result<Outcome, String> {
        let limit = self.options.call_timeout;
        let _permit = match tokio::time::timeout(limit, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(self.stopped_text()),
            Err(_) => {
                return Err(format!(
                    "server `{}` was busy with {} calls for {} s (max_calls_per_server, call_timeout)",
                    self.name,
                    self.options.max_calls_per_server,
                    limit.as_secs_f64()
                ));
            }
        };
        let mut retried = false;
        loop {
            let connection = self.connection().await.map_err(|error| error.to_string())?;
            let options = RequestOptions {
                timeout: self.options.call_timeout,
                caller: caller.clone(),
                headers: headers.clone(),
            };
            match connection
                .peer
                .request(method, params.clone(), options)
                .await
            {
                Err(CallError::SessionExpired(_)) if !retried => retried = true,
                Ok(Ok(result)) if result.get().len() > self.options.max_result_bytes => {
                    return Err(CallError::TooLarge {
                        server: self.name.clone(),
                        bytes: result.get().len(),
                        limit: self.options.max_result_bytes,
                        limit_name: "max_result_bytes",
                    }
                    .to_string());
                }
                Ok(outcome) => return Ok(outcome),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// A whole list of the server, all pages; empty where the server has no such list.
    pub(crate) async fn list(self: &Arc<Self>, method: &str, key: &str) -> ListResult {
        let limit = self.options.list_timeout;
        let items = tokio::time::timeout(limit, self.list_pages(method, key))
            .await
            .unwrap_or_else(|_| {
                Err(format!(
                    "server `{}` did not answer `{method}` within {} s (list_timeout)",
                    self.name,
                    limit.as_secs_f64()
                ))
            });
        let mut status = self.lock();
        match &items {
            Ok(items) if method == "tools/list" => {
                status.tools = Some(items.len());
                status.error = None;
            }
            Ok(_) => {}
            Err(error) => status.error = Some(error.clone()),
        }
        items
    }

    async fn list_pages(self: &Arc<Self>, method: &str, key: &str) -> ListResult {
        let connection = self.connection().await.map_err(|error| error.to_string())?;
        let capability = method.split('/').next().unwrap_or(method);
        let declared = connection.can(&format!("/{capability}"));
        // Tools are asked for in any case: there are servers that do not declare them.
        if !declared && capability != "tools" {
            return Ok(Vec::new());
        }
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..self.options.max_list_pages {
            let mut params = RawObject::default();
            if let Some(cursor) = &cursor {
                params.set("cursor", jsonrpc::raw(cursor));
            }
            // The limit of the whole list is the caller's.
            let options = RequestOptions {
                timeout: self.options.call_timeout,
                ..RequestOptions::default()
            };
            let page = match connection.peer.request(method, params, options).await {
                Ok(Ok(page)) => RawObject::parse(Some(&page)).map_err(|error| error.message())?,
                Ok(Err(error)) if error.code() == Some(METHOD_NOT_FOUND) => return Ok(items),
                Ok(Err(error)) => {
                    return Err(format!(
                        "server `{}` refused `{method}`: {}",
                        self.name,
                        error.message()
                    ));
                }
                Err(error) => return Err(error.to_string()),
            };
            let mut more: Vec<RawObject> = page.read(key).unwrap_or_default();
            if self.options.schema_cleanup && method == "tools/list" {
                more.iter_mut().for_each(schema_cleanup::clean_tool);
            }
            items.extend(more);
            match page.text("nextCursor") {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                Some(_) => {
                    return Err(format!(
                        "server `{}` gave the same cursor twice for `{method}`",
                        self.name
                    ));
                }
                None => return Ok(items),
            }
        }
        Err(format!(
            "server `{}`: `{method}` has more than {} pages (max_list_pages)",
            self.name, self.options.max_list_pages
        ))
    }

    /// Sets the weakest level of log messages that any client wants.
    pub(crate) async fn set_log_level(self: &Arc<Self>, level: &'static str) {
        if self.lock().log_level.replace(level) == Some(level) {
            return;
        }
        if let Some(connection) = self.live()
            && connection.can("/logging")
        {
            self.tell(&connection, "logging/setLevel", &json!({"level": level}))
                .await;
        }
    }

    /// Remembers a subscription, so that it survives a restart.
    pub(crate) fn remember_subscription(&self, uri: &str, wanted: bool) {
        let subscriptions = &mut self.lock().subscriptions;
        if wanted {
            subscriptions.insert(uri.to_owned());
        } else {
            subscriptions.remove(uri);
        }
    }

    /// Whether the running server named a capability.
    pub(crate) fn can(&self, pointer: &str) -> bool {
        self.current
            .load()
            .as_ref()
            .is_some_and(|connection| connection.can(pointer))
    }

    pub(crate) fn state(&self) -> ServerState {
        let connection = self.current.load_full();
        let alive = connection.as_ref().is_some_and(|one| one.is_alive());
        let status = self.lock();
        let process_id = connection.as_ref().and_then(|one| match &one.link {
            Link::Stdio(link) if alive => Some(link.process_id),
            _ => None,
        });
        let error = status.error.clone().or_else(|| {
            connection
                .as_ref()?
                .peer
                .closed()
                .map(|why| why.to_string())
        });
        let phase = match status.phase {
            ServerPhase::Ready if !alive => ServerPhase::Stopped,
            phase => phase,
        };
        ServerState {
            name: self.name.to_string(),
            transport: self.config.transport.clone(),
            state: phase,
            tools: status.tools,
            error,
            process_id,
            starts: status.starts,
            protocol_version: connection.as_ref().map(|one| one.version.clone()),
            server_info: connection.map(|one| one.info.clone()),
        }
    }

    fn set_phase(&self, phase: ServerPhase, error: Option<String>) {
        let mut status = self.lock();
        status.phase = phase;
        status.error = error;
    }

    /// Lets nothing start any more.
    pub(crate) fn refuse(&self) {
        self.permits.close();
        self.stopped.cancel();
    }

    /// Ends the server for good and waits for it.
    pub(crate) async fn stop(&self) {
        self.refuse();
        // A start in progress ends first, so that nothing appears afterwards.
        let _failures = self.starting.lock().await;
        self.set_phase(ServerPhase::Stopped, None);
        let Some(mut connection) = self.current.swap(None) else {
            return;
        };
        connection.peer.close(&self.stopped_text());
        // Calls that were just told so still hold it for a moment.
        loop {
            match Arc::try_unwrap(connection) {
                Ok(connection) => return connection.link.stop().await,
                Err(shared) => connection = shared,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn stopped_text(&self) -> String {
        format!("server `{}` was stopped", self.name)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
