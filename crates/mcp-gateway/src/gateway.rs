//! The gateway itself: the configuration that serves, and how it is replaced.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use formats::apps::{AppsApplied, AppsConfig, ServerConfig};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::remote;
use crate::catalog::Kind;
use crate::endpoint;
use crate::endpoint::sessionless::rounds::Rounds;
use crate::endpoint::sessions::{Announcement, Sessions};
use crate::error::ApplyError;
use crate::generation::{Entered, Generation};
use crate::options::GatewayOptions;
use crate::state::{AppsState, redacted};
use crate::tool_calls::ToolCallObserver;

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(15);

/// How long tasks may take to notice that they are out of time.
const LAST_MOMENT: Duration = Duration::from_millis(200);

/// Many MCP servers behind one MCP endpoint. Clones are handles to the same gateway.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = mcp_gateway::Gateway::new(mcp_gateway::GatewayOptions::default());
/// gateway.apply(serde_json::from_str(&std::fs::read_to_string("mcp_config.json")?)?).await?;
/// // axum::serve(listener, gateway.router()).await?;
/// gateway.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Gateway {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Arc<GatewayOptions>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) rounds: Rounds,
    current: ArcSwapOption<Generation>,
    /// Held while a configuration is applied.
    applying: Mutex<()>,
    tasks: TaskTracker,
    shut_down: CancellationToken,
    /// Cancelled when servers that are being stopped have to end at once.
    out_of_time: CancellationToken,
    sweeping: std::sync::Once,
    pub(crate) observer: OnceLock<Arc<dyn ToolCallObserver>>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// A gateway without a configuration.
    #[must_use]
    pub fn new(options: GatewayOptions) -> Self {
        Self {
            inner: Arc::new(Inner {
                options: Arc::new(options),
                sessions: Arc::default(),
                rounds: Rounds::default(),
                current: ArcSwapOption::empty(),
                applying: Mutex::default(),
                tasks: TaskTracker::new(),
                shut_down: CancellationToken::new(),
                out_of_time: CancellationToken::new(),
                sweeping: std::sync::Once::new(),
                observer: OnceLock::new(),
            }),
        }
    }

    /// Makes `config` the configuration that serves.
    ///
    /// Its servers are started first, all side by side; only when every one of them is ready does
    /// the endpoint switch, in one step. Then calls in flight on the old servers get
    /// `drain_timeout` to finish, and the old servers are stopped in the background. Client
    /// sessions stay; they are told that the lists have changed.
    ///
    /// A configuration equal to the one that serves changes nothing and takes 0.0 ms. Calls of
    /// `apply` wait for each other. Dropping the future does not stop what it began.
    ///
    /// # Errors
    /// Whatever the error, the previous configuration keeps serving.
    pub async fn apply(&self, config: AppsConfig) -> Result<AppsApplied, ApplyError> {
        let gateway = self.clone();
        let started = Instant::now();
        let apply = async move {
            tokio::select! {
                applied = gateway.apply_now(config, started) => applied,
                () = gateway.inner.out_of_time.cancelled() => Err(ApplyError::ShutDown),
            }
        };
        // `shutdown` waits for it.
        self.inner.tasks.spawn(apply).await.unwrap_or_else(|error| {
            Err(ApplyError::Internal(format!(
                "applying the configuration failed: {error}"
            )))
        })
    }

    async fn apply_now(
        &self,
        config: AppsConfig,
        started: Instant,
    ) -> Result<AppsApplied, ApplyError> {
        let inner = &self.inner;
        let limit = inner.options.apply_queue_timeout;
        let _applying = tokio::time::timeout(limit, inner.applying.lock())
            .await
            .map_err(|_| ApplyError::Busy(started.elapsed()))?;
        if inner.shut_down.is_cancelled() {
            return Err(ApplyError::ShutDown);
        }
        let servers = config.mcp_servers.names().map(str::to_owned).collect();
        if let Some(current) = inner.current.load_full()
            && current.config == config
            && current.is_complete()
        {
            return Ok(AppsApplied {
                servers,
                duration_ms: 0.0,
            });
        }
        check(&config)?;
        let (options, sessions) = (&inner.options, &inner.sessions);
        let generation = Generation::start(&config, options, sessions, &inner.shut_down).await?;
        self.switch_to(Arc::new(generation))?;
        self.sweep_sessions();
        Ok(AppsApplied {
            servers,
            duration_ms: started.elapsed().as_secs_f64() * 1000.0,
        })
    }

    fn switch_to(&self, generation: Arc<Generation>) -> Result<(), ApplyError> {
        let inner = &self.inner;
        generation.go_live();
        let old = inner.current.swap(Some(generation.clone()));
        if old.is_some() {
            inner.sessions.listeners.close_with_resources();
            let shut_down = inner.shut_down.clone();
            inner.tasks.spawn(async move {
                tokio::select! {
                    () = generation.resubscribe() => {}
                    () = shut_down.cancelled() => {}
                }
            });
        }
        self.retire(old, inner.options.drain_timeout);
        if inner.shut_down.is_cancelled() {
            // The shutdown may have looked for a configuration to end before this one was there.
            self.retire(inner.current.swap(None), Duration::ZERO);
            return Err(ApplyError::ShutDown);
        }
        for kind in [Kind::Tools, Kind::Prompts, Kind::Resources] {
            let method = format!("notifications/{}/list_changed", kind.list_key());
            let changed = Announcement::ListChanged(method);
            inner.sessions.announce(&changed, None);
        }
        Ok(())
    }

    /// Takes a configuration down in the background.
    fn retire(&self, generation: Option<Arc<Generation>>, drain: Duration) {
        if let Some(generation) = generation {
            let out_of_time = self.inner.out_of_time.clone();
            self.inner.tasks.spawn(async move {
                tokio::select! {
                    () = generation.retire(drain) => {}
                    () = out_of_time.cancelled() => {}
                }
            });
        }
    }

    /// The configuration that serves, without its secrets, and how each server is.
    #[must_use]
    pub fn state(&self) -> AppsState {
        let current = self.inner.current.load_full();
        AppsState {
            configuration: current.as_ref().map(|one| redacted(&one.config)),
            servers: current.map(|one| one.state()).unwrap_or_default(),
            sessions: self.inner.sessions.len(),
        }
    }

    /// Routes for `/mcp` and `/mcp/`. They answer 404 before the first configuration.
    pub fn router(&self) -> axum::Router {
        endpoint::router(self.clone())
    }

    /// Ends the gateway: calls in flight get `drain_timeout`, then all sessions end and every
    /// server is stopped. It takes no longer than that and a few times `stop_grace`.
    pub async fn shutdown(&self) {
        let GatewayOptions {
            drain_timeout,
            stop_grace,
            ..
        } = *self.inner.options;
        self.shutdown_within(drain_timeout + stop_grace * 4 + Duration::from_secs(1))
            .await;
    }

    /// Ends the gateway as [`Gateway::shutdown`] does, but within `limit`: calls in flight get no
    /// more of it than leaves the servers time to end by themselves, and what still runs at its
    /// end is killed.
    pub async fn shutdown_within(&self, limit: Duration) {
        let inner = &self.inner;
        inner.shut_down.cancel();
        let GatewayOptions {
            drain_timeout,
            stop_grace,
            ..
        } = *inner.options;
        let drain = drain_timeout.min(limit.saturating_sub(stop_grace * 3));
        self.retire(inner.current.swap(None), drain);
        inner.tasks.close();
        if tokio::time::timeout(limit, inner.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("servers were still running at the end; they are killed");
            inner.out_of_time.cancel();
            // Each task ends as soon as it is polled.
            let _ = tokio::time::timeout(LAST_MOMENT, inner.tasks.wait()).await;
        }
        inner.sessions.close_all();
        inner.rounds.clear();
    }

    /// The configuration that serves, kept until the value is dropped.
    pub(crate) fn enter(&self) -> Option<Entered> {
        loop {
            let current = self.inner.current.load_full()?;
            if let Some(entered) = current.enter() {
                return Some(entered);
            }
            // It was replaced between the two steps.
            std::hint::spin_loop();
        }
    }

    /// Whether the configuration that serves has servers of single sessions.
    pub(crate) fn needs_sessions(&self) -> bool {
        let current = self.inner.current.load();
        current
            .as_ref()
            .is_some_and(|current| current.has_isolated_servers())
    }

    pub(crate) fn is_configured(&self) -> bool {
        self.inner.current.load().is_some()
    }

    /// Ends idle sessions from now on, as long as the gateway exists.
    fn sweep_sessions(&self) {
        self.inner.sweeping.call_once(|| {
            let sessions = Arc::downgrade(&self.inner.sessions);
            let limit = self.inner.options.session_idle;
            let shut_down = self.inner.shut_down.clone();
            tokio::spawn(async move {
                loop {
                    tokio::select! {
                        () = tokio::time::sleep(SWEEP.min(limit)) => {}
                        () = shut_down.cancelled() => return,
                    }
                    let Some(sessions) = sessions.upgrade() else {
                        return;
                    };
                    sessions.expire(limit);
                }
            });
        });
    }
}

/// Refuses what can be seen to be unusable without starting anything.
fn check(config: &AppsConfig) -> Result<(), ApplyError> {
    for (name, server) in config.mcp_servers.iter() {
        if server.serve_mcp_tools {
            check_server(server)
                .map_err(|reason| ApplyError::Invalid(format!("server `{name}`: {reason}")))?;
        }
    }
    Ok(())
}

fn check_server(server: &ServerConfig) -> Result<(), String> {
    match server.transport.as_str() {
        "stdio" => match server.command.as_deref() {
            None | Some("") => Err("a `stdio` server needs a `command`".to_owned()),
            Some(_) => Ok(()),
        },
        "http" | "streamable-http" | "sse" => {
            if server.url.is_none() {
                return Err(format!("a `{}` server needs a `url`", server.transport));
            }
            remote::check(server)
                .map(|_| ())
                .map_err(|error| error.to_string())
        }
        other => Err(format!(
            "`transport` is `{other}`; it is `stdio`, `http`, `streamable-http` or `sse` for a server that serves tools"
        )),
    }
}
