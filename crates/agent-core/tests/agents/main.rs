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

mod calls;
mod configuration;
mod connection;
mod events;
mod golden;
mod loop_agent;
mod replies;
mod single_shot;
mod toolbelt;
