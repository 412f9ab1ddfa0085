//! What a stub server does: its settings, and its answers to messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tools;

/// The revisions that a stub accepts in the handshake.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// How a stub server behaves. The default is a server that works.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StubServer {
    /// Written to stderr at the start.
    pub stderr: Option<String>,
    /// Exits at once with this status.
    pub exit_at_start: Option<i32>,
    /// Never answers `initialize`.
    pub silent: bool,
    /// Waits this long before it reads its first message, in milliseconds.
    pub start_delay_ms: u64,
    /// Goes on when its stdin is closed.
    pub ignore_eof: bool,
    /// Offers no tools at all.
    pub no_tools: bool,
    /// Offers these names as further tools, which answer with their own name.
    pub extra_tools: Vec<String>,
    /// Gives lists in pages of this length.
    pub page_size: Option<usize>,
    /// Answers list requests only after this long, in milliseconds.
    pub list_delay_ms: u64,
    /// The tool whose list entry is this JSON text, added as it is; it answers with its own name.
    pub raw_tool: Option<String>,
}

/// Where messages of a stub go.
pub(crate) type Out = Arc<dyn Fn(&Value) + Send + Sync>;

/// A running stub: one session with one client.
pub(crate) struct Stub {
    pub(crate) settings: StubServer,
    pub(crate) counter: AtomicU64,
    pub(crate) state: Mutex<State>,
    next_id: AtomicU64,
    initialized: AtomicBool,
}

#[derive(Default)]
pub(crate) struct State {
    /// Requests in flight that the client has cancelled.
    pub(crate) cancelled: BTreeSet<String>,
    /// Labels of calls that noticed their cancellation.
    pub(crate) noticed: BTreeSet<String>,
    pub(crate) added: Vec<String>,
    pub(crate) log_level: Option<String>,
    pub(crate) subscriptions: BTreeSet<String>,
    /// Our own requests that wait for the client.
    waiting: BTreeMap<String, mpsc::Sender<Value>>,
}

/// A request that is being answered.
pub(crate) struct Running {
    pub(crate) stub: Arc<Stub>,
    pub(crate) id: Value,
    pub(crate) params: Value,
    pub(crate) out: Out,
}

impl Stub {
    pub(crate) fn new(settings: StubServer) -> Arc<Self> {
        Arc::new(Self {
            settings,
            counter: AtomicU64::new(0),
            state: Mutex::default(),
            next_id: AtomicU64::new(0),
            initialized: AtomicBool::new(false),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one message; answers go to `out`, from a thread of their own.
    pub(crate) fn take(self: &Arc<Self>, message: &Value, out: &Out) {
        let id = message.get("id").cloned();
        let method = message.get("method").and_then(Value::as_str);
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            out(&error(&Value::Null, -32600, "jsonrpc is not 2.0"));
            return;
        }
        match (id, method) {
            (Some(id), Some(method)) => self.on_request(id, method, message, out),
            (None, Some(method)) => self.on_notification(method, &message["params"]),
            (Some(id), None) => {
                if let Some(waiting) = self.lock().waiting.remove(&id.to_string()) {
                    // The thread that asked may have ended.
                    let _ = waiting.send(message.clone());
                }
            }
            (None, None) => out(&error(&Value::Null, -32600, "no message")),
        }
    }

    fn on_request(self: &Arc<Self>, id: Value, method: &str, message: &Value, out: &Out) {
        if !id.is_string() && !id.is_i64() && !id.is_u64() {
            out(&error(
                &Value::Null,
                -32600,
                "the id is no string and no integer",
            ));
            return;
        }
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        if !params.is_object() {
            out(&error(&id, -32602, "params is no object"));
            return;
        }
        if method != "initialize" && method != "ping" && !self.initialized.load(Ordering::Acquire) {
            out(&error(&id, -32600, "not initialized"));
            return;
        }
        let running = Running {
            stub: self.clone(),
            id,
            params,
            out: out.clone(),
        };
        let method = method.to_owned();
        std::thread::spawn(move || {
            if let Some(outcome) = running.answer(&method) {
                let answer = match outcome {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": running.id, "result": result}),
                    Err(error) => json!({"jsonrpc": "2.0", "id": running.id, "error": error}),
                };
                (running.out)(&answer);
            }
        });
    }

    fn on_notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.initialized.store(true, Ordering::Release),
            "notifications/cancelled" => {
                self.lock()
                    .cancelled
                    .insert(params["requestId"].to_string());
            }
            _ => {}
        }
    }

    /// What the handshake answers; `None` where it stays silent.
    fn initialize(&self, params: &Value) -> Option<Result<Value, Value>> {
        if self.settings.silent {
            return None;
        }
        let version = params["protocolVersion"].as_str().unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Some(Err(json!({"code": -32602, "message": "unknown revision"})));
        }
        if !params["capabilities"].is_object() || !params["clientInfo"]["name"].is_string() {
            return Some(Err(
                json!({"code": -32602, "message": "capabilities or clientInfo is missing"}),
            ));
        }
        // Streamable HTTP may lose the order of this answer and the next notification.
        self.initialized.store(true, Ordering::Release);
        Some(Ok(json!({
            "protocolVersion": version,
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "prompts": {"listChanged": true},
                "completions": {},
                "logging": {},
            },
            "serverInfo": {"name": "stub", "version": "1"},
            "instructions": "a stub",
        })))
    }
}

impl Running {
    fn answer(&self, method: &str) -> Option<Result<Value, Value>> {
        if method.ends_with("/list") {
            std::thread::sleep(std::time::Duration::from_millis(
                self.stub.settings.list_delay_ms,
            ));
        }
        Some(match method {
            "initialize" => return self.stub.initialize(&self.params),
            "ping" => Ok(json!({})),
            "tools/list" => self.page("tools", &tools::listed(&self.stub)),
            "tools/call" => tools::call(self),
            "resources/list" => self.page(
                "resources",
                &[json!({"uri": "data://info", "name": "info", "mimeType": "text/plain", "x-own": 1})],
            ),
            "resources/templates/list" => self.page(
                "resourceTemplates",
                &[json!({"uriTemplate": "data://item/{id}", "name": "item"})],
            ),
            "resources/read" => self.read(),
            "resources/subscribe" => {
                let uri = self.text("uri");
                self.stub.lock().subscriptions.insert(uri);
                Ok(json!({}))
            }
            "resources/unsubscribe" => {
                let uri = self.text("uri");
                self.stub.lock().subscriptions.remove(&uri);
                Ok(json!({}))
            }
            "prompts/list" => self.page(
                "prompts",
                &[json!({"name": "greet", "arguments": [{"name": "who", "required": true}]})],
            ),
            "prompts/get" if self.params["name"] == "greet" => Ok(json!({
                "messages": [{"role": "user", "content": {
                    "type": "text", "text": format!("hello {}", self.params["arguments"]["who"]),
                }}],
            })),
            "completion/complete" => Ok(json!({
                "completion": {"values": [self.params["ref"].to_string()]},
            })),
            "logging/setLevel" => {
                self.stub.lock().log_level = Some(self.text("level"));
                Ok(json!({}))
            }
            _ => Err(json!({"code": -32601, "message": format!("no method {method}")})),
        })
    }

    fn page(&self, key: &str, all: &[Value]) -> Result<Value, Value> {
        let size = self.stub.settings.page_size.unwrap_or(usize::MAX);
        let start: usize = match self.params.get("cursor") {
            None => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|text| text.strip_prefix("at-"))
                .and_then(|text| text.parse().ok())
                .filter(|start| *start < all.len())
                .ok_or_else(|| json!({"code": -32602, "message": "unknown cursor"}))?,
        };
        let end = start.saturating_add(size).min(all.len());
        let mut result = json!({ key: &all[start..end] });
        if end < all.len() {
            result["nextCursor"] = json!(format!("at-{end}"));
        }
        Ok(result)
    }

    fn read(&self) -> Result<Value, Value> {
        let uri = self.text("uri");
        let text = match uri.as_str() {
            "data://info" => "info of the stub".to_owned(),
            _ => match uri.strip_prefix("data://item/") {
                Some(item) => format!("item {item}"),
                None => {
                    return Err(json!({
                        "code": -32002, "message": "no such resource", "data": {"uri": uri},
                    }));
                }
            },
        };
        Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
    }

    /// A parameter of the request as text; empty where there is none.
    pub(crate) fn text(&self, key: &str) -> String {
        self.params[key].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn notify(&self, method: &str, params: &Value) {
        (self.out)(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.stub.lock().cancelled.contains(&self.id.to_string())
    }

    /// Asks the client and waits for its whole answer.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        Self::heard(&self.put(method, params))
    }

    /// Asks the client without waiting.
    pub(crate) fn put(&self, method: &str, params: &Value) -> mpsc::Receiver<Value> {
        let id = format!("ask-{}", self.stub.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = mpsc::channel();
        self.stub
            .lock()
            .waiting
            .insert(json!(id).to_string(), sender);
        (self.out)(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver
    }

    /// What came back, whole.
    pub(crate) fn heard(answer: &mpsc::Receiver<Value>) -> Value {
        answer
            .recv_timeout(std::time::Duration::from_secs(20))
            .unwrap_or_else(|_| json!("no answer within 20 s"))
    }
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
