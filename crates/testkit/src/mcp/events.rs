//! A stub server of MCP 2024-11-05 over HTTP: an event stream, and an address for messages.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::behaviour::{Out, Stub, StubServer};

/// A server that keeps one [`StubServer`] for each event stream. It ends when it is dropped.
#[derive(Debug)]
pub struct EventsStub {
    /// The address of its event stream.
    pub url: String,
    shared: Arc<Shared>,
    stop: CancellationToken,
}

struct Shared {
    settings: StubServer,
    endpoint: Option<String>,
    state: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    opened: usize,
    sessions: HashMap<String, (Arc<Stub>, Out)>,
    /// Cancelled to close the streams that are open.
    streams: CancellationToken,
    authorizations: Vec<String>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl EventsStub {
    /// Starts a server on a free port.
    pub async fn start(settings: StubServer) -> Self {
        Self::naming(settings, None).await
    }

    /// Starts a server that names `endpoint` for messages, whatever serves that.
    ///
    /// # Panics
    /// When no port can be opened.
    #[expect(clippy::expect_used, reason = "a test cannot go on without it")]
    pub async fn naming(settings: StubServer, endpoint: Option<&str>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            settings,
            endpoint: endpoint.map(str::to_owned),
            state: Mutex::default(),
        });
        let app = Router::new()
            .route("/sse", get(open))
            .route("/messages", post(take))
            .with_state(shared.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            // A test that needs it notices its end.
            let _ = axum::serve(listener, app).await;
        }));
        Self {
            url: format!("http://{address}/sse"),
            shared,
            stop,
        }
    }

    /// How many event streams were opened.
    #[must_use]
    pub fn streams_opened(&self) -> usize {
        self.shared.lock().opened
    }

    /// How many event streams are open.
    #[must_use]
    pub fn streams_open(&self) -> usize {
        self.shared.lock().sessions.len()
    }

    /// The `Authorization` of each message.
    #[must_use]
    pub fn authorizations(&self) -> Vec<String> {
        self.shared.lock().authorizations.clone()
    }

    /// Closes all event streams, and forgets their sessions.
    pub fn close_streams(&self) {
        std::mem::take(&mut self.shared.lock().streams).cancel();
    }
}

impl Drop for EventsStub {
    fn drop(&mut self) {
        self.close_streams();
        self.stop.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a session with its stream.
struct Session {
    shared: Arc<Shared>,
    id: String,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.lock().sessions.remove(&self.id);
    }
}

async fn open(State(shared): State<Arc<Shared>>) -> Response {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let mut state = shared.lock();
    state.opened += 1;
    let id = format!("s{}", state.opened);
    let endpoint = shared
        .endpoint
        .clone()
        .unwrap_or_else(|| format!("/messages?session_id={id}"));
    // The receiver is still there.
    let _ = sender.send(format!("event: endpoint\r\ndata: {endpoint}\r\n\r\n"));
    let out: Out = Arc::new(move |message: &Value| {
        // The client may have gone.
        let _ = sender.send(format!("event: message\r\ndata: {message}\r\n\r\n"));
    });
    let stub = Stub::new(shared.settings.clone());
    state.sessions.insert(id.clone(), (stub, out));
    let closed = state.streams.clone();
    drop(state);
    let session = Session {
        shared: shared.clone(),
        id,
    };
    let events = futures::stream::unfold(
        (receiver, session, closed),
        |(mut receiver, session, closed)| async move {
            let event = closed.run_until_cancelled(receiver.recv()).await??;
            let event = Ok::<_, Infallible>(Bytes::from(event));
            Some((event, (receiver, session, closed)))
        },
    );
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    ([kind], Body::from_stream(events)).into_response()
}

async fn take(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let authorization = headers
        .get(header::AUTHORIZATION)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let session = query.get("session_id").and_then(|id| {
        let mut state = shared.lock();
        state.authorizations.push(authorization.unwrap_or_default());
        state.sessions.get(id).cloned()
    });
    let Some((stub, out)) = session else {
        return (StatusCode::NOT_FOUND, "Could not find session").into_response();
    };
    match serde_json::from_slice::<Value>(&body) {
        Ok(message) => {
            stub.take(&message, &out);
            (StatusCode::ACCEPTED, "Accepted").into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}
