//! The gateway's side of one session with a server: its requests by id, and what comes back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::endpoint::caller::Caller;
use crate::jsonrpc::{
    self, INTERNAL_ERROR, METHOD_NOT_FOUND, Message, Outcome, Raw, RawObject, RpcError, id_key,
};

/// How many requests of a server may wait for clients.
const MAX_RELAYED: usize = 64;

/// Why a request has no answer of the server.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    /// The server or the connection to it ended.
    #[error("{0}")]
    Gone(Arc<str>),
    #[error("server `{server}` did not answer within {limit_s} s (call_timeout)")]
    Timeout { server: Arc<str>, limit_s: f64 },
    /// The server no longer knows the session; the request was not processed.
    #[error("the session with server `{0}` has expired")]
    SessionExpired(Arc<str>),
    #[error("{0}")]
    Upstream(String),
    #[error("server `{server}` answered with {bytes} bytes, the limit is {limit} ({limit_name})")]
    TooLarge {
        server: Arc<str>,
        bytes: usize,
        limit: usize,
        limit_name: &'static str,
    },
}

/// A message on its way to the server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    /// Our id, where the message is a request.
    pub(crate) request: Option<u64>,
    /// Headers of the message, for servers over HTTP.
    pub(crate) headers: HeaderMap,
    /// Cancelled when nobody waits for the answer any more.
    pub(crate) given_up: CancellationToken,
}

/// What a server tells all clients.
#[derive(Debug)]
pub(crate) enum ServerNotice {
    /// `notifications/{tools,prompts,resources}/list_changed`.
    ListChanged(String),
    /// `notifications/resources/updated` with its parameters.
    ResourceUpdated(Raw),
}

/// Receives the notices of one server; must not block.
pub(crate) type NoticeSink = Arc<dyn Fn(ServerNotice) + Send + Sync>;

type Reply = Result<Outcome, CallError>;

/// How a request is sent.
#[derive(Debug, Default)]
pub(crate) struct RequestOptions {
    pub(crate) timeout: Duration,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) headers: HeaderMap,
}

/// One session with a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Peer {
    inner: Arc<Inner>,
}

struct Inner {
    server: Arc<str>,
    outbox: mpsc::Sender<Outgoing>,
    notices: NoticeSink,
    next_id: AtomicU64,
    relayed: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Pending>,
    /// Requests of the server that wait for a client, by the server's id.
    asked: HashMap<String, CancellationToken>,
    closed: Option<Arc<str>>,
}

struct Pending {
    reply: oneshot::Sender<Reply>,
    caller: Option<Arc<Caller>>,
    /// Whether it is a call of the program around the gateway, which cannot be asked anything.
    is_own_call: bool,
}

impl Peer {
    pub(crate) fn new(
        server: Arc<str>,
        outbox: mpsc::Sender<Outgoing>,
        notices: NoticeSink,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                server,
                outbox,
                notices,
                next_id: AtomicU64::new(1),
                relayed: Arc::new(Semaphore::new(MAX_RELAYED)),
                state: Mutex::default(),
            }),
        }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request.
    pub(crate) async fn request(
        &self,
        method: &str,
        mut params: RawObject,
        options: RequestOptions,
    ) -> Reply {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        if options
            .caller
            .as_ref()
            .is_some_and(|caller| caller.wants_progress())
        {
            set_progress_token(&mut params, id);
        }
        let params = (!params.is_empty()).then(|| params.to_raw());
        let text = jsonrpc::request(id, method, params.as_deref());
        let (reply, answer) = oneshot::channel();
        {
            let mut state = self.lock();
            if let Some(reason) = &state.closed {
                return Err(CallError::Gone(reason.clone()));
            }
            let caller = options.caller;
            let pending = Pending {
                reply,
                is_own_call: caller.is_none() && method == "tools/call",
                caller,
            };
            state.pending.insert(id, pending);
        }
        let guard = InFlight {
            peer: self,
            id,
            cancellable: method != "initialize",
        };
        let given_up = CancellationToken::new();
        let _given_up = given_up.clone().drop_guard();
        let exchange = async {
            let outgoing = Outgoing {
                text,
                request: Some(id),
                headers: options.headers,
                given_up,
            };
            if self.inner.outbox.send(outgoing).await.is_err() {
                return Err(self.gone());
            }
            answer.await.unwrap_or_else(|_| Err(self.gone()))
        };
        let reply = match tokio::time::timeout(options.timeout, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(CallError::Timeout {
                server: self.inner.server.clone(),
                limit_s: options.timeout.as_secs_f64(),
            }),
        };
        drop(guard);
        reply
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str, params: Option<&RawValue>) {
        self.send(jsonrpc::notification(method, params)).await;
    }

    async fn send(&self, text: String) {
        // A closed outbox means that the server is gone, which its requests report.
        let _ = self.inner.outbox.send(outgoing(text)).await;
    }

    /// Takes in one message of the server. `origin` is the request on whose stream it came, where
    /// the transport tells.
    pub(crate) fn receive(&self, text: &[u8], origin: Option<u64>) {
        match Message::parse(text) {
            Ok(Message::Response { id, outcome }) => match id.get().parse() {
                Ok(id) => self.complete(id, Ok(outcome)),
                Err(_) => {
                    tracing::debug!(server = %self.inner.server, %id, "answer to an unknown request");
                }
            },
            Ok(Message::Notification { method, params }) => {
                self.on_notification(&method, params, origin);
            }
            Ok(Message::Request { id, method, params }) => {
                self.on_request(id, method, params, origin);
            }
            Err(error) => {
                tracing::debug!(server = %self.inner.server, %error, "ignored what is no message");
            }
        }
    }

    /// Ends one request with a failure of the transport.
    pub(crate) fn fail(&self, id: u64, error: CallError) {
        self.complete(id, Err(error));
    }

    /// Ends a request of which only a part of the answer is known: it was too long. Where the part
    /// does not tell which request it was, all in flight end.
    pub(crate) fn fail_too_long(&self, bytes: usize, limit: usize, head: &[u8], tail: &[u8]) {
        let error = CallError::TooLarge {
            server: self.inner.server.clone(),
            bytes,
            limit,
            limit_name: "max_message_bytes",
        };
        let ids: Vec<u64> = match answered_id(head, tail) {
            Some(id) => vec![id],
            None => self.lock().pending.keys().copied().collect(),
        };
        for id in ids {
            self.fail(id, error.clone());
        }
    }

    /// Whether a request is still waiting.
    pub(crate) fn is_waiting(&self, id: u64) -> bool {
        self.lock().pending.contains_key(&id)
    }

    /// Whether several requests are in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock().pending.len() > 1
    }

    /// Why the session ended; `None` while it lasts.
    pub(crate) fn closed(&self) -> Option<Arc<str>> {
        self.lock().closed.clone()
    }

    /// Ends the session: every request in flight fails with `reason`.
    pub(crate) fn close(&self, reason: &str) {
        let (pending, asked) = {
            let mut state = self.lock();
            if state.closed.is_some() {
                return;
            }
            state.closed = Some(reason.into());
            (
                std::mem::take(&mut state.pending),
                std::mem::take(&mut state.asked),
            )
        };
        for token in asked.into_values() {
            token.cancel();
        }
        let error = CallError::Gone(reason.into());
        for pending in pending.into_values() {
            // The caller may have gone.
            let _ = pending.reply.send(Err(error.clone()));
        }
    }

    fn complete(&self, id: u64, reply: Reply) {
        let pending = self.lock().pending.remove(&id);
        if let Some(pending) = pending {
            // The caller may have gone.
            let _ = pending.reply.send(reply);
        }
    }

    fn on_notification(&self, method: &str, params: Option<Raw>, origin: Option<u64>) {
        match (method, params) {
            ("notifications/progress", Some(params)) => {
                let caller = RawObject::parse(Some(&params))
                    .ok()
                    .and_then(|params| params.read::<u64>("progressToken"))
                    .and_then(|token| self.caller_of(token));
                if let Some(caller) = caller {
                    caller.progress(&params);
                }
            }
            ("notifications/message", Some(params)) => {
                if let Some(caller) = self.attribute(origin) {
                    caller.log(&params);
                }
            }
            ("notifications/cancelled", Some(params)) => {
                let id = RawObject::parse(Some(&params))
                    .ok()
                    .and_then(|params| params.get("requestId").map(id_key));
                if let Some(token) = id.and_then(|id| self.lock().asked.remove(&id)) {
                    token.cancel();
                }
            }
            ("notifications/resources/updated", Some(params)) => {
                (self.inner.notices)(ServerNotice::ResourceUpdated(params));
            }
            (method, _) if method.ends_with("/list_changed") => {
                (self.inner.notices)(ServerNotice::ListChanged(method.to_owned()));
            }
            (method, params) => match self.attribute(origin) {
                Some(caller) => caller.notify(method, params.as_deref()),
                None => {
                    tracing::debug!(server = %self.inner.server, method, "a notification that belongs to no call");
                }
            },
        }
    }

    fn on_request(&self, id: Raw, method: String, params: Option<Raw>, origin: Option<u64>) {
        let Ok(permit) = self.inner.relayed.clone().try_acquire_owned() else {
            let error = RpcError::new(
                INTERNAL_ERROR,
                format!("more than {MAX_RELAYED} requests wait for clients"),
            );
            // Without waiting: a server that does not read its answers gets none.
            let answer = outgoing(jsonrpc::response(&id, &Err(error)));
            if self.inner.outbox.try_send(answer).is_err() {
                tracing::warn!(server = %self.inner.server, "asks without reading the answers");
            }
            return;
        };
        let peer = self.clone();
        let cancelled = CancellationToken::new();
        let key = id_key(&id);
        self.lock().asked.insert(key.clone(), cancelled.clone());
        let caller = self.attribute(origin);
        tokio::spawn(async move {
            let _permit = permit;
            let answer = async {
                if method == "ping" {
                    return Ok(jsonrpc::raw(&serde_json::json!({})));
                }
                match caller {
                    Some(caller) => caller.ask(&id, &method, params.as_deref()).await,
                    None => Err(RpcError::new(
                        METHOD_NOT_FOUND,
                        format!("`{method}` cannot be attributed to one client's call"),
                    )),
                }
            };
            tokio::select! {
                outcome = answer => peer.send(jsonrpc::response(&id, &outcome)).await,
                // The server no longer wants an answer.
                () = cancelled.cancelled() => {}
            }
            peer.lock().asked.remove(&key);
        });
    }

    fn caller_of(&self, id: u64) -> Option<Arc<Caller>> {
        self.lock()
            .pending
            .get(&id)
            .and_then(|pending| pending.caller.clone())
    }

    /// The call that a message belongs to which does not say so: the one on whose stream it came,
    /// else the latest call of the only session that has calls in flight. A call that waits for its
    /// client to come back is in flight only where no other is: its server has asked, and waits.
    fn attribute(&self, origin: Option<u64>) -> Option<Arc<Caller>> {
        if let Some(origin) = origin {
            return self.caller_of(origin);
        }
        let state = self.lock();
        if state.pending.values().any(|one| one.is_own_call) {
            return None;
        }
        let callers = || {
            let pending = state.pending.iter();
            pending.filter_map(|(id, one)| Some((*id, one.caller.as_ref()?)))
        };
        let any_runs = callers().any(|(_, caller)| !caller.is_waiting());
        let mut latest: Option<(u64, &Arc<Caller>)> = None;
        for (id, caller) in callers() {
            if any_runs && caller.is_waiting() {
                continue;
            }
            match latest {
                Some((_, other)) if other.session.id != caller.session.id => return None,
                Some((known, _)) if known > id => {}
                _ => latest = Some((id, caller)),
            }
        }
        latest.map(|(_, caller)| caller.clone())
    }

    fn gone(&self) -> CallError {
        CallError::Gone(self.closed().unwrap_or_else(|| {
            format!("the connection to server `{}` ended", self.inner.server).into()
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight: when it is dropped without an answer, the server is told.
struct InFlight<'a> {
    peer: &'a Peer,
    id: u64,
    cancellable: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.peer.lock().pending.remove(&self.id).is_none() || !self.cancellable {
            return;
        }
        let params = jsonrpc::raw(&serde_json::json!({
            "requestId": self.id, "reason": "the caller no longer waits for the answer",
        }));
        let text = jsonrpc::notification("notifications/cancelled", Some(&params));
        if self.peer.inner.outbox.try_send(outgoing(text)).is_err() {
            tracing::debug!(server = %self.peer.inner.server, "no room to tell the server of a cancelled call");
        }
    }
}

fn outgoing(text: String) -> Outgoing {
    Outgoing {
        text,
        request: None,
        headers: HeaderMap::new(),
        given_up: CancellationToken::new(),
    }
}

/// Towards the server the token of a request is its id, which is unique among all clients.
fn set_progress_token(params: &mut RawObject, id: u64) {
    let mut meta = params.read::<RawObject>("_meta").unwrap_or_default();
    meta.set("progressToken", jsonrpc::raw(&id));
    params.set("_meta", meta.to_raw());
}

/// The id of an answer of which only beginning and end are known. SDKs write it either first or
/// last.
fn answered_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(head);
    if let Some(rest) = head.strip_prefix(r#"{"jsonrpc":"2.0","id":"#) {
        return leading_number(rest);
    }
    let tail = String::from_utf8_lossy(tail);
    let (_, rest) = tail.rsplit_once(r#","id":"#)?;
    let number = leading_number(rest)?;
    (rest.trim_end() == format!("{number}}}")).then_some(number)
}

fn leading_number(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_cut_answer_is_found_at_either_end() {
        assert_eq!(
            answered_id(br#"{"jsonrpc":"2.0","id":12,"result":{"#, b"xxxx}}"),
            Some(12)
        );
        assert_eq!(
            answered_id(br#"{"result":{"con"#, br#"xx"}]},"jsonrpc":"2.0","id":7}"#),
            Some(7)
        );
        assert_eq!(
            answered_id(br#"{"result":{"con"#, br#"xx","id":7}]}}"#),
            None
        );
    }
}
