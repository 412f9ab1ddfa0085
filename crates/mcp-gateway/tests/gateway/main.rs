//! The gateway with real servers, real clients and real connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "test code"
)]

mod calls;
mod client;
mod endpoint;
mod events_servers;
mod forwarding;
mod http_servers;
mod lifecycle;
mod limits;
mod names;
mod peers;
mod processes;
mod relay;
mod sessionless;
mod sessionless_client;
mod subscriptions;
mod swap;
mod tool_calls;
mod world;

testkit::mcp_stub_process!();
