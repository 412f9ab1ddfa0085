//! The servers behind the gateway.

pub(crate) mod connection;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod server;
pub(crate) mod sse;
pub(crate) mod stderr;
pub(crate) mod stdio;
