//! The clients that are connected: sessions by id, and what is told to all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::session::Session;
use super::sessionless::listen::Listeners;
use crate::jsonrpc::{self, RawObject};

/// How long a session has to be idle before it may make room for a new one.
const REPLACEABLE_IDLE: Duration = Duration::from_secs(60);

/// What concerns clients whether or not they have asked for anything.
#[derive(Debug)]
pub(crate) enum Announcement {
    /// A list has changed; the method of the notification.
    ListChanged(String),
    /// A resource has changed: its served URI, and the parameters with it.
    ResourceUpdated { uri: String, params: RawObject },
}

/// All sessions of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_id: Mutex<HashMap<String, Arc<Session>>>,
    /// Streams of clients without a session.
    pub(crate) listeners: Arc<Listeners>,
}

impl Sessions {
    /// Adds a session. Where there are `limit` already, the one that has been idle longest makes
    /// room, if it has been idle for a while; else the number is given back.
    pub(crate) fn insert(&self, session: Session, limit: usize) -> Result<Arc<Session>, usize> {
        let mut all = self.lock();
        if all.len() >= limit {
            let idlest = all
                .values()
                .filter_map(|session| Some((session.idle()?, session.id.clone())))
                .max()
                .filter(|(idle, _)| *idle >= REPLACEABLE_IDLE);
            let Some((_, id)) = idlest else {
                return Err(all.len());
            };
            if let Some(replaced) = all.remove(&id) {
                replaced.close();
            }
        }
        let session = Arc::new(session);
        all.insert(session.id.clone(), session.clone());
        Ok(session)
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        let session = self.lock().remove(id)?;
        session.close();
        Some(session)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Ends the sessions that have been idle for longer than `limit`.
    pub(crate) fn expire(&self, limit: Duration) {
        let mut ended = Vec::new();
        self.lock().retain(|_, session| {
            session.prune();
            let keep = session.idle().is_none_or(|idle| idle <= limit);
            if !keep {
                ended.push(session.clone());
            }
            keep
        });
        for session in ended {
            tracing::info!(session = %session.id, "session ended: idle (session_idle)");
            session.close();
        }
    }

    pub(crate) fn close_all(&self) {
        self.listeners.close();
        let all: Vec<_> = self.lock().drain().collect();
        for (_, session) in all {
            session.close();
        }
    }

    /// Tells the clients that are concerned: all, or the session `only`.
    pub(crate) fn announce(&self, announcement: &Announcement, only: Option<&str>) {
        let text = announcement.text();
        for session in self.all() {
            let concerned = match announcement {
                Announcement::ListChanged(_) => true,
                Announcement::ResourceUpdated { uri, .. } => session.is_subscribed(uri),
            };
            if concerned && only.is_none_or(|id| *id == session.id) {
                session.general.push(text.clone());
            }
        }
        if only.is_none() {
            self.listeners.announce(announcement);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Announcement {
    fn text(&self) -> String {
        match self {
            Self::ListChanged(method) => jsonrpc::notification(method, None),
            Self::ResourceUpdated { params, .. } => {
                jsonrpc::notification("notifications/resources/updated", Some(&params.to_raw()))
            }
        }
    }
}
