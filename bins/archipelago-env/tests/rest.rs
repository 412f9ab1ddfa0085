//! The REST proxy, metrics and signed requests (`spec/environment.md` §10, §18, §19).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    reason = "test code"
)]

mod support;

use std::time::{Duration, SystemTime};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer as _, SigningKey};
use futures::StreamExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use support::{Env, tar_gz};
use tokio::net::TcpListener;

/// An application that says what it was asked, and streams where it is asked to.
async fn application() -> String {
    async fn answer(request: Request) -> Response {
        let (parts, body) = request.into_parts();
        match parts.uri.path() {
            "/endless" => {
                let pieces = futures::stream::unfold(0_u64, |number| async move {
                    if number > 0 {
                        tokio::time::sleep(Duration::from_secs(3600)).await;
                    }
                    Some((
                        Ok::<_, std::io::Error>(Bytes::from_static(b"data: 1\n\n")),
                        number + 1,
                    ))
                });
                return Response::builder()
                    .header("content-type", "text/event-stream")
                    .body(Body::from_stream(pieces))
                    .unwrap();
            }
            "/echo-first" => {
                // Answers with the first piece while the request is still being sent.
                let mut pieces = body.into_data_stream();
                let first = pieces.next().await.unwrap().unwrap();
                return Response::new(Body::from(first));
            }
            "/mcp" => {
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                return mcp(&body);
            }
            "/away" => {
                return Response::builder()
                    .status(302)
                    .header("location", "/elsewhere")
                    .body(Body::empty())
                    .unwrap();
            }
            "/packed" => {
                return Response::builder()
                    .header("content-encoding", "gzip")
                    .body(Body::from("not really"))
                    .unwrap();
            }
            _ => {}
        }
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let headers: Vec<(String, String)> = parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let said = json!({
            "method": parts.method.as_str(),
            "target": parts.uri.to_string(),
            "headers": headers,
            "body": String::from_utf8(body.to_vec()).unwrap(),
        });
        Response::builder()
            .status(201)
            .header("x-own", "kept")
            .body(Body::from(said.to_string()))
            .unwrap()
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// The MCP side of the application: no tools.
fn mcp(body: &[u8]) -> Response {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "application", "version": "1"}}),
        "tools/list" => json!({"tools": []}),
        _ => {
            return Response::builder().status(202).body(Body::empty()).unwrap();
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Response::builder()
        .header("content-type", "application/json")
        .body(Body::from(answer.to_string()))
        .unwrap()
}

async fn with_services() -> Env {
    let url = application().await;
    let env = Env::start().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = format!("http://{}/", nobody.local_addr().unwrap());
    drop(nobody);
    let config = json!({"mcpServers": {
        "mail box": {"transport": "rest", "url": format!("{url}/mcp"), "serve_mcp_tools": false},
        "both": {"transport": "http", "url": format!("{url}/mcp?key=1")},
        "gone": {"transport": "rest", "url": nowhere, "serve_mcp_tools": false},
        "files": {"transport": "rest", "command": "true", "serve_mcp_tools": false},
    }});
    let response = env.post("/apps", config.to_string()).await;
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    env
}

fn header<'v>(said: &'v Value, name: &str) -> Option<&'v str> {
    said["headers"]
        .as_array()?
        .iter()
        .find(|header| header[0] == name)?[1]
        .as_str()
}

#[tokio::test]
async fn requests_pass_through_as_they_are() {
    let env = with_services().await;
    let response = env
        .http
        .put(env.at("/rest/mail%20box/v1/a%2Fb?tag=1&tag=2&q=a%20b+c"))
        .header("authorization", "Bearer secret-of-the-caller")
        .header("x-trace", "7")
        .header("connection", "x-private")
        .header("x-private", "1")
        .body("some text")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["x-own"], "kept");
    let said: Value = response.json().await.unwrap();
    assert_eq!(said["method"], "PUT");
    assert_eq!(said["target"], "/v1/a%2Fb?tag=1&tag=2&q=a%20b+c");
    assert_eq!(said["body"], "some text");
    assert_eq!(header(&said, "authorization"), Some("Bearer target_agent"));
    assert_eq!(header(&said, "x-trace"), Some("7"));
    assert_eq!(header(&said, "x-private"), None);
    assert!(header(&said, "host").unwrap().starts_with("127.0.0.1:"));

    // A server that serves tools has its other side too.
    let both: Value = env.get("/rest/both/v1").await.json().await.unwrap();
    assert_eq!(both["target"], "/v1");
    let plain: Value = env.get("/rest/mail%20box/").await.json().await.unwrap();
    assert_eq!(
        (&plain["target"], &plain["body"]),
        (&json!("/"), &json!(""))
    );
    let head = env
        .http
        .head(env.at("/rest/mail%20box/x"))
        .send()
        .await
        .unwrap();
    let length: usize = head.headers()["content-length"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(length > 10);
    let away = env.get("/rest/mail%20box/away").await;
    assert_eq!(away.status(), 302);
    assert_eq!(away.headers()["location"], "/elsewhere");
    let packed = env.get("/rest/mail%20box/packed").await;
    assert_eq!(packed.headers()["content-encoding"], "gzip");
    assert_eq!(packed.bytes().await.unwrap(), "not really");
}

#[tokio::test]
async fn both_ways_stream() {
    let env = with_services().await;
    let mut endless = env.get("/rest/mail%20box/endless").await;
    assert_eq!(endless.headers()["content-type"], "text/event-stream");
    assert_eq!(endless.chunk().await.unwrap().unwrap(), "data: 1\n\n");
    drop(endless);
    let pieces = futures::stream::unfold(0, |number| async move {
        if number > 0 {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Some((
            Ok::<_, std::io::Error>(Bytes::from_static(b"first")),
            number + 1,
        ))
    });
    let answer = env
        .http
        .post(env.at("/rest/mail%20box/echo-first"))
        .body(reqwest::Body::wrap_stream(pieces))
        .send();
    let answer = tokio::time::timeout(support::PATIENCE, answer).await;
    assert_eq!(answer.unwrap().unwrap().bytes().await.unwrap(), "first");
}

#[tokio::test]
async fn what_cannot_be_reached_is_told() {
    let env = with_services().await;
    for (path, status, detail) in [
        ("/rest/none/x", 404, "Unknown service 'none'"),
        ("/rest/files/x", 404, "Unknown service 'files'"),
        ("/rest/gone/x", 502, "Service 'gone' cannot be reached"),
    ] {
        let response = env.get(path).await;
        assert_eq!(response.status(), status, "{path}");
        let body: Value = response.json().await.unwrap();
        let text = body["detail"].as_str().unwrap();
        assert!(text.starts_with(detail), "{text}");
    }
    let redirect = env.get("/rest/gone?a=1").await;
    assert_eq!(redirect.status(), 307);
    let location = redirect.headers()["location"].to_str().unwrap();
    assert!(location.ends_with("/rest/gone/?a=1"), "{location}");
    let trace = env
        .http
        .request(reqwest::Method::TRACE, env.at("/rest/gone/"))
        .send()
        .await
        .unwrap();
    assert_eq!(trace.status(), 405);
    assert_eq!(env.get("/rest/").await.status(), 404);
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let env = Env::start().await;
    env.populate("", tar_gz(&[("a.txt", b"four")])).await;
    env.snapshot().await;
    env.get("/no/such/path").await;
    env.get("/data/populate/s3/status/none").await;
    support::until("the snapshot is counted", || {
        env.log().contains("the snapshot is complete")
    })
    .await;
    let response = env.get("/metrics").await;
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = response.text().await.unwrap();
    for line in [
        r#"archipelago_http_requests_total{method="POST",route="/data/populate",status="200"} 1"#,
        r#"archipelago_http_requests_total{method="GET",route="other",status="404"} 1"#,
        r#"archipelago_http_requests_total{method="GET",route="/data/populate/s3/status/{job_id}",status="404"} 1"#,
        r#"archipelago_moved_bytes_total{direction="populate",peer="client"} 4"#,
        r#"archipelago_moved_files_total{direction="snapshot",peer="client"} 1"#,
        "archipelago_mcp_sessions 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("archipelago_memory_peak_bytes"));
}

struct Signed {
    key: SigningKey,
    env: Env,
}

impl Signed {
    async fn start() -> Self {
        let key = SigningKey::from_bytes(&[7; 32]);
        let public = STANDARD.encode(key.verifying_key().to_bytes());
        let env = Env::start_with(|command| {
            command.env("API_SIGNING_PUBLIC_KEY", public);
        })
        .await;
        Self { key, env }
    }

    /// Sends a request with a signature over what `signed` says.
    async fn send(
        &self,
        path: &str,
        signed_path: &str,
        nonce: &str,
        age: i64,
        body: &[u8],
        signed_body: &[u8],
    ) -> (u16, Value) {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let time = (i64::try_from(now).unwrap() - age).to_string();
        let hash: String = Sha256::digest(signed_body)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let message = format!("POST\n{signed_path}\n{time}\n{nonce}\n{hash}");
        let signature = self.key.sign(message.as_bytes()).to_bytes();
        let response = self
            .env
            .http
            .post(self.env.at(path))
            .header("x-studio-timestamp", time)
            .header("x-studio-nonce", nonce)
            .header("x-studio-signature", STANDARD.encode(signature))
            .header("content-type", "application/json")
            .body(body.to_vec())
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }
}

#[tokio::test]
async fn only_signed_requests_get_through() {
    let signed = Signed::start().await;
    let apps = br#"{"mcpServers": {}}"#;
    let refused = json!({"detail": "Request signature verification failed for POST /apps"});
    let good = signed
        .send("/apps?x=%20", "/apps?x=%20", "n1", 0, apps, apps)
        .await;
    assert_eq!(good.0, 200, "{}", good.1);
    // The same nonce again, another body, another path, another time, no nonce.
    for (path, nonce, age, body) in [
        ("/apps", "n1", 0, &apps[..]),
        ("/apps", "n2", 0, b"{}"),
        ("/other", "n3", 0, apps),
        ("/apps", "n4", 400, apps),
        ("/apps", "n5", -400, apps),
        ("/apps", "", 0, apps),
    ] {
        let got = signed.send("/apps", path, nonce, age, apps, body).await;
        assert_eq!(got, (403, refused.clone()), "{path} {nonce} {age}");
    }
    // A refused request has not used its nonce up.
    assert_eq!(
        signed.send("/apps", "/apps", "n2", 290, apps, apps).await.0,
        200
    );
    // What is signed of a path is what its percent signs mean.
    let (status, answer) = signed
        .send(
            "/data%2Frootfs/b%61seline",
            "/data/rootfs/baseline",
            "n6",
            0,
            b"",
            b"",
        )
        .await;
    assert_eq!((status, answer), (404, json!({"detail": "Not Found"})));
    let env = &signed.env;
    for (name, value) in [
        ("x-studio-timestamp", "soon"),
        ("x-studio-signature", "not base64!"),
        ("x-studio-signature", "QUJD"),
        ("x-studio-nonce", ""),
    ] {
        let mut request = env.http.post(env.at("/apps"));
        for known in ["x-studio-timestamp", "x-studio-signature", "x-studio-nonce"] {
            let value = if known == name { value } else { "1" };
            request = request.header(known, value);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 403, "{name}: {value}");
    }
    for (path, status) in [
        ("/health", 200),
        ("/", 200),
        ("/rest/none/", 404),
        ("/docs", 403),
        ("/metrics", 403),
        ("/mcpfoo", 403),
        ("/no%20path", 403),
    ] {
        assert_eq!(env.get(path).await.status(), status, "{path}");
    }
    let decoded: Value = env.get("/no%20path").await.json().await.unwrap();
    assert_eq!(
        decoded["detail"],
        "Request signature verification failed for GET /no path"
    );
    let session = env.mcp_session("/mcp").await;
    assert!(!session.is_empty());
}

#[tokio::test]
async fn a_malformed_key_stops_the_start() {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_archipelago-env"))
        .args(["--port", "0", "--signing-public-key", "AAAA"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("32-byte Ed25519 key"), "{said}");
}
