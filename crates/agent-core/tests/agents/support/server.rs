//! A real MCP server over streamable HTTP with tools of every kind.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, EmbeddedResource,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, Resource,
    ResourceContents, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What the server saw and remembers.
#[derive(Default)]
pub struct State {
    pub initialized: AtomicUsize,
    pub listed: AtomicUsize,
    /// Tool and arguments of every call, in order of arrival.
    pub calls: Mutex<Vec<(String, Value)>>,
    /// Calls of `slow` that were cancelled.
    pub cancelled: AtomicUsize,
    pub counter: AtomicU64,
    /// The `authorization` and `x-agent-id` headers of the first request.
    pub headers: Mutex<Option<(Option<String>, Option<String>)>>,
    /// Calls that are running, and the most that ever were.
    pub running: AtomicUsize,
    pub most_running: AtomicUsize,
    /// Results to give, in order, before the tools' own.
    pub replay: Mutex<VecDeque<CallToolResult>>,
}

#[derive(Clone)]
struct Handler {
    state: Arc<State>,
    tools: Arc<Vec<Tool>>,
    page: usize,
}

pub struct Server {
    pub url: String,
    pub state: Arc<State>,
    address: SocketAddr,
    tools: Arc<Vec<Tool>>,
    page: usize,
    sessions: Arc<LocalSessionManager>,
    stop: CancellationToken,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn schema(properties: Value) -> Arc<rmcp::model::JsonObject> {
    let Value::Object(schema) = json!({"type": "object", "properties": properties}) else {
        unreachable!()
    };
    Arc::new(schema)
}

fn standard_tools() -> Vec<Tool> {
    let mut read_only = ToolAnnotations::default();
    read_only.read_only_hint = Some(true);
    let mut tools = vec![
        Tool::new(
            "echo",
            "Says what it is told.",
            schema(json!({"text": {"type": "string"}})),
        ),
        Tool::new("image", "A picture.", schema(json!({}))),
        Tool::new(
            "slow",
            "Takes a while.",
            schema(json!({"ms": {"type": "integer"}})),
        ),
        Tool::new("error", "Fails.", schema(json!({}))),
        Tool::new("empty", "Returns nothing.", schema(json!({}))),
        Tool::new("blank", "Returns an empty text.", schema(json!({}))),
        Tool::new(
            "everything",
            "Returns every kind of part.",
            schema(json!({})),
        ),
        Tool::new("counter", "Counts its calls.", schema(json!({}))),
        Tool::new(
            "long",
            "Returns a long text.",
            schema(json!({"length": {"type": "integer"}})),
        ),
        Tool::new("protocol_error", "Breaks the protocol.", schema(json!({}))),
    ];
    tools.push(
        Tool::new(
            "look",
            "Reads and takes a while.",
            schema(json!({"ms": {"type": "integer"}})),
        )
        .annotate(read_only),
    );
    tools
}

impl Server {
    /// A server with the standard tools on one page.
    pub async fn start() -> Self {
        Self::with_tools(standard_tools(), usize::MAX).await
    }

    /// A server with `count` tools `tool_000`, … on pages of `page`.
    pub async fn with_many(count: usize, page: usize) -> Self {
        let tools = (0..count)
            .map(|number| {
                Tool::new(
                    format!("tool_{number:03}"),
                    "One of many.",
                    schema(json!({})),
                )
            })
            .collect();
        Self::with_tools(tools, page).await
    }

    pub async fn with_tools(tools: Vec<Tool>, page: usize) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut server = Self {
            url: format!("http://{address}/mcp/"),
            state: Arc::default(),
            address,
            tools: Arc::new(tools),
            page,
            sessions: Arc::default(),
            stop: CancellationToken::new(),
        };
        server.serve(listener);
        server
    }

    fn serve(&mut self, listener: tokio::net::TcpListener) {
        self.stop = CancellationToken::new();
        self.sessions = Arc::default();
        let handler = Handler {
            state: Arc::clone(&self.state),
            tools: Arc::clone(&self.tools),
            page: self.page,
        };
        let mut config = StreamableHttpServerConfig::default();
        config.cancellation_token = self.stop.child_token();
        let service = StreamableHttpService::new(
            move || Ok(handler.clone()),
            Arc::clone(&self.sessions),
            config,
        );
        let state = Arc::clone(&self.state);
        let note_headers = axum::middleware::from_fn(
            move |request: axum::extract::Request, next: axum::middleware::Next| {
                let header = |name: &str| {
                    let value = request.headers().get(name)?;
                    Some(value.to_str().unwrap().to_owned())
                };
                let seen = (header("authorization"), header("x-agent-id"));
                state.headers.lock().unwrap().get_or_insert(seen);
                next.run(request)
            },
        );
        let app = axum::Router::new()
            .nest_service("/mcp", service)
            .layer(note_headers);
        let stop = self.stop.clone();
        // Dropping the server's future closes its connections, as the end of a process does.
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = axum::serve(listener, app) => {}
            }
        });
    }

    /// Forgets all sessions, as a restarted gateway does.
    pub async fn forget_sessions(&self) {
        self.sessions.sessions.write().await.clear();
    }

    /// Sessions that are open.
    pub async fn open_sessions(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }

    /// Closes the port and all connections.
    pub async fn stop(&self) {
        self.stop.cancel();
        super::eventually("the port is closed", || {
            std::net::TcpStream::connect(self.address).is_err()
        })
        .await;
    }

    pub fn calls(&self) -> Vec<(String, Value)> {
        self.state.calls.lock().unwrap().clone()
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.state.initialized.fetch_add(1, Ordering::SeqCst);
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.state.listed.fetch_add(1, Ordering::SeqCst);
        let start: usize = request
            .and_then(|page| page.cursor)
            .map_or(0, |cursor| cursor.parse().unwrap());
        let end = start.saturating_add(self.page).min(self.tools.len());
        let mut result = ListToolsResult::with_all_items(self.tools[start..end].to_vec());
        result.next_cursor = (end < self.tools.len()).then(|| end.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let name = request.name.to_string();
        self.state
            .calls
            .lock()
            .unwrap()
            .push((name.clone(), arguments.clone()));
        let running = self.state.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.state.most_running.fetch_max(running, Ordering::SeqCst);
        let result = self.answer(&name, &arguments, &context).await;
        self.state.running.fetch_sub(1, Ordering::SeqCst);
        result.map(CallToolResponse::Complete)
    }
}

impl Handler {
    async fn answer(
        &self,
        name: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        if let Some(recorded) = self.state.replay.lock().unwrap().pop_front() {
            return Ok(recorded);
        }
        Ok(match name {
            "echo" => said(arguments["text"].as_str().unwrap_or("(no text)")),
            "image" => CallToolResult::success(vec![ContentBlock::image(
                STANDARD.encode(jpeg()),
                "image/png",
            )]),
            "slow" | "look" => {
                let wait = Duration::from_millis(arguments["ms"].as_u64().unwrap_or(0));
                tokio::select! {
                    () = tokio::time::sleep(wait) => said("awake"),
                    () = context.ct.cancelled() => {
                        self.state.cancelled.fetch_add(1, Ordering::SeqCst);
                        said("cancelled")
                    }
                }
            }
            "error" => {
                let mut result = CallToolResult::error(Vec::new());
                result.structured_content = Some(json!({"code": 7, "why": "no such row"}));
                result
            }
            "empty" => CallToolResult::success(Vec::new()),
            "blank" => said(""),
            "everything" => everything(),
            "counter" => {
                let count = self.state.counter.fetch_add(1, Ordering::SeqCst) + 1;
                said(&count.to_string())
            }
            "long" => {
                let length = arguments["length"].as_u64().unwrap();
                said(&"abcdefghij".repeat(usize::try_from(length / 10).unwrap()))
            }
            "protocol_error" => {
                return Err(ErrorData::invalid_params("the row must be positive", None));
            }
            _ if self.tools.iter().any(|tool| tool.name == name) => said(name),
            _ => {
                return Err(ErrorData::invalid_params(
                    format!("unknown tool `{name}`"),
                    None,
                ));
            }
        })
    }
}

fn said(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// The head of a JPEG file of 220 by 220 pixels.
pub fn jpeg() -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0, 0, 0xFF, 0xC0, 0, 17, 8];
    bytes.extend([0, 220, 0, 220, 3, 0, 0, 0]);
    bytes
}

fn everything() -> CallToolResult {
    CallToolResult::success(vec![
        ContentBlock::text("hello"),
        ContentBlock::image(STANDARD.encode(jpeg()), "image/png"),
        ContentBlock::Resource(EmbeddedResource::new(ResourceContents::text(
            "inner text",
            "file:///notes.txt",
        ))),
        ContentBlock::Resource(EmbeddedResource::new(
            ResourceContents::blob(STANDARD.encode(b"%PDF-"), "file:///a.pdf")
                .with_mime_type("application/pdf"),
        )),
        ContentBlock::ResourceLink(
            Resource::new("file:///b.csv", "b.csv").with_mime_type("text/csv"),
        ),
        ContentBlock::audio(STANDARD.encode(b"abcd"), "audio/wav"),
    ])
}
