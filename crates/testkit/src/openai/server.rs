//! The server of the stub.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::answer::{completion, error};
use super::check::{self, Refusal};
use super::connection::{CuttableListener, Scissors};
use super::schema::smallest;
use super::script::{Fault, Script, Turn};

/// Largest body of a request.
const LARGEST_REQUEST: usize = 64 * 1024 * 1024;
/// Most requests that are kept; the oldest ones go first.
const MOST_KEPT: usize = 10_000;

/// How a stub behaves.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it answers.
    pub script: Script,
    /// The key that it accepts; `None` for any, or none at all.
    pub key: Option<String>,
    /// Lets parameters and fields pass that only OpenAI itself refuses, as compatible servers do.
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
        let mut progress = self.progress();
        if progress.kept.len() == MOST_KEPT {
            progress.kept.pop_front();
        }
        progress.kept.push_back(recorded);
    }

    /// The turn for `body`, and the number of this answer.
    fn choose(&self, body: &Value) -> Option<(Turn, usize)> {
        let script = &self.options.script;
        let mut progress = self.progress();
        progress.taken.resize(script.turns.len(), false);
        let number = progress.answered;
        let last = || script.turns.last().filter(|_| script.repeat_last);
        let turn = if let Some(value) = asked_for(body).filter(|_| script.answer_schemas) {
            Turn::says(value.to_string())
        } else if script.by_conversation {
            let messages = body.get("messages").and_then(Value::as_array);
            let said = messages
                .into_iter()
                .flatten()
                .filter(|message| message.get("role") == Some(&json!("assistant")))
                .count();
            script.turns.get(said).or_else(last)?.clone()
        } else {
            let text = body
                .get("messages")
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

/// The smallest answer to a request for a JSON schema.
fn asked_for(body: &Value) -> Option<Value> {
    let format = body.get("response_format")?;
    if format.get("type")?.as_str()? != "json_schema" {
        return None;
    }
    Some(smallest(format.pointer("/json_schema/schema")?))
}

/// A running stub on a loopback port. It ends when dropped.
#[derive(Debug)]
pub struct OpenAiStub {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl OpenAiStub {
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
        tokio::spawn(run(listener, Arc::clone(&shared)));
        Ok(Self { address, shared })
    }

    /// The base URL for clients, up to `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The key that the stub accepts; empty if it accepts any.
    #[must_use]
    pub fn key(&self) -> &str {
        self.shared.options.key.as_deref().unwrap_or_default()
    }

    /// The look-up of `OPENAI_BASE_URL` and `OPENAI_API_KEY` that leads a client here.
    pub fn variables(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + use<> {
        let (base_url, key) = (self.base_url(), self.key().to_owned());
        move |name| match name {
            "OPENAI_BASE_URL" => Some(base_url.clone()),
            "OPENAI_API_KEY" => Some(key.clone()),
            _ => None,
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

impl Drop for OpenAiStub {
    fn drop(&mut self) {
        self.shared.cancel.cancel();
    }
}

/// Serves a stub at `listener` until `cancel` is cancelled.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    cancel: CancellationToken,
) -> io::Result<()> {
    run(listener, shared(options, cancel)).await
}

fn shared(options: Options, cancel: CancellationToken) -> Arc<Shared> {
    Arc::new(Shared {
        options,
        cancel,
        state: Mutex::default(),
    })
}

async fn run(listener: TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let cancel = shared.cancel.clone();
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(shared);
    axum::serve(
        CuttableListener(listener),
        router.into_make_service_with_connect_info::<Scissors>(),
    )
    .with_graceful_shutdown(cancel.cancelled_owned())
    .await
}

async fn models() -> Response {
    let list = json!({"object": "list", "data": [{"id": "stub", "object": "model"}]});
    json_response(StatusCode::OK, &list)
}

async fn unknown(method: Method, request: Request) -> Response {
    let message = format!("Invalid URL ({method} {})", request.uri().path());
    let body = error(&message, "invalid_request_error", None, None);
    json_response(StatusCode::NOT_FOUND, &body)
}

async fn chat(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(scissors): ConnectInfo<Scissors>,
    uri: http::Uri,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let outcome = admit(&shared, &headers, &body);
    let chosen = outcome.and_then(|()| {
        shared.choose(&body).ok_or_else(|| {
            let message = format!(
                "the stub's script is at its end: it has {} turns",
                shared.options.script.turns.len()
            );
            Rejection::bad_request(&message, None, Some("stub_script_ended"))
        })
    });
    shared.keep(Recorded {
        path: uri.path().to_owned(),
        headers: readable(&headers),
        body: body.clone(),
        refusal: chosen
            .as_ref()
            .err()
            .map(|rejection| rejection.reason.clone()),
    });
    let (turn, number) = match chosen {
        Ok(chosen) => chosen,
        Err(rejection) => return json_response(rejection.status, &rejection.body),
    };
    let delay = Duration::from_millis(turn.delay_ms);
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = shared.cancel.cancelled() => {}
        }
    }
    let mut response = match &turn.fault {
        Some(fault) => faulty(fault, &shared, &scissors).await,
        None => {
            let model = body
                .get("model")
                .and_then(Value::as_str)
                .unwrap_or_default();
            json_response(
                StatusCode::OK,
                &completion(&turn, number, model, bytes.len()),
            )
        }
    };
    let request_id = HeaderValue::try_from(format!("req_stub_{number}"));
    if let Ok(value) = request_id {
        response.headers_mut().insert("x-request-id", value);
    }
    for (name, value) in &turn.headers {
        let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = pair {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A request that is turned away.
struct Rejection {
    status: StatusCode,
    body: Value,
    reason: String,
}

impl Rejection {
    fn bad_request(message: &str, param: Option<&str>, code: Option<&str>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            body: error(message, "invalid_request_error", param, code),
            reason: message.to_owned(),
        }
    }

    fn unauthorized(message: &str, code: Option<&str>) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            ..Self::bad_request(message, None, code)
        }
    }
}

fn admit(shared: &Shared, headers: &HeaderMap, body: &Value) -> Result<(), Rejection> {
    if let Some(key) = &shared.options.key {
        let given = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match given {
            None => {
                return Err(Rejection::unauthorized(
                    "No API key was given in an Authorization header (Authorization: Bearer KEY)",
                    None,
                ));
            }
            Some(given) if given != key => {
                return Err(Rejection::unauthorized(
                    &format!("Incorrect API key provided: {given}"),
                    Some("invalid_api_key"),
                ));
            }
            Some(_) => {}
        }
    }
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.starts_with("application/json"));
    if !is_json || body.is_null() {
        return Err(Rejection::bad_request(
            "The body of the request must be JSON, with Content-Type: application/json",
            None,
            None,
        ));
    }
    check::check(body, shared.options.lenient).map_err(|refusal| {
        let Refusal {
            message,
            param,
            code,
        } = refusal;
        Rejection::bad_request(&message, param.as_deref(), code.as_deref())
    })
}

fn readable(headers: &HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .filter(|(name, _)| *name != header::AUTHORIZATION)
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), text)
        })
        .collect()
}

async fn faulty(fault: &Fault, shared: &Shared, scissors: &Scissors) -> Response {
    match fault {
        Fault::Status { status, body } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            match body {
                Value::String(text) => (status, text.clone()).into_response(),
                body => json_response(status, body),
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
        Fault::HalfBody => {
            let half = Bytes::from_static(br#"{"id": "chatcmpl-stub", "choices": [{"index": 0, "#);
            let promised = half.len() * 2;
            let parts = [
                Ok(half),
                Err(io::Error::from(io::ErrorKind::ConnectionAborted)),
            ];
            let headers = [
                (header::CONTENT_TYPE, "application/json".to_owned()),
                (header::CONTENT_LENGTH, promised.to_string()),
            ];
            (headers, Body::from_stream(stream::iter(parts))).into_response()
        }
        Fault::MalformedJson => (
            [(header::CONTENT_TYPE, "application/json")],
            r#"{"id": "chatcmpl-stub", "choices": ["#,
        )
            .into_response(),
    }
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}
