//! What one client session sees: the servers that answer it and what they offer.
//!
//! All sessions share one view, unless a server has `"isolation": "session"`: then each session
//! has a view of its own, in which that server is the session's own, from its first request on it
//! to the end of the session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use formats::apps::Isolation;
use futures::future::join_all;

use crate::backend::server::Server;
use crate::catalog::{Index, Kind, Naming, Route};
use crate::endpoint::session::Session;
use crate::jsonrpc::RawObject;
use crate::state::SessionServerState;

/// Servers in the order of the configuration, and their lists.
pub(crate) struct View {
    pub(crate) servers: Vec<Arc<Server>>,
    namings: Arc<[Naming]>,
    lists: [List; 4],
}

#[derive(Default)]
struct List {
    /// The last known list of each server.
    known: Mutex<Vec<Vec<RawObject>>>,
    index: ArcSwap<Index>,
}

impl View {
    pub(crate) fn new(servers: Vec<Arc<Server>>, namings: Arc<[Naming]>) -> Self {
        Self {
            servers,
            namings,
            lists: Default::default(),
        }
    }

    /// A view on other servers that starts with the lists of this one.
    pub(crate) fn with_servers(&self, servers: Vec<Arc<Server>>) -> Self {
        let view = Self::new(servers, self.namings.clone());
        for (mine, theirs) in view.lists.iter().zip(&self.lists) {
            mine.known().clone_from(&theirs.known());
            mine.index.store(theirs.index.load_full());
        }
        view
    }

    pub(crate) fn naming(&self, route: &Route) -> &Naming {
        &self.namings[route.server]
    }

    /// The list as it is known.
    pub(crate) fn index(&self, kind: Kind) -> Arc<Index> {
        self.lists[kind as usize].index.load_full()
    }

    /// Sets a list that was come by otherwise.
    pub(crate) fn set(&self, kind: Kind, known: Vec<Vec<RawObject>>, index: Index) {
        let list = &self.lists[kind as usize];
        *list.known() = known;
        list.index.store(Arc::new(index));
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
        let list = &self.lists[kind as usize];
        let mut known = list.known();
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
        if let Some(route) = self.index(kind).route(served) {
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
        for kind in [Kind::Resources, Kind::Templates] {
            if let Some(route) = self.index(kind).route(uri) {
                return Some(route.clone());
            }
        }
        let by_name = self
            .namings
            .iter()
            .enumerate()
            .filter_map(|(server, naming)| {
                let own = naming.own_uri(uri)?;
                Some((naming.server.len(), Route { server, own }))
            })
            .max_by_key(|(length, _)| *length);
        if let Some((_, route)) = by_name {
            return Some(route);
        }
        for kind in [Kind::Resources, Kind::Templates] {
            let index = self.refresh(kind).await;
            if let Some(route) = index.route(uri).or_else(|| index.route_of_own(uri)) {
                return Some(route.clone());
            }
        }
        None
    }

    /// Stops its servers for good; those that it shares with others only `with_shared`.
    pub(crate) async fn stop(&self, with_shared: bool) {
        let servers = self
            .servers
            .iter()
            .filter(|server| with_shared || server.config.isolation == Isolation::Session);
        join_all(servers.map(|server| server.stop())).await;
    }
}

impl List {
    fn known(&self) -> MutexGuard<'_, Vec<Vec<RawObject>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The views of single sessions, by the id of the session.
#[derive(Default)]
pub(crate) struct SessionViews(Arc<Mutex<Views>>);

#[derive(Default)]
struct Views {
    views: HashMap<String, Arc<View>>,
    stopped: bool,
}

impl SessionViews {
    /// The session's own view, which `make` makes the first time; its servers start with their
    /// first request.
    pub(crate) fn of(&self, session: &Session, make: impl FnOnce() -> View) -> Arc<View> {
        let mut state = lock(&self.0);
        if let Some(view) = state.views.get(&session.id) {
            return view.clone();
        }
        let view = Arc::new(make());
        if state.stopped || session.ended().is_cancelled() {
            // Too late: nothing is started any more.
            for server in &view.servers {
                if server.config.isolation == Isolation::Session {
                    server.refuse();
                }
            }
            return view;
        }
        state.views.insert(session.id.clone(), view.clone());
        tokio::spawn(end_with_session(
            Arc::downgrade(&self.0),
            session.id.clone(),
            session.ended().clone(),
        ));
        view
    }

    pub(crate) fn all(&self) -> Vec<Arc<View>> {
        lock(&self.0).views.values().cloned().collect()
    }

    /// How the servers at `place` of the configuration are that sessions have for themselves.
    pub(crate) fn states(&self, place: usize) -> Vec<SessionServerState> {
        let mut states: Vec<_> = lock(&self.0)
            .views
            .iter()
            .filter_map(|(id, view)| Some(view.servers.get(place)?.state().of_session(id)))
            .collect();
        states.sort_by(|one, other| one.session.cmp(&other.session));
        states
    }

    /// Stops the servers of all sessions for good.
    pub(crate) async fn stop(&self) {
        let views: Vec<_> = {
            let mut state = lock(&self.0);
            state.stopped = true;
            state.views.drain().collect()
        };
        join_all(views.iter().map(|(_, view)| view.stop(false))).await;
    }
}

async fn end_with_session(
    views: std::sync::Weak<Mutex<Views>>,
    session: String,
    ended: tokio_util::sync::CancellationToken,
) {
    ended.cancelled().await;
    let view = views
        .upgrade()
        .and_then(|views| lock(&views).views.remove(&session));
    if let Some(view) = view {
        view.stop(false).await;
    }
}

fn lock(state: &Mutex<Views>) -> MutexGuard<'_, Views> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
