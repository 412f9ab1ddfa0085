//! Many MCP servers behind one MCP endpoint: start, supervise, route, hot-swap.
//!
//! A [`Gateway`] takes a configuration (`mcp_config.json`, the body of `POST /apps`), starts its
//! servers once, and serves what they offer together over streamable HTTP, until another
//! configuration replaces it without an interruption.
//!
//! Messages pass through as text: the gateway reads what it routes by and changes names where
//! several servers share the endpoint, nothing else. The protocol is written out here and not taken
//! from an SDK, because an SDK's types drop the fields that they do not know and give ids and
//! progress tokens of their own.
//!
//! Module by module: `jsonrpc` messages; `backend` the servers (processes, remote ones, restart);
//! `catalog` names and routes; `generation` one configuration; `view` what one session sees of it; `gateway` the swap;
//! `tool_calls` what the program around sees and calls itself; `endpoint` the
//! clients' side.

mod backend;
mod catalog;
mod endpoint;
mod error;
mod gateway;
mod generation;
mod jsonrpc;
mod options;
mod schema_cleanup;
mod state;
mod tool_calls;
mod view;

pub use endpoint::guard::check_host;
pub use error::{ApplyError, FailedServer};
pub use gateway::Gateway;
pub use options::GatewayOptions;
pub use state::{AppsState, ServerPhase, ServerState, SessionServerState};
pub use tool_calls::{TARGET_AGENT, ToolCall, ToolCallError, ToolCallObserver};
