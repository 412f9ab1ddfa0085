//! The MCP side: which tools there are, and how a call becomes a result.

use std::{io, path::PathBuf, sync::Arc};

use base64::Engine as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::{
    injected::InjectedErrors,
    limits::Limits,
    root::Root,
    tools::{self, Call, Effect, Output, TOOLS, ToolError, ToolSpec},
};

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory whose content the tools show; agents see it as `/`.
    pub root: PathBuf,
    /// Whether the tools that change the world are there.
    pub writable: bool,
    /// Whether messages name physical paths instead of virtual ones (§2.8).
    pub expose_physical_paths: bool,
    /// File with rules by which calls fail on purpose, once it is there (§1.6).
    pub injected_errors: Option<PathBuf>,
    /// Bounds of each call.
    pub limits: Limits,
}

/// The root directory cannot be served: a matter of configuration.
#[derive(Debug, thiserror::Error)]
#[error("cannot open root directory {}: {source}", path.display())]
pub struct RootError {
    /// The directory as it was given.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The server as an rmcp handler; cheap to clone, so that it can be mounted on any transport.
#[derive(Debug, Clone)]
pub struct FilesystemServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: Root,
    writable: bool,
    limits: Limits,
    injected: Option<InjectedErrors>,
    /// One permit per call at work.
    permits: Arc<Semaphore>,
    /// As `tools/list` shows them.
    listed: Vec<Tool>,
}

impl FilesystemServer {
    /// A server for one root, which must be a directory that can be opened.
    ///
    /// # Errors
    /// The root is missing, is no directory, or must not be read.
    pub fn new(settings: Settings) -> Result<Self, RootError> {
        let Settings {
            root: path,
            writable,
            expose_physical_paths,
            injected_errors,
            limits,
        } = settings;
        let root = match Root::new(&path, expose_physical_paths) {
            Ok(root) => root,
            Err(source) => return Err(RootError { path, source }),
        };
        let permits = Arc::new(Semaphore::new(limits.max_concurrent_calls.max(1)));
        let listed = TOOLS
            .iter()
            .filter(|tool| writable || tool.effect == Effect::Reads)
            .map(ToolSpec::described)
            .collect();
        Ok(Self {
            shared: Arc::new(Shared {
                root,
                writable,
                limits,
                injected: injected_errors.map(InjectedErrors::new),
                permits,
                listed,
            }),
        })
    }

    /// The root directory, canonical.
    pub fn root(&self) -> &std::path::Path {
        self.shared.root.path()
    }

    /// A tool by name. An unknown one is a protocol error, by MCP's rule.
    fn tool(&self, name: &str) -> Result<&'static ToolSpec, ErrorData> {
        let unknown = |hint: &str| {
            ErrorData::invalid_params(format!("Not found: Unknown tool: '{name}'{hint}"), None)
        };
        match TOOLS.iter().find(|tool| tool.name == name) {
            None => Err(unknown("")),
            Some(tool) if tool.effect != Effect::Reads && !self.shared.writable => Err(unknown(
                " (this server only reads; it has tools that write when it is started with --writable)",
            )),
            Some(tool) => Ok(tool),
        }
    }
}

impl ServerHandler for FilesystemServer {
    fn get_info(&self) -> ServerConfig {
        let access = if self.shared.writable {
            "read and change"
        } else {
            "read, but not change,"
        };
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("filesystem-server", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!(
                "The files of this world. You can {access} them. Paths are absolute; / is the root of the world."
            ))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.shared.listed.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared
            .listed
            .iter()
            .find(|tool| tool.name == name)
            .cloned()
    }

    /// Runs the tool on a blocking thread. Calls run side by side up to the limit; a cancelled call stops at its next
    /// directory entry.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.tool(&request.name)?;
        let shared = Arc::clone(&self.shared);
        let permit = Arc::clone(&shared.permits)
            .acquire_owned()
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let result = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let call = Call {
                root: &shared.root,
                limits: &shared.limits,
                cancelled: context.ct,
            };
            let arguments = request.arguments.unwrap_or_default();
            let injected = shared.injected.as_ref();
            if let Some(message) = injected.and_then(|one| one.failure(tool.name, &arguments)) {
                let text = format!("Internal error: {message}");
                return CallToolResult::error(vec![ContentBlock::text(text)]);
            }
            let outcome = tools::check(tool.parameters, arguments)
                .and_then(|arguments| (tool.run)(&call, arguments));
            result(tool, outcome, shared.limits.max_result_bytes)
        })
        .await
        .map_err(|error| {
            ErrorData::internal_error(format!("tool '{}' broke off: {error}", tool.name), None)
        })?;
        Ok(result.into())
    }
}

/// A result in the reference's form (§1.4, §1.5).
fn result(tool: &ToolSpec, outcome: Result<Output, ToolError>, max_bytes: u64) -> CallToolResult {
    let result = match outcome {
        Ok(Output::Text(text)) => {
            let structured = json!({"result": text});
            let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
            result.structured_content = Some(structured);
            result
        }
        Ok(Output::Image { data, media_type }) => {
            let data = base64::engine::general_purpose::STANDARD.encode(data);
            CallToolResult::success(vec![ContentBlock::image(data, media_type)])
        }
        Err(error) => return failure(tool, &error),
    };
    let size = json_size(&result);
    if size <= max_bytes {
        return result;
    }
    let reason = format!(
        "The result would have {size} bytes as JSON, the limit max_result_bytes is {max_bytes}"
    );
    failure(tool, &ToolError::failed(reason))
}

fn failure(tool: &ToolSpec, error: &ToolError) -> CallToolResult {
    let text = match error {
        ToolError::Arguments(_) => format!("Internal error: {error}"),
        ToolError::Failed(reason) => format!(
            "Internal error: Error calling tool '{}': {reason}",
            tool.name
        ),
    };
    tracing::debug!(tool = tool.name, %error, "tool failed");
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Bytes of a result on the wire, counted without keeping them.
fn json_size(result: &CallToolResult) -> u64 {
    struct Counter(u64);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self
                .0
                .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, result) {
        Ok(()) => counter.0,
        Err(_) => u64::MAX,
    }
}
