//! The tools of a run: MCP servers and functions of this process, side by side.

mod arguments;
mod error;
mod function;
mod image;
mod mcp;
mod output;
mod results;
mod schema;
mod shorten;
mod toolbox;

use std::sync::Arc;

use formats::Object;
use formats::chat::ToolDefinition;
use futures::future::BoxFuture;

pub use function::FunctionTool;
pub use mcp::{McpEndpoint, McpLimits};
pub use output::{ToolContent, ToolOutput};
pub use shorten::shorten_output;

pub(crate) use arguments::Arguments;
pub(crate) use error::CallError;
pub(crate) use image::{media_type as image_media_type, tokens as image_tokens};
pub(crate) use results::{RenderedResult, render};
pub(crate) use schema::flatten;
pub(crate) use toolbox::Toolbox;

/// A tool that is a function of this process.
pub trait Tool: Send + Sync {
    /// Name, description and JSON Schema of the arguments.
    fn definition(&self) -> ToolDefinition;

    /// Whether it only reads, so that calls can run side by side.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Does the work. A dropped future means that the call timed out or the run ended.
    ///
    /// An `Err` is told to the model as the tool's failure.
    fn call(&self, arguments: Object) -> BoxFuture<'_, Result<ToolOutput, String>>;
}

/// Where the tools of a run come from.
#[derive(Clone, Default)]
pub struct ToolSources {
    pub(crate) endpoints: Vec<McpEndpoint>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

impl ToolSources {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools of one MCP endpoint, such as the gateway of an environment.
    #[must_use]
    pub fn gateway(url: impl Into<String>) -> Self {
        Self::new().with_endpoint(McpEndpoint::new(url))
    }

    /// Adds the tools of an MCP endpoint.
    #[must_use]
    pub fn with_endpoint(mut self, endpoint: McpEndpoint) -> Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Adds a function of this process.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }
}

impl std::fmt::Debug for ToolSources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSources")
            .field("endpoints", &self.endpoints)
            .field("tools", &self.tools.len())
            .finish()
    }
}
