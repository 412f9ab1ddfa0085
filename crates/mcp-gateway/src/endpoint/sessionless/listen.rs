//! `subscriptions/listen`: one stream of announcements for a client without a session.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::results;
use crate::endpoint::session::GENERAL_BYTES;
use crate::endpoint::sessions::Announcement;
use crate::endpoint::stream::EventStream;
use crate::generation::Generation;
use crate::jsonrpc::{self, INTERNAL_ERROR, INVALID_PARAMS, Raw, RawObject, RpcError};

const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const LISTS: [&str; 3] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
];

/// The streams that are open.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    open: Mutex<HashMap<u64, Arc<Listener>>>,
    next: AtomicU64,
}

/// One stream and what its client wants to hear of.
#[derive(Debug)]
struct Listener {
    /// The id of the request, by which the client tells its streams apart.
    id: Raw,
    lists: Vec<&'static str>,
    /// Served URIs.
    resources: HashSet<String>,
    stream: Arc<EventStream>,
}

/// A stream that ends, and its subscriptions with it, when this is dropped.
pub(super) struct Listening {
    listeners: Arc<Listeners>,
    number: u64,
    /// Ends the subscriptions at the servers.
    _ended: DropGuard,
}

impl Listeners {
    /// Passes an announcement on to those who asked for its kind.
    pub(crate) fn announce(&self, announcement: &Announcement) {
        for listener in self.lock().values() {
            listener.hear(announcement);
        }
    }

    /// Ends all streams with an answer that says so.
    pub(crate) fn close(&self) {
        self.close_where(|_| true);
    }

    /// Ends the streams that tell of resources: their subscriptions have gone with the servers, and
    /// clients ask again.
    pub(crate) fn close_with_resources(&self) {
        self.close_where(|listener| !listener.resources.is_empty());
    }

    fn close_where(&self, wanted: impl Fn(&Listener) -> bool) {
        for (_, listener) in self.lock().extract_if(|_, listener| wanted(listener)) {
            let mut result = RawObject::default();
            result.set("resultType", jsonrpc::raw("complete"));
            result.set("_meta", jsonrpc::raw(&listener.meta()));
            let answer = Ok(results::signed(result));
            let text = jsonrpc::response(&listener.id, &answer);
            listener.stream.finish(text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Listener>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    fn meta(&self) -> Value {
        json!({ SUBSCRIPTION_KEY: self.id })
    }

    fn hear(&self, announcement: &Announcement) {
        let (method, mut params) = match announcement {
            Announcement::ListChanged(method) => {
                let wanted =
                    results::filter_key(method).is_some_and(|key| self.lists.contains(&key));
                if !wanted {
                    return;
                }
                (method.as_str(), RawObject::default())
            }
            Announcement::ResourceUpdated { uri, params } => {
                if !self.resources.contains(uri) {
                    return;
                }
                ("notifications/resources/updated", params.clone())
            }
        };
        let mut meta = params.read::<RawObject>("_meta").unwrap_or_default();
        meta.set(SUBSCRIPTION_KEY, self.id.clone());
        params.set("_meta", meta.to_raw());
        let text = jsonrpc::notification(method, Some(&params.to_raw()));
        self.stream.push(text);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(listener) = self.listeners.lock().remove(&self.number) {
            listener.stream.close();
        }
    }
}

/// Opens a stream for the request `id`; its first message says what will be told on it.
pub(super) async fn open(
    generation: &Generation,
    listeners: &Arc<Listeners>,
    limit: usize,
    id: Raw,
    params: &RawObject,
) -> Result<(Arc<EventStream>, Listening), RpcError> {
    let Some(wanted) = params
        .read::<Value>("notifications")
        .filter(Value::is_object)
    else {
        return Err(RpcError::new(
            INVALID_PARAMS,
            "invalid parameters: `notifications` is missing or not an object",
        ));
    };
    let number = listeners.next.fetch_add(1, Ordering::Relaxed);
    let ended = CancellationToken::new();
    let listening = Listening {
        listeners: listeners.clone(),
        number,
        _ended: ended.clone().drop_guard(),
    };
    let mut resources = Vec::new();
    let uris = wanted["resourceSubscriptions"].as_array();
    for uri in uris.into_iter().flatten().filter_map(Value::as_str) {
        let subscriber = format!("listener {number}");
        if generation
            .subscribe(generation.shared(), uri, &subscriber, ended.clone())
            .await
        {
            resources.push(uri.to_owned());
        }
    }
    let lists: Vec<_> = LISTS
        .into_iter()
        .filter(|key| wanted[key] == true)
        .collect();
    let mut honoured: serde_json::Map<String, Value> = lists
        .iter()
        .map(|key| ((*key).to_owned(), json!(true)))
        .collect();
    if !resources.is_empty() {
        honoured.insert("resourceSubscriptions".to_owned(), json!(resources));
    }
    let stream = Arc::new(EventStream::new(0, GENERAL_BYTES));
    let listener = Listener {
        id,
        lists,
        resources: resources.into_iter().collect(),
        stream: stream.clone(),
    };
    let acknowledged = jsonrpc::raw(&json!({"notifications": honoured, "_meta": listener.meta()}));
    stream.push(jsonrpc::notification(
        "notifications/subscriptions/acknowledged",
        Some(&acknowledged),
    ));
    let mut open = listeners.lock();
    if open.len() >= limit {
        return Err(RpcError::new(
            INTERNAL_ERROR,
            format!(
                "there are {} streams, the limit is {limit} (max_sessions)",
                open.len()
            ),
        ));
    }
    open.insert(number, Arc::new(listener));
    drop(open);
    Ok((stream, listening))
}
