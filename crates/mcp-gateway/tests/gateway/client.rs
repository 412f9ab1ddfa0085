//! A client on the wire format, so that tests see exactly what the gateway sends.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

pub(crate) const BOTH: &str = "application/json, text/event-stream";

/// One session.
pub(crate) struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) url: String,
    pub(crate) session: String,
    next_id: AtomicU64,
}

/// An answer over HTTP with its messages.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) session: Option<String>,
    pub(crate) text: String,
    pub(crate) messages: Vec<Value>,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let status = response.status();
        let kind = header("content-type").unwrap_or_default();
        let session = header("mcp-session-id");
        let text = response.text().await.unwrap();
        let messages = if kind == "text/event-stream" {
            events(&text)
                .into_iter()
                .map(|(_, data)| serde_json::from_str(&data).unwrap())
                .collect()
        } else {
            serde_json::from_str(&text).into_iter().collect()
        };
        Self {
            status,
            kind,
            session,
            text,
            messages,
        }
    }

    pub(crate) fn last(&self) -> &Value {
        self.messages
            .last()
            .unwrap_or_else(|| panic!("no message in {self:?}"))
    }
}

/// Ids and data of the events with data.
pub(crate) fn events(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for block in text.split("\r\n\r\n") {
        let field = |name: &str| {
            let lines: Vec<&str> = block
                .lines()
                .filter_map(|line| line.strip_prefix(name))
                .collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        };
        if let Some(data) = field("data: ") {
            found.push((field("id: ").unwrap_or_default(), data));
        }
    }
    found
}

pub(crate) fn initialize(version: &str, capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    message("init", "initialize", &params)
}

/// A request.
pub(crate) fn message(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A request to call a tool.
pub(crate) fn tool_call(id: impl Into<Value>, name: &str, arguments: &Value) -> Value {
    message(
        id,
        "tools/call",
        &json!({"name": name, "arguments": arguments}),
    )
}

/// A request that the gateway answers itself.
pub(crate) fn ping(id: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "ping"})
}

impl Client {
    pub(crate) async fn open(url: &str) -> Self {
        Self::open_as(url, "2025-06-18", &json!({})).await
    }

    pub(crate) async fn open_as(url: &str, version: &str, capabilities: &Value) -> Self {
        let mut client = Self {
            http: reqwest::Client::builder()
                .tcp_nodelay(true)
                .build()
                .unwrap(),
            url: url.to_owned(),
            session: String::new(),
            next_id: AtomicU64::new(1),
        };
        let answer = client.send(&initialize(version, capabilities)).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        assert_eq!(answer.last()["result"]["protocolVersion"], version);
        client.session = answer.session.clone().unwrap();
        let answer = client
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::ACCEPTED, "")
        );
        client
    }

    pub(crate) fn post(&self) -> RequestBuilder {
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", BOTH);
        if self.session.is_empty() {
            request
        } else {
            request.header("mcp-session-id", &self.session)
        }
    }

    pub(crate) async fn send(&self, message: &Value) -> Answer {
        let response = self.post().body(message.to_string()).send().await.unwrap();
        Answer::of(response).await
    }

    /// Sends a request and returns all that came back.
    pub(crate) async fn exchange(&self, method: &str, params: Value) -> Answer {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let answer = self.send(&message(id, method, &params)).await;
        assert_eq!(answer.last()["id"], id, "{answer:?}");
        answer
    }

    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, Value> {
        let answer = self.exchange(method, params).await;
        let message = answer.last();
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Result<Value, Value> {
        let params = json!({"name": name, "arguments": arguments});
        self.request("tools/call", params).await
    }

    /// The text of a tool's result that is no error.
    pub(crate) async fn text(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await.unwrap();
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the session.
    pub(crate) async fn end_session(&self) {
        let request = self.http.delete(&self.url);
        let request = request.header("mcp-session-id", &self.session);
        assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    }

    pub(crate) async fn tool_names(&self) -> Vec<String> {
        let result = self.request("tools/list", json!({})).await.unwrap();
        assert_eq!(result.get("nextCursor"), None);
        result["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}
