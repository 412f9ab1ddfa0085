//! An S3 server over a folder, and what goes wrong with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::support::Env;

/// A key whose requests need [`TOKEN`] as well.
pub(crate) const TEMPORARY: &str = "temporary";
pub(crate) const TOKEN: &str = "token-of-the-session/+=";

/// An S3 server over a folder, in which a folder is a bucket.
pub(crate) struct S3 {
    pub(crate) url: String,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) faults: Arc<Faults>,
}

#[derive(Default)]
pub(crate) struct Faults {
    /// So many of the next requests are answered 503.
    pub(crate) fail: AtomicI64,
    /// How long each request waits.
    pub(crate) delay_ms: AtomicU64,
    /// So many of the next answers to GET break off after [`CUT`] bytes.
    pub(crate) cut: AtomicI64,
    /// So many of the next PUT requests are refused for good.
    pub(crate) refuse_puts: AtomicI64,
    /// How many PUT requests get through before that begins.
    pub(crate) puts_before: AtomicI64,
    /// What is answered to the next listings instead of the truth.
    pub(crate) listing: Mutex<Option<String>>,
    /// Requests with permanent keys that carried a token all the same.
    pub(crate) mixed: AtomicU64,
    pub(crate) requests: AtomicU64,
    /// Method, path and query of every request.
    pub(crate) seen: Mutex<Vec<String>>,
}

/// Where answers break off.
pub(crate) const CUT: usize = 1 << 20;

impl Faults {
    /// The requests that hold all of these words.
    pub(crate) fn seen(&self, words: &[&str]) -> usize {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|line| words.iter().all(|word| line.contains(word)))
            .count()
    }
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("snapshots")).unwrap();
        std::fs::create_dir(folder.path().join("worlds")).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(folder.path()).unwrap());
        let mut auth = SimpleAuth::from_single("key", "secret");
        auth.register(TEMPORARY.to_owned(), "secret2".into());
        builder.set_auth(auth);
        let service = builder.build();
        let faults = Arc::new(Faults::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let told = Arc::clone(&faults);
        let answer = move |request: Request| answer(service.clone(), Arc::clone(&told), request);
        let app = axum::Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            url,
            folder,
            faults,
        }
    }

    pub(crate) async fn env(&self) -> Env {
        self.env_with(&[]).await
    }

    pub(crate) async fn env_with(&self, variables: &[(&str, &str)]) -> Env {
        Env::start_with(|command| {
            command
                .env("AWS_ENDPOINT_URL", &self.url)
                .env("AWS_ACCESS_KEY_ID", "key")
                .env("AWS_SECRET_ACCESS_KEY", "secret")
                .env("S3_SNAPSHOTS_PREFIX", "team/")
                .envs(variables.iter().copied());
        })
        .await
    }

    /// An environment whose machine is this folder; its baseline is marked.
    pub(crate) async fn env_on(&self, machine: &Path) -> Env {
        let (root, marker) = (machine.to_str().unwrap(), machine.join("run/marker"));
        let variables = [
            ("ROOTFS_ROOT", root),
            ("ROOTFS_MARKER", marker.to_str().unwrap()),
        ];
        let env = self.env_with(&variables).await;
        assert_eq!(env.post("/data/rootfs/baseline", "").await.status(), 200);
        env
    }

    pub(crate) fn object(&self, bucket: &str, key: &str) -> PathBuf {
        self.folder.path().join(bucket).join(key)
    }

    pub(crate) fn put(&self, key: &str, content: &[u8]) {
        let path = self.object("worlds", key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

async fn answer(service: S3Service, faults: Arc<Faults>, request: Request) -> Response {
    faults.requests.fetch_add(1, Ordering::SeqCst);
    let method = request.method().clone();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let line = format!("{method} {}?{query}", request.uri().path());
    faults.seen.lock().unwrap().push(line);
    let delay = faults.delay_ms.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(delay)).await;
    if faults.fail.fetch_sub(1, Ordering::SeqCst) > 0 {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let has_token = request.headers().contains_key("x-amz-security-token");
    if has_token && !names_temporary_key(&request) {
        faults.mixed.fetch_add(1, Ordering::SeqCst);
    }
    if !has_its_token(&request) {
        return StatusCode::FORBIDDEN.into_response();
    }
    if method == Method::PUT
        && faults.puts_before.fetch_sub(1, Ordering::SeqCst) <= 0
        && faults.refuse_puts.fetch_sub(1, Ordering::SeqCst) > 0
    {
        return StatusCode::FORBIDDEN.into_response();
    }
    if query.contains("list-type=2")
        && let Some(listing) = faults.listing.lock().unwrap().clone()
    {
        return ([("content-type", "application/xml")], listing).into_response();
    }
    let Ok(response) = service.oneshot(request).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let response = response.map(Body::new);
    let is_content = method == Method::GET && !query.contains("list-type");
    if is_content && faults.cut.fetch_sub(1, Ordering::SeqCst) > 0 {
        return response.map(cut);
    }
    response
}

fn names_temporary_key(request: &Request) -> bool {
    let value = request.headers().get("authorization");
    value.is_some_and(|value| value.to_str().unwrap().contains(TEMPORARY))
        || request
            .uri()
            .query()
            .unwrap_or_default()
            .contains(TEMPORARY)
}

/// Temporary keys come with the token of their session, in a header or in a signed address.
fn has_its_token(request: &Request) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let in_query = query.contains("X-Amz-Security-Token=token-of-the-session%2F%2B%3D");
    let in_header = request.headers().get("x-amz-security-token");
    !names_temporary_key(request) || in_query || in_header.is_some_and(|given| given == TOKEN)
}

/// The beginning of a body, and then a connection that breaks.
fn cut(body: Body) -> Body {
    let mut left = CUT;
    Body::from_stream(body.into_data_stream().map(move |piece| {
        let mut piece = piece.map_err(std::io::Error::other)?;
        if left == 0 {
            return Err(std::io::Error::other("cut"));
        }
        piece.truncate(left);
        left -= piece.len();
        Ok(piece)
    }))
}

pub(crate) async fn call(env: &Env, path: &str, body: Value) -> (u16, Value) {
    let response = env.post(path, body.to_string()).await;
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// Polls a job until it has ended.
pub(crate) async fn ended(env: &Env, kind: &str, id: &str) -> Value {
    loop {
        let response = env.get(&format!("/data/{kind}/s3/status/{id}")).await;
        assert_eq!(response.status(), 200);
        let status: Value = response.json().await.unwrap();
        if status["status"] != "running" {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
