//! A client without a session, on the wire format.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Response;
use serde_json::{Value, json};

use crate::client::{Answer, BOTH, message};

pub(crate) const VERSION: &str = "2026-07-28";

pub(crate) struct SessionlessClient {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
    capabilities: Value,
    next_id: AtomicU64,
}

/// The parameters that every request has.
pub(crate) fn envelope(capabilities: &Value) -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }})
}

impl SessionlessClient {
    pub(crate) fn new(url: &str, capabilities: Value) -> Self {
        Self {
            http: reqwest::Client::builder()
                .tcp_nodelay(true)
                .build()
                .unwrap(),
            url: url.to_owned(),
            capabilities,
            next_id: AtomicU64::new(1),
        }
    }

    /// Sends exactly these parameters; `headers` replace those that the method asks for.
    pub(crate) async fn send_raw(
        &self,
        method: &str,
        params: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let response = self.post(method, params, headers, &json!(id)).await;
        let answer = Answer::of(response).await;
        assert_eq!(answer.last()["id"], id, "{answer:?}");
        answer
    }

    async fn post(
        &self,
        method: &str,
        params: &Value,
        headers: &[(&str, &str)],
        id: &Value,
    ) -> Response {
        let mut request = self.http.post(&self.url).header("accept", BOTH);
        let usual = [("mcp-protocol-version", VERSION), ("mcp-method", method)];
        for (name, value) in usual {
            if !headers.iter().any(|(other, _)| *other == name) {
                request = request.header(name, value);
            }
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let message = message(id.clone(), method, params);
        request.json(&message).send().await.unwrap()
    }

    fn complete(&self, params: Value) -> Value {
        let mut full = envelope(&self.capabilities);
        let Value::Object(params) = params else {
            panic!("parameters are an object");
        };
        for (key, value) in params {
            match value {
                Value::Object(meta) if key == "_meta" => {
                    full["_meta"].as_object_mut().unwrap().extend(meta);
                }
                value => full[key] = value,
            }
        }
        full
    }

    /// Sends a request with all that belongs to it.
    pub(crate) async fn send(&self, method: &str, params: Value) -> Answer {
        let params = self.complete(params);
        let name = params["name"].as_str().or(params["uri"].as_str());
        let named = name.map(|name| ("mcp-name", name));
        let headers: Vec<_> = named.into_iter().collect();
        self.send_raw(method, &params, &headers).await
    }

    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.send(method, params).await;
        let message = answer.last();
        assert_eq!(message.get("error"), None, "{message}");
        message["result"].clone()
    }

    /// Opens a stream by a request with this id.
    pub(crate) async fn open(&self, method: &str, params: Value, id: &str) -> Response {
        let params = self.complete(params);
        let response = self.post(method, &params, &[], &json!(id)).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response
    }

    pub(crate) async fn notify(&self, method: &str) -> (u16, String) {
        let request = self
            .http
            .post(&self.url)
            .header("accept", BOTH)
            .header("mcp-protocol-version", VERSION)
            .json(&json!({"jsonrpc": "2.0", "method": method}));
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}
