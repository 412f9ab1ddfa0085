//! One configured server: started once, kept, and started again when it is needed after its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use formats::apps::ServerConfig;
use http::HeaderMap;
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, ListResult, StartError};
use super::peer::{CallError, NoticeSink, RequestOptions};
use super::subscriptions::Subscriptions;
use super::turns::Turns;
use crate::endpoint::caller::Caller;
use crate::jsonrpc::{self, Outcome, RawObject};
use crate::options::GatewayOptions;
use crate::schema_cleanup;
use crate::state::{ServerPhase, ServerState};

/// The wait after the first failed restart; it doubles up to `max_restart_delay`.
const FIRST_RESTART_DELAY: Duration = Duration::from_millis(250);
/// The wait between two attempts to reach a remote server that is not up yet.
const CONNECT_RETRY: Duration = Duration::from_secs(1);

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
    /// Of a server whose messages do not say to which call they belong.
    turns: Option<Arc<Turns>>,
    /// Held while the server is asked for a subscription or its end, so that the two keep their
    /// order.
    subscribing: tokio::sync::Mutex<()>,
    stopped: CancellationToken,
    status: Mutex<Status>,
}

/// A request about a subscription, as a client made it.
#[derive(Default)]
pub(crate) struct Subscribing {
    pub(crate) params: RawObject,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) headers: HeaderMap,
}

impl Subscribing {
    /// A request of the gateway's own.
    pub(crate) fn to(uri: &str) -> Self {
        let mut request = Self::default();
        request.params.set("uri", jsonrpc::raw(uri));
        request
    }
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
    subscriptions: Subscriptions,
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
            permits: Semaphore::new(options.max_calls_per_server),
            turns: matches!(config.transport.as_str(), "stdio" | "sse")
                .then(|| Arc::new(Turns::new(options.question_patience))),
            options,
            notices,
            current: ArcSwapOption::empty(),
            starting: Arc::default(),
            subscribing: tokio::sync::Mutex::default(),
            config,
            stopped: CancellationToken::new(),
            status: Mutex::default(),
        }
    }

    /// Starts the server and reads its tools. A remote server is tried until the limit, a process
    /// that cannot start fails at once. Also returns the number of attempts.
    pub(crate) async fn prepare(self: &Arc<Self>) -> (Result<Vec<RawObject>, String>, u32) {
        let options = &self.options;
        let deadline = Instant::now() + options.reach_timeout.min(options.start_timeout);
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

    async fn start(&self) -> Result<Arc<Connection>, StartError> {
        self.lock().starts += 1;
        let notices = self.notices.clone();
        let connection = Connection::open(
            &self.name,
            &self.config,
            &self.options,
            notices,
            &self.stopped,
        )
        .await?;
        self.restore(&connection).await;
        Ok(Arc::new(connection))
    }

    /// Tells a server that was started again what its predecessor knew.
    async fn restore(&self, connection: &Connection) {
        let (level, subscriptions) = {
            let status = self.lock();
            (status.log_level, status.subscriptions.uris())
        };
        let options = &self.options;
        if let Some(level) = level {
            let params = json!({"level": level});
            connection.tell("logging/setLevel", &params, options).await;
        }
        for uri in subscriptions {
            let params = json!({"uri": uri});
            connection
                .tell("resources/subscribe", &params, options)
                .await;
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
        let _turn = match (&self.turns, &caller) {
            (Some(turns), Some(caller)) => {
                let about = ["name", "uri"].into_iter().find_map(|key| params.text(key));
                let about = format!("{method} {}", about.unwrap_or_default());
                Some(Caller::begin(caller, turns, about).await)
            }
            _ => None,
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
        let list = async {
            let connection = self.connection().await.map_err(|error| error.to_string())?;
            let mut items = connection.list(method, key, &self.options).await?;
            if self.options.schema_cleanup && method == "tools/list" {
                items.iter_mut().for_each(schema_cleanup::clean_tool);
            }
            Ok(items)
        };
        let items = tokio::time::timeout(limit, list).await.unwrap_or_else(|_| {
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

    /// Sets the weakest level of log messages that any client wants.
    pub(crate) async fn set_log_level(self: &Arc<Self>, level: &'static str) {
        if self.lock().log_level.replace(level) == Some(level) {
            return;
        }
        if let Some(connection) = self.live()
            && connection.can("/logging")
        {
            let params = json!({"level": level});
            connection
                .tell("logging/setLevel", &params, &self.options)
                .await;
        }
    }

    /// Asks the server for news of its resource `uri`, and remembers who wants them, so that the
    /// subscription survives a restart. When `ended` is cancelled, the subscriber's wishes end.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        uri: &str,
        subscriber: &str,
        request: Subscribing,
        ended: CancellationToken,
    ) -> Result<Outcome, String> {
        let _order = self.subscribing.lock().await;
        let Subscribing {
            params,
            caller,
            headers,
        } = request;
        let method = "resources/subscribe";
        let outcome = self.call(method, params, caller, headers).await?;
        if outcome.is_ok() && self.lock().subscriptions.add(uri, subscriber) {
            let (server, subscriber) = (Arc::downgrade(self), subscriber.to_owned());
            let stopped = self.stopped.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = ended.cancelled() => {}
                    () = stopped.cancelled() => return,
                }
                if let Some(server) = server.upgrade() {
                    server.release(&subscriber).await;
                }
            });
        }
        Ok(outcome)
    }

    /// Ends a subscription; the server hears of it when nobody else has it.
    pub(crate) async fn unsubscribe(
        self: &Arc<Self>,
        uri: &str,
        subscriber: &str,
        request: Subscribing,
    ) -> Result<Outcome, String> {
        let _order = self.subscribing.lock().await;
        if !self.lock().subscriptions.remove(uri, subscriber) {
            return Ok(Ok(jsonrpc::raw(&json!({}))));
        }
        let Subscribing {
            params,
            caller,
            headers,
        } = request;
        let method = "resources/unsubscribe";
        self.call(method, params, caller, headers).await
    }

    /// Ends all subscriptions of a client that has gone.
    async fn release(&self, subscriber: &str) {
        let _order = self.subscribing.lock().await;
        let unwanted = self.lock().subscriptions.remove_all(subscriber);
        let Some(connection) = self.live() else {
            return;
        };
        for uri in unwanted {
            let params = json!({"uri": uri});
            let method = "resources/unsubscribe";
            connection.tell(method, &params, &self.options).await;
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
        let process_id = connection
            .as_ref()
            .filter(|_| alive)
            .and_then(|one| one.process_id());
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
            sessions: Vec::new(),
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
                Ok(connection) => return connection.stop().await,
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
