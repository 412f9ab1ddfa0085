//! Client sessions: what a client said about itself, its streams and its requests in flight.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::stream::EventStream;
use crate::jsonrpc::{self, INTERNAL_ERROR, METHOD_NOT_FOUND, Outcome, Raw, RpcError, id_key};
use crate::options::GatewayOptions;

/// The severities of log messages, weakest first (MCP `logging`).
const LOG_LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// How many bytes of messages that belong to no request wait for a client to fetch them.
pub(crate) const GENERAL_BYTES: usize = 1024 * 1024;

/// The rank of a log level; `None` for a word that is none.
pub(crate) fn log_rank(level: &str) -> Option<usize> {
    LOG_LEVELS.iter().position(|known| *known == level)
}

/// The log level of a rank.
pub(crate) fn log_level(rank: usize) -> Option<&'static str> {
    LOG_LEVELS.get(rank).copied()
}

/// One client session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) version: &'static str,
    capabilities: serde_json::Value,
    /// Messages that belong to no request of the client.
    pub(crate) general: Arc<EventStream>,
    general_open: AtomicBool,
    ended: CancellationToken,
    answer_timeout: Duration,
    max_stream_bytes: usize,
    max_calls: usize,
    resume_window: Duration,
    next_stream: AtomicU64,
    next_request: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    last_used: Instant,
    log_rank: Option<usize>,
    /// Requests of the client in flight, by its own id.
    calls: HashMap<String, CancellationToken>,
    streams: HashMap<u64, Arc<EventStream>>,
    /// Streams that have ended, oldest first: number, time and bytes.
    finished: VecDeque<(u64, Instant, usize)>,
    /// Requests of servers that wait for the client, by the id that we gave them.
    waiting: HashMap<String, oneshot::Sender<Outcome>>,
    subscriptions: HashSet<String>,
}

impl Session {
    pub(crate) fn new(
        version: &'static str,
        capabilities: serde_json::Value,
        options: &GatewayOptions,
    ) -> Self {
        Self {
            id: uuid::Uuid::new_v4().simple().to_string(),
            version,
            capabilities,
            general: Arc::new(EventStream::new(0, GENERAL_BYTES)),
            general_open: AtomicBool::new(false),
            ended: CancellationToken::new(),
            answer_timeout: options.client_answer_timeout,
            max_stream_bytes: options.max_stream_bytes,
            max_calls: options.max_calls_per_session,
            resume_window: options.resume_window,
            next_stream: AtomicU64::new(1),
            next_request: AtomicU64::new(1),
            inner: Mutex::new(Inner {
                last_used: Instant::now(),
                log_rank: None,
                calls: HashMap::new(),
                streams: HashMap::new(),
                finished: VecDeque::new(),
                waiting: HashMap::new(),
                subscriptions: HashSet::new(),
            }),
        }
    }

    /// Whether the client named a capability such as `/sampling` (a JSON pointer).
    pub(crate) fn can(&self, pointer: &str) -> bool {
        self.capabilities
            .pointer(pointer)
            .is_some_and(|value| !value.is_null())
    }

    /// Cancelled when the session ends.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    pub(crate) fn touch(&self) {
        self.lock().last_used = Instant::now();
    }

    /// How long the session has been without any use; `None` while something is in flight.
    pub(crate) fn idle(&self) -> Option<Duration> {
        if self.general_open.load(Ordering::Acquire) {
            return None;
        }
        let inner = self.lock();
        inner.calls.is_empty().then(|| inner.last_used.elapsed())
    }

    /// A stream for the answer to one request. Once it has ended it is kept for a while, unless it
    /// is forgotten by [`Session::forget`] before.
    pub(crate) fn open_stream(&self) -> Arc<EventStream> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let stream = Arc::new(EventStream::new(number, self.max_stream_bytes));
        self.lock().streams.insert(number, stream.clone());
        stream
    }

    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == 0 {
            return Some(self.general.clone());
        }
        self.lock().streams.get(&number).cloned()
    }

    pub(crate) fn forget(&self, stream: u64) {
        self.lock().streams.remove(&stream);
    }

    /// Registers a request of the client; says why where that is not possible.
    pub(crate) fn begin(&self, id: &RawValue) -> Result<CancellationToken, String> {
        let token = self.ended.child_token();
        let mut inner = self.lock();
        if inner.calls.len() >= self.max_calls {
            return Err(format!(
                "{} requests of the session are in flight (max_calls_per_session)",
                self.max_calls
            ));
        }
        match inner.calls.entry(id_key(id)) {
            std::collections::hash_map::Entry::Occupied(_) => {
                Err(format!("a request with the id {id} is already in flight"))
            }
            std::collections::hash_map::Entry::Vacant(slot) => {
                slot.insert(token.clone());
                Ok(token)
            }
        }
    }

    /// Ends a request with its answer, which stays on its stream for `resume_window`.
    pub(crate) fn finish(&self, id: &RawValue, stream: &EventStream, answer: String) {
        let now = Instant::now();
        {
            let mut inner = self.lock();
            inner.calls.remove(&id_key(id));
            inner.last_used = now;
            let finished = (stream.number(), now, answer.len());
            inner.finished.push_back(finished);
            inner.prune(self.resume_window, self.max_stream_bytes);
        }
        stream.finish(answer);
    }

    /// Forgets streams that ended too long ago.
    pub(crate) fn prune(&self) {
        self.lock().prune(self.resume_window, self.max_stream_bytes);
    }

    /// Cancels a request of the client.
    pub(crate) fn cancel(&self, id: &RawValue) {
        if let Some(token) = self.lock().calls.get(&id_key(id)) {
            token.cancel();
        }
    }

    /// Hands an answer of the client to the server that waits for it.
    pub(crate) fn resolve(&self, id: &RawValue, outcome: Outcome) {
        if let Some(waiting) = self.lock().waiting.remove(&id_key(id)) {
            // The server may have gone in the meantime.
            let _ = waiting.send(outcome);
        }
    }

    /// Puts a request of a server to the client, on `stream`, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        stream: &EventStream,
        method: &str,
        params: Option<&RawValue>,
    ) -> Outcome {
        let number = self.next_request.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        let asked = Asked {
            session: self,
            stream,
            key: number.to_string(),
            number,
        };
        self.lock().waiting.insert(asked.key.clone(), sender);
        stream.push(jsonrpc::request(number, method, params));
        tokio::select! {
            answer = receiver => answer.unwrap_or_else(|_| {
                Err(RpcError::new(INTERNAL_ERROR, "the client's session ended"))
            }),
            () = self.ended.cancelled() => {
                Err(RpcError::new(INTERNAL_ERROR, "the client's session ended"))
            }
            () = tokio::time::sleep(self.answer_timeout) => {
                Err(RpcError::new(
                    INTERNAL_ERROR,
                    format!(
                        "the client did not answer `{method}` within {} s (client_answer_timeout)",
                        self.answer_timeout.as_secs_f64()
                    ),
                ))
            }
        }
    }

    /// Refuses a request of a server that the client cannot answer.
    pub(crate) fn refusal(&self, method: &str, params: Option<&RawValue>) -> Option<RpcError> {
        let needed = match method {
            "sampling/createMessage" => "/sampling",
            "roots/list" => "/roots",
            "elicitation/create" => "/elicitation",
            _ => return Some(not_supported(method)),
        };
        if !self.can(needed) {
            return Some(not_supported(method));
        }
        let url_mode = jsonrpc::RawObject::parse(params)
            .ok()
            .and_then(|params| params.text("mode"))
            .is_some_and(|mode| mode == "url");
        (url_mode && !self.can("/elicitation/url")).then(|| not_supported("elicitation by URL"))
    }

    pub(crate) fn set_log_rank(&self, rank: usize) {
        self.lock().log_rank = Some(rank);
    }

    pub(crate) fn log_rank(&self) -> Option<usize> {
        self.lock().log_rank
    }

    pub(crate) fn subscribe(&self, uri: String) {
        self.lock().subscriptions.insert(uri);
    }

    pub(crate) fn unsubscribe(&self, uri: &str) -> bool {
        self.lock().subscriptions.remove(uri)
    }

    /// Served URIs of the resources that the client wants to hear of.
    pub(crate) fn subscriptions(&self) -> Vec<String> {
        self.lock().subscriptions.iter().cloned().collect()
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.lock().subscriptions.contains(uri)
    }

    /// Takes the one place of a reader of the general stream; `None` while it is taken.
    pub(crate) fn open_general(self: &Arc<Self>) -> Option<Box<dyn Send>> {
        self.general_open
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire)
            .ok()
            .map(|_| Box::new(GeneralReader(self.clone())) as Box<dyn Send>)
    }

    /// Ends the session: its calls are cancelled, its streams close.
    pub(crate) fn close(&self) {
        self.ended.cancel();
        self.general.close();
        let mut inner = self.lock();
        inner.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_supported(method: &str) -> RpcError {
    RpcError::new(
        METHOD_NOT_FOUND,
        format!("the client does not support {method}"),
    )
}

impl Inner {
    /// Forgets ended streams that are older than `window` or, oldest first, above `max_bytes`
    /// together. The last one stays: its answer may not have been sent yet.
    fn prune(&mut self, window: Duration, max_bytes: usize) {
        self.finished
            .retain(|(number, _, _)| self.streams.contains_key(number));
        let mut bytes: usize = self.finished.iter().map(|(_, _, bytes)| bytes).sum();
        while let Some((number, ended, size)) = self.finished.front().copied() {
            if ended.elapsed() <= window && (bytes <= max_bytes || self.finished.len() == 1) {
                return;
            }
            bytes -= size;
            self.finished.pop_front();
            self.streams.remove(&number);
        }
    }
}

/// A request to the client that is given up when it is dropped without an answer.
struct Asked<'a> {
    session: &'a Session,
    stream: &'a EventStream,
    key: String,
    number: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.session.lock().waiting.remove(&self.key).is_some() {
            let params: Raw = jsonrpc::raw(&serde_json::json!({"requestId": self.number}));
            self.stream.push(jsonrpc::notification(
                "notifications/cancelled",
                Some(&params),
            ));
        }
    }
}

struct GeneralReader(Arc<Session>);

impl Drop for GeneralReader {
    fn drop(&mut self) {
        self.0.general_open.store(false, Ordering::Release);
        self.0.touch();
    }
}
