//! Servers with `"isolation": "session"`: each client session gets one of its own, from its first
//! call on it to its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;

use crate::backend::server::Server;
use crate::endpoint::session::Session;

/// The servers of single sessions, by the place of the server and the id of the session.
#[derive(Default)]
pub(crate) struct SessionServers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    servers: HashMap<(usize, String), Arc<Server>>,
    stopped: bool,
}

impl SessionServers {
    /// The session's own server at `place`, which `make` makes (and does not start) the first time.
    pub(crate) fn of(
        &self,
        place: usize,
        session: &Arc<Session>,
        make: impl FnOnce() -> Server,
    ) -> Arc<Server> {
        let key = (place, session.id.clone());
        let mut state = lock(&self.0);
        if let Some(server) = state.servers.get(&key) {
            return server.clone();
        }
        let server = Arc::new(make());
        if state.stopped || session.ended().is_cancelled() {
            // Too late: it refuses to start.
            server.refuse();
            return server;
        }
        state.servers.insert(key.clone(), server.clone());
        let servers = Arc::downgrade(&self.0);
        let ended = session.ended().clone();
        tokio::spawn(async move {
            ended.cancelled().await;
            let server = servers
                .upgrade()
                .and_then(|servers| lock(&servers).servers.remove(&key));
            if let Some(server) = server {
                server.stop().await;
            }
        });
        server
    }

    /// All that run at the moment.
    pub(crate) fn all(&self) -> Vec<Arc<Server>> {
        lock(&self.0).servers.values().cloned().collect()
    }

    /// Stops all of them for good.
    pub(crate) async fn stop(&self) {
        let servers: Vec<_> = {
            let mut state = lock(&self.0);
            state.stopped = true;
            state.servers.drain().collect()
        };
        join_all(servers.iter().map(|(_, server)| server.stop())).await;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
