//! A stub server over streamable HTTP in the test's own process.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::serve::ListenerExt as _;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::behaviour::{Out, Stub, StubServer, error};

/// A server that keeps one [`StubServer`] for each session. It ends when it is dropped.
#[derive(Debug)]
pub struct HttpStub {
    /// The address of its endpoint.
    pub url: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

/// One message that a stub got.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// The method of the message; empty for an answer.
    pub method: String,
    /// The headers with which it came, names in lower case.
    pub headers: BTreeMap<String, String>,
}

struct Shared {
    settings: StubServer,
    as_events: bool,
    state: Mutex<Sessions>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Sessions {
    stubs: HashMap<String, Arc<Stub>>,
    opened: usize,
    deleted: usize,
    seen: Vec<SeenRequest>,
}

impl HttpStub {
    /// Starts a server on a free port. With `as_events` it answers requests by event streams, else
    /// by JSON, in which case it can send nothing but answers.
    ///
    /// # Panics
    /// When no port can be opened.
    #[expect(clippy::expect_used, reason = "a test cannot go on without it")]
    pub async fn start(settings: StubServer, as_events: bool) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            settings,
            as_events,
            state: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let app = axum::Router::new()
            .route("/mcp", any(handle))
            .with_state(shared.clone());
        let listener = listener.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        let stopped = stop.clone().cancelled_owned();
        tokio::spawn(async move {
            tokio::select! {
                _ = axum::serve(listener, app) => {}
                () = stopped => {}
            }
        });
        Self {
            url: format!("http://{address}/mcp"),
            shared,
            stop,
        }
    }

    /// How many times `initialize` was answered.
    #[must_use]
    pub fn sessions_opened(&self) -> usize {
        self.shared.lock().opened
    }

    /// How many sessions were ended by their client.
    #[must_use]
    pub fn sessions_deleted(&self) -> usize {
        self.shared.lock().deleted
    }

    /// All messages so far.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.shared.lock().seen.clone()
    }

    /// Forgets all sessions, as a server does that was started again.
    pub fn forget_sessions(&self) {
        self.shared.lock().stubs.clear();
    }
}

impl Drop for HttpStub {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(status: StatusCode, text: &str) -> Response {
    let body = error(&Value::Null, -32600, text).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let session = text("mcp-session-id");
    let known = session.and_then(|id| shared.lock().stubs.get(id).cloned());
    if method == Method::DELETE {
        let mut state = shared.lock();
        state.deleted += 1;
        session.map(|id| state.stubs.remove(id));
        return StatusCode::OK.into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let accept = text("accept").unwrap_or_default();
    if !accept.contains("application/json") || !accept.contains("text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "accept both types");
    }
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        return refuse(StatusCode::BAD_REQUEST, "no JSON");
    };
    remember(&shared, &message, &headers);
    let is_initialize = message["method"] == "initialize";
    let (stub, id) = match (known, session) {
        (Some(stub), Some(id)) => (stub, id.to_owned()),
        (None, None) if is_initialize => {
            let mut state = shared.lock();
            state.opened += 1;
            let id = format!("session-{}", state.opened);
            let stub = Stub::new(shared.settings.clone());
            state.stubs.insert(id.clone(), stub.clone());
            (stub, id)
        }
        (None, Some(_)) => return refuse(StatusCode::NOT_FOUND, "no such session"),
        _ => return refuse(StatusCode::BAD_REQUEST, "no session"),
    };
    if !is_initialize && text("mcp-protocol-version").is_none() {
        return refuse(StatusCode::BAD_REQUEST, "no protocol version");
    }
    let mut response = answer(&shared, &stub, &message).await;
    if let Ok(id) = id.parse() {
        response.headers_mut().insert("mcp-session-id", id);
    }
    response
}

fn remember(shared: &Shared, message: &Value, headers: &HeaderMap) {
    let headers = headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value)
        })
        .collect();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    shared.lock().seen.push(SeenRequest { method, headers });
}

async fn answer(shared: &Shared, stub: &Arc<Stub>, message: &Value) -> Response {
    let (sender, mut receiver) = mpsc::unbounded_channel::<Value>();
    let out: Out = Arc::new(move |message| {
        // The client may have gone.
        let _ = sender.send(message.clone());
    });
    stub.take(message, &out);
    drop(out);
    let is_request = message.get("id").is_some() && message.get("method").is_some();
    if !is_request {
        return StatusCode::ACCEPTED.into_response();
    }
    if !shared.as_events {
        while let Some(message) = receiver.recv().await {
            if message.get("method").is_none() {
                let kind = (header::CONTENT_TYPE, "application/json");
                return ([kind], message.to_string()).into_response();
            }
        }
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let events = futures::stream::unfold(receiver, |mut receiver| async move {
        let message = receiver.recv().await?;
        let event = Bytes::from(format!("event: message\ndata: {message}\n\n"));
        Some((Ok::<_, Infallible>(event), receiver))
    });
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    ([kind], Body::from_stream(events)).into_response()
}
