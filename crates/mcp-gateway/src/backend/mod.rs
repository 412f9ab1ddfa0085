//! The servers behind the gateway.

pub(crate) mod connection;
mod events;
mod http;
pub(crate) mod lines;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod remote;
pub(crate) mod server;
mod sse;
pub(crate) mod stderr;
pub(crate) mod stdio;
mod subscriptions;
pub(crate) mod turns;
