//! Stubs of MCP servers: a process that speaks over stdio ([`StubServer`]), and servers in the test's
//! own process over streamable HTTP ([`HttpStub`]) and over the event streams of the first revision
//! ([`EventsStub`]).
//!
//! They are written on the wire format, without an SDK, and they check: a request before the
//! handshake, an unknown revision, a broken message are refused as a strict server would.
//!
//! The stdio stub needs no program of its own: the test's executable is started again and runs the
//! one "test" that [`mcp_stub_process!`](crate::mcp_stub_process) puts into it.

mod behaviour;
mod events;
mod http;
mod process;
mod tools;

pub use behaviour::StubServer;
pub use events::EventsStub;
pub use http::{HttpStub, SeenRequest};
pub use process::{STUB_TEST, StubCommand, run_if_asked};

/// Puts the stub server into a test executable, as a test that does nothing when it is run as one.
/// To be written once at the top level of an integration test that uses [`StubServer::command`].
#[macro_export]
macro_rules! mcp_stub_process {
    () => {
        #[test]
        fn mcp_stub_process() {
            $crate::mcp::run_if_asked();
        }
    };
}
