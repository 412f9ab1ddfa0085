//! An environment in the test's own process, whose limits can be set.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use env_server::{EnvServer, Settings};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, StatusCode};
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use testkit::mcp::StubServer;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Served {
    pub(crate) http: reqwest::Client,
    address: String,
    home: tempfile::TempDir,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut settings = Settings {
            port: 0,
            ..Settings::default()
        };
        settings.filesystem.root = home.path().join("filesystem");
        settings.apps_data.root = home.path().join(".apps_data");
        change(&mut settings);
        let server = EnvServer::bind(settings).await.unwrap();
        let address = server.local_addr().to_string();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { server.serve(stopped).await.unwrap() });
        Self {
            http: reqwest::Client::new(),
            address,
            home,
            stop,
            serving: Some(serving),
        }
    }

    /// Ends it and waits for that.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        let serving = self.serving.take().unwrap();
        tokio::time::timeout(PATIENCE, serving)
            .await
            .unwrap()
            .unwrap();
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.home.path().join("filesystem")
    }

    pub(crate) fn apps_data(&self) -> PathBuf {
        self.home.path().join(".apps_data")
    }

    /// Whether there is nothing but the world.
    pub(crate) fn is_tidy(&self) -> bool {
        std::fs::read_dir(self.home.path()).unwrap().count() == 2
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(self.http.get(self.at(path)).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: String) -> (u16, Value) {
        let asked = self.http.post(self.at(path));
        let asked = asked.header("content-type", "application/json").body(body);
        read(asked.send().await.unwrap()).await
    }

    pub(crate) async fn populate_form(&self, form: Form) -> (u16, Value) {
        let asked = self.http.post(self.at("/data/populate")).multipart(form);
        read(asked.send().await.unwrap()).await
    }

    pub(crate) async fn populate(&self, archive: Vec<u8>) -> (u16, Value) {
        let form = Form::new().part("archive", file(archive));
        self.populate_form(form).await
    }

    /// A populate request whose body never ends.
    pub(crate) async fn begin_upload(&self, archive: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "POST /data/populate HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=B\r\nContent-Length: 99999999\r\n\r\n\
             --B\r\nContent-Disposition: form-data; name=\"archive\"; filename=\"w\"\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(archive).await.unwrap();
        stream
    }

    /// Configures the server `s` with a coordinator.
    pub(crate) async fn apply(&self, stub: &StubServer, coordinator: Value) -> (u16, Value) {
        let command = stub.command();
        let server = json!({
            "transport": "stdio", "command": command.command, "args": command.args, "env": command.env,
        });
        let body = json!({"mcpServers": {"s": server}, "coordinator_config": coordinator});
        self.post("/apps", body.to_string()).await
    }

    /// Calls a tool as an agent does.
    pub(crate) async fn call(&self, tool: &str) {
        let asked = |body: Value| {
            let asked = self.http.post(self.at("/mcp/"));
            asked
                .header("accept", "application/json, text/event-stream")
                .json(&body)
        };
        let handshake = asked(
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        );
        let opened = handshake.send().await.unwrap();
        let session = opened.headers()["mcp-session-id"].clone();
        let call = asked(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": tool, "arguments": {"text": "x"}}}));
        let called = call.header("mcp-session-id", session).send().await.unwrap();
        assert_eq!(called.status(), 200);
        called.text().await.unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Status and JSON of an answer; `null` where it is none.
async fn read(answer: reqwest::Response) -> (u16, Value) {
    let status = answer.status().as_u16();
    let body = answer.bytes().await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

pub(crate) fn file(archive: Vec<u8>) -> Part {
    Part::bytes(archive).file_name("world.tar.gz")
}

/// A `tar.gz` of files.
pub(crate) fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Bytes that do not compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut random = 1_u32;
    std::iter::repeat_with(|| {
        // Numerical Recipes' generator; its upper bits are good enough.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.to_be_bytes()[0]
    })
    .take(length)
    .collect()
}

/// Polls until `done` answers true.
pub(crate) async fn until(what: &str, done: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited too long: {what}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An S3 service that takes uploads in parts, and keeps nothing.
pub(crate) struct Multipart {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Multipart {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&requests);
        let answer = move |request: Request| {
            told.lock()
                .unwrap()
                .push(format!("{} {}", request.method(), request.uri()));
            async move { answer(&request) }
        };
        let app = axum::Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, requests }
    }

    pub(crate) fn variables(&self) -> [(String, String); 3] {
        [
            ("AWS_ENDPOINT_URL", self.url.as_str()),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn seen(&self, method: &str) -> usize {
        let all = self.all();
        all.iter().filter(|line| line.starts_with(method)).count()
    }
}

fn answer(request: &Request) -> Response {
    match *request.method() {
        Method::POST => {
            let text = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
            ([("content-type", "application/xml")], text).into_response()
        }
        Method::PUT => ([("etag", "\"e\"")], "").into_response(),
        Method::DELETE => StatusCode::NO_CONTENT.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
