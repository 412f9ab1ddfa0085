//! One applied configuration: its servers, who may call what, and its orderly end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use formats::apps::{AppsConfig, Isolation, OnFailure, ServerConfig};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::peer::{NoticeSink, ServerNotice};
use crate::backend::server::{Server, Subscribing};
use crate::catalog::{Index, Kind, Naming};
use crate::endpoint::session::Session;
use crate::endpoint::sessions::{Announcement, Sessions};
use crate::error::{ApplyError, FailedServer};
use crate::jsonrpc::{self, RawObject};
use crate::options::GatewayOptions;
use crate::state::{ServerPhase, ServerState};
use crate::view::{SessionViews, View};

/// A configuration that serves, or served until a moment ago.
pub(crate) struct Generation {
    pub(crate) config: AppsConfig,
    namings: Arc<[Naming]>,
    /// Entries of `allowed_tool_names`; `None` allows all.
    allowed: Option<HashSet<String>>,
    /// The servers whose tools are served, in order.
    shared: Arc<View>,
    of_sessions: SessionViews,
    options: Arc<GatewayOptions>,
    sessions: Arc<Sessions>,
    live: Arc<AtomicBool>,
    calls: TaskTracker,
    /// Cancelled when calls in flight have to end.
    abort: CancellationToken,
}

/// Keeps a generation from being taken down while a call uses it.
pub(crate) struct Entered {
    pub(crate) generation: Arc<Generation>,
    _token: TaskTrackerToken,
}

impl Generation {
    /// Starts all servers side by side. On a failure everything that was started is stopped again.
    pub(crate) async fn start(
        config: &AppsConfig,
        options: &Arc<GatewayOptions>,
        sessions: &Arc<Sessions>,
        shut_down: &CancellationToken,
    ) -> Result<Self, ApplyError> {
        let serving: Vec<_> = config
            .mcp_servers
            .iter()
            .filter(|(_, server)| server.serve_mcp_tools)
            .collect();
        let marked = serving.len() > 1;
        let live = Arc::new(AtomicBool::new(false));
        let mut namings = Vec::new();
        let mut servers = Vec::new();
        for (name, server) in serving {
            let naming = Naming {
                server: name.to_owned(),
                marked,
            };
            let notices = notice_sink(sessions.clone(), None, live.clone(), naming.clone());
            namings.push(naming);
            let server = Server::new(name, server.clone(), options.clone(), notices);
            servers.push(Arc::new(server));
        }
        let namings: Arc<[Naming]> = namings.into();
        let allowed = config
            .allowed_tool_names
            .as_ref()
            .filter(|names| !names.is_empty())
            .map(|names| names.iter().cloned().collect());
        let generation = Self {
            config: config.clone(),
            namings: namings.clone(),
            allowed,
            shared: Arc::new(View::new(servers, namings)),
            of_sessions: SessionViews::default(),
            options: options.clone(),
            sessions: sessions.clone(),
            live,
            calls: TaskTracker::new(),
            abort: CancellationToken::new(),
        };
        let ready = tokio::select! {
            ready = generation.get_ready() => ready,
            () = shut_down.cancelled() => Err(ApplyError::ShutDown),
        };
        match ready {
            Ok(()) => Ok(generation),
            Err(error) => {
                generation.shared.stop(true).await;
                Err(error)
            }
        }
    }

    async fn get_ready(&self) -> Result<(), ApplyError> {
        let servers = &self.shared.servers;
        let (prepared, unserved) = tokio::join!(
            join_all(servers.iter().map(Server::prepare)),
            self.check_unserved()
        );
        let mut failed = Vec::new();
        let mut tools = Vec::new();
        for (server, (result, attempts)) in servers.iter().zip(prepared) {
            let error = match result {
                Ok(list) => {
                    tools.push(list);
                    continue;
                }
                Err(error) => error,
            };
            tools.push(Vec::new());
            failed.extend(refused(&server.name, &server.config, error, attempts));
        }
        failed.extend(unserved);
        if !failed.is_empty() {
            return Err(ApplyError::NotReady(failed));
        }
        let (index, clashes) = Index::build(Kind::Tools, &self.namings, &tools);
        if let Some(clash) = clashes.iter().find(|clash| clash.first.0 != clash.second.0) {
            return Err(ApplyError::Invalid(format!(
                "{clash}; rename one of the servers"
            )));
        }
        self.shared.set(Kind::Tools, tools, index);
        Ok(())
    }

    /// Asks remote MCP servers that are left out of the endpoint for their tools once, so that a
    /// wrong address is known now (`spec/environment.md` §5.4).
    async fn check_unserved(&self) -> Vec<FailedServer> {
        let unserved = self.config.mcp_servers.iter().filter(|(_, config)| {
            let speaks_mcp = matches!(
                config.transport.as_str(),
                "http" | "streamable-http" | "sse"
            );
            !config.serve_mcp_tools && config.exposes_mcp && speaks_mcp && config.url.is_some()
        });
        let checks = unserved.map(|(name, config)| async move {
            let ignored: NoticeSink = Arc::new(|_| {});
            let server = Server::new(name, config.clone(), self.options.clone(), ignored);
            let server = Arc::new(server);
            let (result, attempts) = server.prepare().await;
            server.stop().await;
            refused(name, config, result.err()?, attempts)
        });
        join_all(checks).await.into_iter().flatten().collect()
    }

    /// What those see that belong to no session.
    pub(crate) fn shared(&self) -> &View {
        &self.shared
    }

    /// Whether each session has a server of its own.
    pub(crate) fn has_isolated_servers(&self) -> bool {
        self.shared.servers.iter().any(isolated)
    }

    /// What a session sees.
    pub(crate) fn view(&self, session: &Session) -> Arc<View> {
        if !self.has_isolated_servers() {
            return self.shared.clone();
        }
        self.of_sessions.of(session, || {
            let servers = self.shared.servers.iter().zip(&*self.namings);
            let servers = servers.map(|(shared, naming)| {
                if !isolated(shared) {
                    return shared.clone();
                }
                let only = Some(session.id.clone());
                let live = self.live.clone();
                let notices = notice_sink(self.sessions.clone(), only, live, naming.clone());
                let config = shared.config.clone();
                let options = self.options.clone();
                Arc::new(Server::new(&shared.name, config, options, notices))
            });
            self.shared.with_servers(servers.collect())
        })
    }

    /// Subscribes to a resource by its served URI on behalf of the gateway itself, and says whether a
    /// server took the subscription.
    pub(crate) async fn subscribe(
        &self,
        view: &View,
        uri: &str,
        subscriber: &str,
        ended: CancellationToken,
    ) -> bool {
        let Some(route) = view.route_uri(uri).await else {
            return false;
        };
        let server = view.servers[route.server].clone();
        let request = Subscribing::to(&route.own);
        let outcome = server
            .subscribe(&route.own, subscriber, request, ended)
            .await;
        let refusal = match outcome {
            Ok(Ok(_)) => return true,
            Ok(Err(error)) => error.message(),
            Err(error) => error,
        };
        tracing::debug!(server = %server.name, uri, refusal, "not subscribed");
        false
    }

    /// Subscribes the sessions that there are to what they had asked of servers before.
    pub(crate) async fn resubscribe(&self) {
        for session in self.sessions.all() {
            for uri in session.subscriptions() {
                let (view, ended) = (self.view(&session), session.ended().clone());
                self.subscribe(&view, &uri, &session.id, ended).await;
            }
        }
    }

    /// All servers, also those of single sessions; shared ones may come more than once.
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        let mut all = self.shared.servers.clone();
        for view in self.of_sessions.all() {
            all.extend(view.servers.iter().cloned());
        }
        all
    }

    /// Whether any server named a capability (a JSON pointer).
    pub(crate) fn can(&self, pointer: &str) -> bool {
        self.shared.servers.iter().any(|server| server.can(pointer))
    }

    /// Whether the configuration lets a tool be listed and called: an entry is the served name or
    /// the server's own name of the tool, never a part of one.
    pub(crate) fn allows(&self, served: &str, own: &str) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|names| names.contains(served) || names.contains(own))
    }

    /// Begins a call; `None` when the generation is being taken down.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Entered> {
        let token = self.calls.token();
        (!self.calls.is_closed()).then(|| Entered {
            generation: self.clone(),
            _token: token,
        })
    }

    pub(crate) fn aborted(&self) -> &CancellationToken {
        &self.abort
    }

    /// From now on clients hear of what its servers announce.
    pub(crate) fn go_live(&self) {
        self.live.store(true, Ordering::Release);
    }

    /// Whether every serving server started.
    pub(crate) fn is_complete(&self) -> bool {
        self.shared
            .servers
            .iter()
            .all(|server| server.state().state != ServerPhase::Failed)
    }

    /// Lets calls in flight go on for `drain`, then ends them, then stops all servers.
    pub(crate) async fn retire(&self, drain: Duration) {
        self.live.store(false, Ordering::Release);
        self.calls.close();
        if tokio::time::timeout(drain, self.calls.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                calls = self.calls.len(),
                "calls in flight are ended with their configuration (drain_timeout)"
            );
            self.abort.cancel();
        }
        tokio::join!(self.shared.stop(true), self.of_sessions.stop());
    }

    pub(crate) fn state(&self) -> Vec<ServerState> {
        let servers = &self.shared.servers;
        self.config
            .mcp_servers
            .iter()
            .map(
                |(name, config)| match servers.iter().position(|server| *server.name == *name) {
                    Some(place) if isolated(&servers[place]) => ServerState {
                        sessions: self.of_sessions.states(place),
                        ..servers[place].state()
                    },
                    Some(place) => servers[place].state(),
                    None => ServerState::not_served(name, &config.transport),
                },
            )
            .collect()
    }
}

fn isolated(server: &Arc<Server>) -> bool {
    server.config.isolation == Isolation::Session
}

/// The failure of a server, where the configuration does not let it be left out.
fn refused(
    name: &str,
    config: &ServerConfig,
    error: String,
    attempts: u32,
) -> Option<FailedServer> {
    if config.on_failure == OnFailure::Skip {
        tracing::warn!(server = name, %error, "served without this server");
        return None;
    }
    Some(FailedServer {
        server: name.to_owned(),
        error,
        attempts,
    })
}

/// Passes what a server tells everybody on to the sessions that it concerns: all of them, or the
/// only one that the server is for.
fn notice_sink(
    sessions: Arc<Sessions>,
    only: Option<String>,
    live: Arc<AtomicBool>,
    naming: Naming,
) -> NoticeSink {
    Arc::new(move |notice| {
        if !live.load(Ordering::Acquire) {
            return;
        }
        let announcement = match notice {
            ServerNotice::ListChanged(method) => Announcement::ListChanged(method),
            ServerNotice::ResourceUpdated(params) => {
                let Ok(mut params) = RawObject::parse(Some(&params)) else {
                    return;
                };
                let Some(uri) = params.text("uri").map(|own| naming.uri(&own)) else {
                    return;
                };
                params.set("uri", jsonrpc::raw(&uri));
                Announcement::ResourceUpdated { uri, params }
            }
        };
        sessions.announce(&announcement, only.as_deref());
    })
}
