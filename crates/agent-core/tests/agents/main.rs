//! Agents against a real MCP server and a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::large_enum_variant,
    clippy::needless_pass_by_value,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "test code"
)]

mod support;

mod bounds;
mod calls;
mod configuration;
mod connection;
mod continued;
mod events;
mod gateway;
mod golden;
mod loop_agent;
mod providers;
mod replies;
mod single_shot;
mod subagents;
mod toolbelt;

testkit::mcp_stub_process!();
