//! The server of a stub: admits requests, keeps them, answers by the script.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::connection::{CuttableListener, Scissors};
use super::script::{Fault, Script, Turn};
use super::{Interface, Received, Rejection, Reply};

/// Largest body of a request.
const LARGEST_REQUEST: usize = 64 * 1024 * 1024;
/// Most requests that are kept; the oldest ones go first.
const MOST_KEPT: usize = 10_000;

/// Where requests hold their conversation.
const CONVERSATIONS: &[&str] = &["messages", "input", "contents"];

/// The media type of a stream of frames.
const FRAMES: &str = "application/vnd.amazon.eventstream";

/// The variable with a folder into which every admitted request is written, for checks of another
/// kind than the stubs' own.
const RECORDS_VARIABLE: &str = "ARCHIPELAGO_STUB_RECORDS";

/// How a stub behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it answers.
    pub script: Script,
    /// The key that it accepts; `None` for any, or none at all.
    pub key: Option<String>,
    /// Lets parameters and fields pass that only the provider itself refuses, as compatible servers do.
    pub lenient: bool,
}

impl Options {
    /// A strict stub with the key `key` that answers `script`.
    pub fn new(script: Script, key: impl Into<String>) -> Self {
        Self {
            script,
            key: Some(key.into()),
            lenient: false,
        }
    }
}

/// One request that reached the stub.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// The headers by lower-case name, the key left out.
    pub headers: BTreeMap<String, String>,
    /// The body; null if it is no JSON.
    pub body: Value,
    /// Why it was refused, if it was.
    pub refusal: Option<String>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    cancel: CancellationToken,
    state: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// Indices of the turns that were taken.
    taken: Vec<bool>,
    answered: usize,
    kept: VecDeque<Recorded>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, recorded: Recorded) {
        if recorded.refusal.is_none() {
            write_record(&recorded);
        }
        let mut progress = self.progress();
        if progress.kept.len() == MOST_KEPT {
            progress.kept.pop_front();
        }
        progress.kept.push_back(recorded);
    }

    /// The turn for `body`, and the number of this answer.
    fn choose<I: Interface>(&self, body: &Value) -> Option<(Turn, usize)> {
        let script = &self.options.script;
        let mut progress = self.progress();
        progress.taken.resize(script.turns.len(), false);
        let number = progress.answered;
        if let Some(turn) = script.first.get(number) {
            progress.answered += 1;
            return Some((turn.clone(), number));
        }
        let last = || script.turns.last().filter(|_| script.repeat_last);
        let turn = if let Some(value) = I::asked_for(body).filter(|_| script.answer_schemas) {
            Turn::says(value.to_string())
        } else if script.by_conversation {
            script
                .turns
                .get(I::turns_of_model(body))
                .or_else(last)?
                .clone()
        } else {
            let text = CONVERSATIONS
                .iter()
                .find_map(|name| body.get(*name))
                .map(Value::to_string)
                .unwrap_or_default();
            let fits = |turn: &Turn| {
                turn.when.as_ref().is_none_or(|when| {
                    // As it stands in the JSON of the messages.
                    let quoted = json!(when).to_string();
                    text.contains(&quoted[1..quoted.len() - 1])
                })
            };
            let next = script
                .turns
                .iter()
                .enumerate()
                .find(|(index, turn)| !progress.taken[*index] && fits(turn));
            match next {
                Some((index, turn)) => {
                    progress.taken[index] = true;
                    turn.clone()
                }
                None => last().filter(|turn| fits(turn))?.clone(),
            }
        };
        progress.answered += 1;
        Some((turn, number))
    }
}

/// A running stub on a loopback port. It ends when dropped.
#[derive(Debug)]
pub struct Stub<I> {
    address: SocketAddr,
    shared: Arc<Shared>,
    interface: PhantomData<fn() -> I>,
}

impl<I: Interface> Stub<I> {
    /// Starts a strict stub that answers `script`.
    ///
    /// # Errors
    /// When no loopback port can be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_with(Options::new(script, "sk-stub-0123456789")).await
    }

    /// Starts a stub.
    ///
    /// # Errors
    /// When no loopback port can be had.
    pub async fn start_with(options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = shared(options, CancellationToken::new());
        tokio::spawn(run::<I>(listener, Arc::clone(&shared)));
        Ok(Self {
            address,
            shared,
            interface: PhantomData,
        })
    }

    /// The base URL for clients.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, I::BASE)
    }

    /// The key that the stub accepts; empty if it accepts any.
    #[must_use]
    pub fn key(&self) -> &str {
        self.shared.options.key.as_deref().unwrap_or_default()
    }

    /// The look-up of the two variables that lead a client here ([`Interface::VARIABLES`]).
    pub fn variables(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + use<I> {
        let (base_url, key) = (self.base_url(), self.key().to_owned());
        let (base_name, key_name) = I::VARIABLES;
        move |name| {
            if name == base_name {
                Some(base_url.clone())
            } else {
                (name == key_name).then(|| key.clone())
            }
        }
    }

    /// All requests so far, those that were refused included.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.progress().kept.iter().cloned().collect()
    }

    /// Why requests were refused, in order.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        let progress = self.shared.progress();
        progress
            .kept
            .iter()
            .filter_map(|recorded| recorded.refusal.clone())
            .collect()
    }

    /// How many turns of the script are still to come.
    #[must_use]
    pub fn turns_left(&self) -> usize {
        let progress = self.shared.progress();
        let taken = progress.taken.iter().filter(|taken| **taken).count();
        self.shared.options.script.turns.len() - taken
    }
}

impl<I> Drop for Stub<I> {
    fn drop(&mut self) {
        self.shared.cancel.cancel();
    }
}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve<I: Interface>(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    run::<I>(listener, shared(options, cancel)).await
}

fn shared(options: Options, cancel: CancellationToken) -> Arc<Shared> {
    Arc::new(Shared {
        options,
        cancel,
        state: Mutex::default(),
    })
}

async fn run<I: Interface>(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let cancel = shared.cancel.clone();
    let router = Router::new()
        .fallback(answer::<I>)
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(shared);
    axum::serve(
        CuttableListener(listener),
        router.into_make_service_with_connect_info::<Scissors>(),
    )
    .with_graceful_shutdown(cancel.cancelled_owned())
    .await
}

async fn answer<I: Interface>(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(scissors): ConnectInfo<Scissors>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    if method == Method::GET && path.ends_with("/models") {
        return json_response(StatusCode::OK, &I::models());
    }
    if method != Method::POST || !I::is_chat(&path) {
        let message = format!("there is no {method} {path} here");
        return json_response(StatusCode::NOT_FOUND, &I::error(404, &message));
    }
    let received = Received {
        path,
        query: uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        length: bytes.len(),
        bytes,
        headers,
    };
    let chosen = admit::<I>(&shared, &received).and_then(|()| {
        shared.choose::<I>(&received.body).ok_or_else(|| {
            let turns = shared.options.script.turns.len();
            let message = format!("the stub's script is at its end: it has {turns} turns");
            Rejection::new::<I>(400, &message)
        })
    });
    shared.keep(Recorded {
        path: received.path.clone(),
        headers: readable::<I>(&received.headers),
        body: received.body.clone(),
        refusal: chosen
            .as_ref()
            .err()
            .map(|rejection| rejection.reason.clone()),
    });
    let (turn, number) = match chosen {
        Ok(chosen) => chosen,
        Err(rejection) => {
            let response = json_response(status_of(rejection.status), &rejection.body);
            return with_error_header::<I>(response);
        }
    };
    let delay = Duration::from_millis(turn.delay_ms);
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shared.cancel.cancelled() => {}
        }
    }
    let mut response = match &turn.fault {
        Some(fault) => faulty::<I>(fault, &turn, number, &received, &shared, &scissors).await,
        None => whole(I::reply(&turn, number, &received)),
    };
    response = with_error_header::<I>(response);
    let request_id = HeaderValue::try_from(format!("req_stub_{number}"));
    if let Ok(value) = request_id {
        response.headers_mut().insert(I::REQUEST_ID, value);
    }
    for (name, value) in &turn.headers {
        let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = pair {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The same answer with the header that says what kind of error it is, if it is one.
fn with_error_header<I: Interface>(mut response: Response) -> Response {
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        let header = I::error_header(status.as_u16());
        if let Some((name, value)) = header {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
    }
    response
}

fn admit<I: Interface>(shared: &Shared, received: &Received) -> Result<(), Rejection> {
    if let Some(key) = &shared.options.key {
        I::authorise(received, key)?;
    }
    let is_json = received
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if !is_json || received.body.is_null() {
        return Err(Rejection::new::<I>(
            400,
            "The body of the request must be JSON, with Content-Type: application/json",
        ));
    }
    I::check(received, shared.options.lenient)
}

fn readable<I: Interface>(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .filter(|(name, _)| *name != header::AUTHORIZATION && *name != I::KEY_HEADER)
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), text)
        })
        .collect()
}

/// Writes the request into the folder for records, if there is one.
fn write_record(recorded: &Recorded) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(folder) = std::env::var_os(RECORDS_VARIABLE) else {
        return;
    };
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{number}.json", std::process::id());
    let record = json!({"path": recorded.path, "body": recorded.body});
    if let Err(error) = std::fs::write(Path::new(&folder).join(name), record.to_string()) {
        tracing::warn!(%error, "a request was not recorded");
    }
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A good answer: JSON, or the events of a stream.
fn whole(reply: Reply) -> Response {
    match reply {
        Reply::Json(body) => json_response(StatusCode::OK, &body),
        Reply::Events(events) => (
            [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")],
            events.concat(),
        )
            .into_response(),
        Reply::Frames(frames) => {
            ([(header::CONTENT_TYPE, FRAMES)], frames.concat()).into_response()
        }
    }
}

async fn faulty<I: Interface>(
    fault: &Fault,
    turn: &Turn,
    number: usize,
    received: &Received,
    shared: &Shared,
    scissors: &Scissors,
) -> Response {
    match fault {
        Fault::Status { status, body } => {
            let code = status_of(*status);
            match body {
                Value::String(text) => (code, text.clone()).into_response(),
                Value::Null => {
                    let message = format!("stub failure {status}");
                    json_response(code, &I::error(*status, &message))
                }
                body => json_response(code, body),
            }
        }
        Fault::Stall => {
            shared.cancel.cancelled().await;
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
        Fault::Drop => {
            scissors.cut();
            StatusCode::OK.into_response()
        }
        Fault::HalfBody => half(I::reply(turn, number, received)),
        Fault::MalformedJson => (
            [(header::CONTENT_TYPE, "application/json")],
            r#"{"id": "stub", "content": ["#,
        )
            .into_response(),
        Fault::Midway => match I::reply(turn, number, received) {
            Reply::Json(_) => json_response(StatusCode::OK, &I::error(529, "stub failure midway")),
            Reply::Events(mut events) => {
                events.truncate(events.len() / 2);
                events.push(I::error_event(received, "stub failure midway"));
                whole(Reply::Events(events))
            }
            Reply::Frames(mut frames) => {
                frames.truncate(frames.len() / 2);
                frames.push(I::error_frame(received, "stub failure midway"));
                whole(Reply::Frames(frames))
            }
        },
    }
}

/// The first half of an answer, then the connection closes.
fn half(reply: Reply) -> Response {
    let (kind, bytes) = match reply {
        Reply::Json(body) => ("application/json", Bytes::from(body.to_string())),
        Reply::Events(events) => ("text/event-stream", Bytes::from(events.concat())),
        Reply::Frames(frames) => (FRAMES, Bytes::from(frames.concat())),
    };
    let half = bytes.slice(..bytes.len() / 2);
    let parts = [
        Ok(half),
        Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
    ];
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_LENGTH, bytes.len().to_string()),
    ];
    (headers, Body::from_stream(stream::iter(parts))).into_response()
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}
