//! Agents against a real MCP server and a scripted model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "test code"
)]

mod support;

mod loop_agent;
