//! An MCP server over streamable HTTP to try clients with, until Ctrl-C.
//!
//! ```sh
//! cargo run -p testkit --example mcp_http_stub
//! ```

use std::io::Write as _;

use testkit::mcp::{HttpStub, StubServer};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let stub = HttpStub::start(StubServer::default(), true).await;
    writeln!(std::io::stderr(), "listening on {}", stub.url)?;
    tokio::signal::ctrl_c().await?;
    let sessions = stub.sessions_opened();
    writeln!(std::io::stderr(), "{sessions} sessions were opened")
}
