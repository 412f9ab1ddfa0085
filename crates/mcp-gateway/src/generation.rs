//! One applied configuration: its servers, what they offer together, and its orderly end.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use formats::apps::{AppsConfig, Isolation, OnFailure};
use futures::future::join_all;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend::peer::{NoticeSink, ServerNotice};
use crate::backend::server::Server;
use crate::catalog::{Index, Kind, Naming, Route};
use crate::endpoint::session::{Session, Sessions};
use crate::error::{ApplyError, FailedServer};
use crate::isolation::SessionServers;
use crate::jsonrpc::{self, RawObject};
use crate::options::GatewayOptions;
use crate::state::{ServerPhase, ServerState};

/// A configuration that serves, or served until a moment ago.
pub(crate) struct Generation {
    pub(crate) config: AppsConfig,
    /// Those whose tools are served, in order.
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) namings: Vec<Naming>,
    /// Entries of `allowed_tool_names`; `None` allows all.
    allowed: Option<HashSet<String>>,
    lists: [List; 4],
    isolated: SessionServers,
    options: Arc<GatewayOptions>,
    sessions: Arc<Sessions>,
    live: Arc<AtomicBool>,
    calls: TaskTracker,
    /// Cancelled when calls in flight have to end.
    abort: CancellationToken,
}

#[derive(Default)]
struct List {
    /// The last known list of each server.
    known: Mutex<Vec<Vec<RawObject>>>,
    index: ArcSwap<Index>,
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
    ) -> Result<Self, ApplyError> {
        let serving: Vec<_> = config
            .mcp_servers
            .iter()
            .filter(|(_, server)| server.serve_mcp_tools)
            .collect();
        let marked = serving.len() > 1;
        let live = Arc::new(AtomicBool::new(false));
        let mut servers = Vec::new();
        let mut namings = Vec::new();
        for (name, server) in serving {
            let naming = Naming {
                server: name.to_owned(),
                marked,
            };
            let notices = notice_sink(sessions.clone(), None, live.clone(), naming.clone());
            namings.push(naming);
            servers.push(Arc::new(Server::new(
                name,
                server.clone(),
                options.clone(),
                notices,
            )));
        }
        let allowed = config
            .allowed_tool_names
            .as_ref()
            .filter(|names| !names.is_empty())
            .map(|names| names.iter().cloned().collect());
        let generation = Self {
            config: config.clone(),
            servers,
            namings,
            allowed,
            lists: Default::default(),
            isolated: SessionServers::default(),
            options: options.clone(),
            sessions: sessions.clone(),
            live,
            calls: TaskTracker::new(),
            abort: CancellationToken::new(),
        };
        match generation.get_ready().await {
            Ok(()) => Ok(generation),
            Err(error) => {
                generation.stop_servers().await;
                Err(error)
            }
        }
    }

    async fn get_ready(&self) -> Result<(), ApplyError> {
        let prepared = join_all(self.servers.iter().map(Server::prepare)).await;
        let mut failed = Vec::new();
        let mut tools = Vec::new();
        for (server, (result, attempts)) in self.servers.iter().zip(prepared) {
            match result {
                Ok(list) => tools.push(list),
                Err(error) => {
                    tools.push(Vec::new());
                    let policy = self
                        .config
                        .mcp_servers
                        .get(&server.name)
                        .map(|config| config.on_failure);
                    if policy == Some(OnFailure::Skip) {
                        tracing::warn!(server = %server.name, %error, "served without this server");
                        continue;
                    }
                    failed.push(FailedServer {
                        server: server.name.to_string(),
                        error,
                        attempts,
                    });
                }
            }
        }
        failed.extend(self.check_unserved().await);
        if !failed.is_empty() {
            return Err(ApplyError::NotReady(failed));
        }
        let (index, clashes) = Index::build(Kind::Tools, &self.namings, &tools);
        if let Some(clash) = clashes.iter().find(|clash| clash.first.0 != clash.second.0) {
            return Err(ApplyError::Invalid(format!(
                "{clash}; rename one of the servers"
            )));
        }
        let list = self.list(Kind::Tools);
        *list.known.lock().unwrap_or_else(PoisonError::into_inner) = tools;
        list.index.store(Arc::new(index));
        Ok(())
    }

    /// Asks remote MCP servers that are left out of the endpoint for their tools once, so that a
    /// wrong address is known now (`spec/environment.md` §5.4).
    async fn check_unserved(&self) -> Vec<FailedServer> {
        let unserved = self.config.mcp_servers.iter().filter(|(_, config)| {
            let speaks_mcp = matches!(config.transport.as_str(), "http" | "streamable-http");
            !config.serve_mcp_tools && config.exposes_mcp && speaks_mcp && config.url.is_some()
        });
        let checks = unserved.map(|(name, config)| async move {
            let ignored: NoticeSink = Arc::new(|_| {});
            let server = Server::new(name, config.clone(), self.options.clone(), ignored);
            let server = Arc::new(server);
            let (result, attempts) = server.prepare().await;
            server.stop().await;
            let error = result.err()?;
            (config.on_failure != OnFailure::Skip).then(|| FailedServer {
                server: name.to_owned(),
                error,
                attempts,
            })
        });
        join_all(checks).await.into_iter().flatten().collect()
    }

    /// The server at `place` for the calls of `session`: the shared one, or the session's own.
    pub(crate) fn server(&self, place: usize, session: &Arc<Session>) -> Arc<Server> {
        let shared = &self.servers[place];
        if shared.config.isolation == Isolation::Shared {
            return shared.clone();
        }
        self.isolated.of(place, session, || {
            let naming = self.namings[place].clone();
            let only = Some(session.id.clone());
            let notices = notice_sink(self.sessions.clone(), only, self.live.clone(), naming);
            Server::new(
                &shared.name,
                shared.config.clone(),
                self.options.clone(),
                notices,
            )
        })
    }

    /// All servers, also those of single sessions.
    pub(crate) fn running(&self) -> Vec<Arc<Server>> {
        let mut all = self.servers.clone();
        all.extend(self.isolated.all());
        all
    }

    fn list(&self, kind: Kind) -> &List {
        &self.lists[kind as usize]
    }

    /// Asks all servers side by side for a list. Of a server that does not answer in time the last
    /// known list is served.
    pub(crate) async fn refresh(&self, kind: Kind) -> Arc<Index> {
        let answers = join_all(
            self.servers
                .iter()
                .map(|server| server.list(kind.method(), kind.list_key())),
        )
        .await;
        let list = self.list(kind);
        let mut known = list.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.resize(self.servers.len(), Vec::new());
        for ((server, answer), known) in self.servers.iter().zip(answers).zip(known.iter_mut()) {
            match answer {
                Ok(items) => *known = items,
                Err(error) => {
                    tracing::warn!(server = %server.name, %error, "its last known list is served");
                }
            }
        }
        let (index, clashes) = Index::build(kind, &self.namings, &known);
        for clash in clashes {
            tracing::warn!("{clash}; only the first is served");
        }
        let index = Arc::new(index);
        list.index.store(index.clone());
        index
    }

    /// Where a tool or prompt leads; a name that is not known is looked for in fresh lists.
    pub(crate) async fn route(&self, kind: Kind, served: &str) -> Option<Route> {
        if let Some(route) = self.list(kind).index.load().route(served) {
            return Some(route.clone());
        }
        self.refresh(kind).await.route(served).cloned()
    }

    /// Where a URI (or a template) leads: a listed one exactly, else by the server's name in it,
    /// else as a server's own URI where only one server lists it.
    pub(crate) async fn route_uri(&self, uri: &str) -> Option<Route> {
        if let [_] = &self.servers[..] {
            return Some(Route {
                server: 0,
                own: uri.to_owned(),
            });
        }
        let by_name = self
            .namings
            .iter()
            .enumerate()
            .filter_map(|(server, naming)| {
                let own = naming.own_uri(uri)?;
                Some((naming.server.len(), Route { server, own }))
            })
            .max_by_key(|(length, _)| *length)
            .map(|(_, route)| route);
        for kind in [Kind::Resources, Kind::Templates] {
            if let Some(route) = self.list(kind).index.load().route(uri) {
                return Some(route.clone());
            }
        }
        if by_name.is_some() {
            return by_name;
        }
        for kind in [Kind::Resources, Kind::Templates] {
            let index = self.refresh(kind).await;
            if let Some(route) = index.route(uri).or_else(|| index.route_of_own(uri)) {
                return Some(route.clone());
            }
        }
        None
    }

    /// Whether the configuration lets a tool be listed and called: an entry is the served name or
    /// the server's own name of the tool, never a part of one.
    pub(crate) fn allows(&self, served: &str, own: &str) -> bool {
        self.allowed
            .as_ref()
            .is_none_or(|names| names.contains(served) || names.contains(own))
    }

    pub(crate) fn allowed_count(&self) -> usize {
        self.list(Kind::Tools)
            .index
            .load()
            .count(|served, own| self.allows(served, own))
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
        self.servers
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
        self.stop_servers().await;
    }

    async fn stop_servers(&self) {
        let shared = join_all(self.servers.iter().map(|server| server.stop()));
        tokio::join!(shared, self.isolated.stop());
    }

    pub(crate) fn state(&self) -> Vec<ServerState> {
        self.config
            .mcp_servers
            .iter()
            .map(|(name, config)| {
                let running = self.servers.iter().find(|server| *server.name == *name);
                running.map_or_else(
                    || ServerState {
                        name: name.to_owned(),
                        transport: config.transport.clone(),
                        state: ServerPhase::NotServed,
                        tools: None,
                        error: None,
                        process_id: None,
                        starts: 0,
                        protocol_version: None,
                        server_info: None,
                    },
                    |server| server.state(),
                )
            })
            .collect()
    }
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
        let concerned = |session: &Session| only.as_ref().is_none_or(|id| *id == session.id);
        match notice {
            ServerNotice::ListChanged(method) => {
                let text = jsonrpc::notification(&method, None);
                sessions.tell(&text, concerned);
            }
            ServerNotice::ResourceUpdated(params) => {
                let Ok(mut params) = RawObject::parse(Some(&params)) else {
                    return;
                };
                let Some(uri) = params.text("uri").map(|own| naming.uri(&own)) else {
                    return;
                };
                params.set("uri", jsonrpc::raw(&uri));
                let params = params.to_raw();
                let text = jsonrpc::notification("notifications/resources/updated", Some(&params));
                sessions.tell(&text, |session| {
                    concerned(session) && session.is_subscribed(&uri)
                });
            }
        }
    })
}
