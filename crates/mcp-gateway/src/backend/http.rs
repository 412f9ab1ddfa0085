//! Servers that are reached over streamable HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use formats::apps::ServerConfig;
use futures::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::{RequestBuilder, Response};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::peer::{CallError, NoticeSink, Outgoing, Peer};
use super::remote::{DELIVERY, HttpConfigError, Remote, client, content_type};
use super::sse::SseDecoder;
use crate::options::GatewayOptions;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const BOTH_TYPES: &str = "application/json, text/event-stream";
/// How many messages may wait to be sent.
const OUTBOX: usize = 64;
/// How often an answer whose stream broke is asked for again.
const RESUMES: u32 = 5;
/// The wait before that, unless the server asks for another one.
const RESUME_DELAY: Duration = Duration::from_secs(1);
/// The longest wait that a server may ask for.
const MAX_RESUME_DELAY: Duration = Duration::from_secs(30);
/// How long the end of a session may take.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session with a remote server.
pub(crate) struct HttpLink {
    pub(crate) peer: Peer,
    shared: Arc<Shared>,
}

struct Shared {
    remote: Remote,
    session: Mutex<Session>,
    expired: AtomicBool,
    closing: CancellationToken,
}

#[derive(Default, Clone)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

impl HttpLink {
    /// Prepares the session; the MCP handshake is the caller's.
    pub(crate) fn open(
        name: &Arc<str>,
        config: &ServerConfig,
        options: &GatewayOptions,
        notices: NoticeSink,
    ) -> Result<Self, HttpConfigError> {
        let client = client(options).read_timeout(options.http_read_timeout);
        let remote = Remote::new(name, config, options, client)?;
        let (outbox, messages) = mpsc::channel(OUTBOX);
        let peer = Peer::new(name.clone(), outbox, notices);
        let shared = Arc::new(Shared {
            remote,
            session: Mutex::default(),
            expired: AtomicBool::new(false),
            closing: CancellationToken::new(),
        });
        tokio::spawn(send_messages(shared.clone(), peer.clone(), messages));
        Ok(Self { peer, shared })
    }

    /// To be called after the handshake: further requests name the version, and messages that
    /// belong to no request are listened for.
    pub(crate) fn established(&self, version: &str) {
        self.shared.lock().version = HeaderValue::from_str(version).ok();
        tokio::spawn(listen(self.shared.clone(), self.peer.clone()));
    }

    /// Whether the server has forgotten the session.
    pub(crate) fn is_expired(&self) -> bool {
        self.shared.expired.load(Ordering::Acquire)
    }

    /// Ends the session.
    pub(crate) async fn stop(self) {
        self.shared.closing.cancel();
        self.peer.close(&format!(
            "the session with server `{}` was ended",
            self.shared.remote.name
        ));
        if self.is_expired() || self.shared.lock().id.is_none() {
            return;
        }
        let delete = self
            .shared
            .prepare(
                self.shared
                    .remote
                    .client
                    .delete(self.shared.remote.url.clone()),
                HeaderMap::new(),
            )
            .timeout(DELETE_TIMEOUT)
            .send();
        // A server need not support it.
        let _ = delete.await;
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the headers of the caller, of the session, and the configured ones, the latter winning.
    fn prepare(&self, request: RequestBuilder, mut headers: HeaderMap) -> RequestBuilder {
        let session = self.lock().clone();
        if let Some(id) = session.id {
            headers.insert(SESSION_ID, id);
        }
        if let Some(version) = session.version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        self.remote.prepare(request, headers)
    }
}

async fn send_messages(shared: Arc<Shared>, peer: Peer, mut messages: mpsc::Receiver<Outgoing>) {
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            () = shared.closing.cancelled() => return,
        };
        let Some(message) = message else { return };
        if message.request.is_none() {
            // In order: a server may refuse requests that overtake `notifications/initialized`.
            tokio::select! {
                _ = tokio::time::timeout(DELIVERY, exchange(&shared, &peer, message)) => {}
                () = shared.closing.cancelled() => return,
            }
            continue;
        }
        let shared = shared.clone();
        let peer = peer.clone();
        tokio::spawn(async move {
            let given_up = message.given_up.clone();
            let closing = shared.closing.clone();
            tokio::select! {
                () = exchange(&shared, &peer, message) => {}
                () = given_up.cancelled() => {}
                () = closing.cancelled() => {}
            }
        });
    }
}

/// Posts one message and takes in what comes back.
async fn exchange(shared: &Shared, peer: &Peer, message: Outgoing) {
    let mut headers = message.headers;
    headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH_TYPES));
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    let request = shared
        .prepare(
            shared.remote.client.post(shared.remote.url.clone()),
            headers,
        )
        .body(message.text);
    let result = match request.send().await {
        Ok(response) => take_in(shared, peer, response, message.request).await,
        Err(error) => Err(shared.remote.failure(&error)),
    };
    let Some(id) = message.request else {
        if let Err(error) = result {
            tracing::debug!(server = %shared.remote.name, %error, "a message was not delivered");
        }
        return;
    };
    if let Err(error) = result {
        peer.fail(id, error);
    } else if peer.is_waiting(id) {
        let name = &shared.remote.name;
        peer.fail(
            id,
            CallError::Upstream(format!(
                "server `{name}` accepted the request but gave no answer"
            )),
        );
    }
}

async fn take_in(
    shared: &Shared,
    peer: &Peer,
    response: Response,
    request: Option<u64>,
) -> Result<(), CallError> {
    let status = response.status();
    if let Some(id) = response.headers().get(&SESSION_ID) {
        shared.lock().id.get_or_insert_with(|| id.clone());
    }
    if status == StatusCode::NOT_FOUND && shared.lock().id.is_some() {
        shared.expired.store(true, Ordering::Release);
        return Err(CallError::SessionExpired(shared.remote.name.clone()));
    }
    let kind = content_type(&response);
    if !status.is_success() {
        let body = shared.remote.collect(response).await?;
        if kind == Some("application/json") {
            peer.receive(&body, request);
        }
        if request.is_some_and(|id| !peer.is_waiting(id)) {
            return Ok(());
        }
        return Err(shared.remote.bad_status(status, &body));
    }
    match kind {
        Some("text/event-stream") => follow(shared, peer, response, request).await,
        Some("application/json") => {
            let body = shared.remote.collect(response).await?;
            peer.receive(&body, request);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Reads the event stream of a request to its answer, connecting again where it breaks and the
/// server gave event ids.
async fn follow(
    shared: &Shared,
    peer: &Peer,
    response: Response,
    request: Option<u64>,
) -> Result<(), CallError> {
    let mut decoder = SseDecoder::new(shared.remote.max_message_bytes);
    let mut failure = read_events(shared, peer, response, request, &mut decoder)
        .await
        .err();
    let Some(id) = request else { return Ok(()) };
    for _ in 0..RESUMES {
        if !peer.is_waiting(id) {
            return Ok(());
        }
        let Some(last) = decoder.last_id.clone() else {
            break;
        };
        sleep(resume_delay(&decoder)).await;
        let Ok(response) = get(shared, Some(&last)).await else {
            continue;
        };
        failure = read_events(shared, peer, response, request, &mut decoder)
            .await
            .err();
    }
    match failure {
        Some(error) if peer.is_waiting(id) => Err(error),
        _ => Ok(()),
    }
}

fn resume_delay(decoder: &SseDecoder) -> Duration {
    decoder
        .retry_ms
        .map_or(RESUME_DELAY, Duration::from_millis)
        .min(MAX_RESUME_DELAY)
}

async fn read_events(
    shared: &Shared,
    peer: &Peer,
    response: Response,
    request: Option<u64>,
    decoder: &mut SseDecoder,
) -> Result<(), CallError> {
    let mut pieces = response.bytes_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| shared.remote.failure(&error))?;
        let events = decoder.feed(&piece).map_err(|error| {
            CallError::Upstream(format!("server `{}`: {error}", shared.remote.name))
        })?;
        for event in events {
            peer.receive(event.data.as_bytes(), request);
        }
        if request.is_some_and(|id| !peer.is_waiting(id)) {
            return Ok(());
        }
    }
    Ok(())
}

/// Opens an event stream by GET.
async fn get(shared: &Shared, last_id: Option<&str>) -> Result<Response, Option<StatusCode>> {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    );
    if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
        headers.insert(LAST_EVENT_ID, id);
    }
    let request = shared.prepare(shared.remote.client.get(shared.remote.url.clone()), headers);
    let response = request.send().await.map_err(|_| None)?;
    if response.status().is_success() && content_type(&response) == Some("text/event-stream") {
        Ok(response)
    } else {
        Err(Some(response.status()))
    }
}

/// Listens for messages that belong to no request, as long as the session lasts and the server
/// offers them.
async fn listen(shared: Arc<Shared>, peer: Peer) {
    let work = async {
        let mut decoder = SseDecoder::new(shared.remote.max_message_bytes);
        loop {
            match get(&shared, decoder.last_id.clone().as_deref()).await {
                Ok(response) => {
                    // The end of the stream and its failure are the same: connect again.
                    let _ = read_events(&shared, &peer, response, None, &mut decoder).await;
                }
                Err(Some(status)) => {
                    tracing::debug!(server = %shared.remote.name, %status, "offers no stream of its own");
                    return;
                }
                Err(None) => {}
            }
            sleep(resume_delay(&decoder)).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = shared.closing.cancelled() => {}
    }
}
