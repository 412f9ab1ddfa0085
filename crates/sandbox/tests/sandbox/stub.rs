//! An environment that checks what it is sent and answers as it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Multipart, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt as _;

/// What the stub answers, changed by tests, and what it was sent.
#[derive(Default)]
pub(crate) struct Script {
    /// Health checks that are answered with 503 before the first good one.
    pub(crate) unhealthy: usize,
    /// Status and body of `/data/populate` instead of a good answer.
    pub(crate) populate: Option<(u16, String)>,
    /// Status and body of `/apps` instead of a good answer.
    pub(crate) apps: Option<(u16, String)>,
    /// One entry per snapshot attempt; when it is empty, a whole snapshot is sent.
    pub(crate) snapshots: Vec<SnapshotAnswer>,
    /// Subsystem and bytes of each archive.
    pub(crate) populated: Vec<(String, Vec<u8>)>,
    /// Bodies of `/apps`.
    pub(crate) configured: Vec<serde_json::Value>,
    /// Snapshots asked for.
    pub(crate) snapshots_asked: usize,
}

/// A snapshot that goes wrong.
#[derive(Clone, Copy)]
pub(crate) enum SnapshotAnswer {
    /// 500 with a detail.
    Fails,
    /// Some bytes, then the connection breaks.
    BreaksOff,
    /// Some bytes, then nothing for a long time.
    Stalls,
    /// Some bytes, a pause, the rest.
    Pauses(Duration),
    /// 403.
    Forbidden,
}

/// The bytes of a whole snapshot.
pub(crate) const SNAPSHOT: &[u8] = b"\x1f\x8b the bytes of a snapshot are opaque to the client";

pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    pub(crate) script: Arc<Mutex<Script>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Stub {
    pub(crate) async fn start(script: Script) -> Self {
        let script = Arc::new(Mutex::new(script));
        let routes = Router::new()
            .route("/health", get(health))
            .route("/apps", post(apps))
            .route("/data/populate", post(populate))
            .route("/data/snapshot", post(snapshot))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            axum::serve(listener, routes).await.unwrap();
        });
        Self {
            address,
            script,
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

type Shared = State<Arc<Mutex<Script>>>;

async fn health(State(script): Shared) -> Response {
    let mut script = script.lock().unwrap();
    if script.unhealthy > 0 {
        script.unhealthy -= 1;
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    "OK".into_response()
}

fn json(status: u16, body: String) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::from_u16(status).unwrap(), json, body).into_response()
}

async fn apps(State(script): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let content_type = headers.get(header::CONTENT_TYPE).unwrap();
    assert!(
        content_type
            .to_str()
            .unwrap()
            .starts_with("application/json")
    );
    let config: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let mut script = script.lock().unwrap();
    script.configured.push(config.clone());
    if let Some((status, body)) = script.apps.clone() {
        return json(status, body);
    }
    let servers: Vec<&String> = config["mcpServers"].as_object().unwrap().keys().collect();
    let answer = serde_json::json!({"servers": servers, "duration_ms": 1.5});
    json(200, answer.to_string())
}

#[derive(serde::Deserialize)]
struct Target {
    subsystem: String,
}

/// Refuses what the interface refuses: another part than one file named `archive`, no gzip.
async fn populate(
    State(script): Shared,
    Query(target): Query<Target>,
    mut form: Multipart,
) -> Response {
    if let Some((status, body)) = script.lock().unwrap().populate.clone() {
        return json(status, body);
    }
    let part = form.next_field().await.unwrap().unwrap();
    if part.name() != Some("archive") || part.file_name().is_none() {
        return json(
            422,
            r#"{"detail": "no file part named archive"}"#.to_owned(),
        );
    }
    let bytes = part.bytes().await.unwrap().to_vec();
    assert!(form.next_field().await.unwrap().is_none());
    if !bytes.starts_with(b"\x1f\x8b") {
        return json(400, r#"{"detail": "not a gzip file"}"#.to_owned());
    }
    let answer = serde_json::json!({
        "objects_added": 3, "subsystem": target.subsystem, "extracted_bytes": bytes.len(),
        "hook_timings": [],
    });
    let mut script = script.lock().unwrap();
    script.populated.push((target.subsystem, bytes));
    json(200, answer.to_string())
}

async fn snapshot(State(script): Shared, body: Bytes) -> Response {
    assert!(body.is_empty());
    let answer = {
        let mut script = script.lock().unwrap();
        script.snapshots_asked += 1;
        (!script.snapshots.is_empty()).then(|| script.snapshots.remove(0))
    };
    let (begin, end) = SNAPSHOT.split_at(5);
    let pause = match answer {
        Some(SnapshotAnswer::Fails) => return json(500, r#"{"detail": "disk on fire"}"#.into()),
        Some(SnapshotAnswer::Forbidden) => return json(403, r#"{"detail": "no"}"#.into()),
        Some(SnapshotAnswer::Pauses(pause)) => pause,
        Some(SnapshotAnswer::Stalls) => Duration::from_secs(3600),
        Some(SnapshotAnswer::BreaksOff) | None => Duration::ZERO,
    };
    let breaks = matches!(answer, Some(SnapshotAnswer::BreaksOff));
    let rest = async move {
        tokio::time::sleep(pause).await;
        if breaks {
            return Err(std::io::Error::other("broken off"));
        }
        Ok(Bytes::from_static(end))
    };
    let first = futures::stream::iter([Ok(Bytes::from_static(begin))]);
    let body = Body::from_stream(first.chain(futures::stream::once(rest)));
    ([(header::CONTENT_TYPE, "application/gzip")], body).into_response()
}
