//! Serves the servers of an `mcp_config.json` at `http://127.0.0.1:PORT/mcp/` until Ctrl-C.
//!
//! ```sh
//! cargo run -p mcp-gateway --example gateway -- mcp_config.json 8000
//! ```

use std::error::Error;
use std::future::IntoFuture as _;

use axum::serve::ListenerExt as _;
use mcp_gateway::{Gateway, GatewayOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let mut args = std::env::args().skip(1);
    let (Some(path), port) = (args.next(), args.next()) else {
        return Err("usage: serve MCP_CONFIG [PORT]".into());
    };
    let port: u16 = port.as_deref().unwrap_or("8000").parse()?;
    let config = serde_json::from_str(&std::fs::read_to_string(&path)?)?;

    let gateway = Gateway::new(GatewayOptions::default());
    let applied = gateway.apply(config).await?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    tracing::info!(
        servers = ?applied.servers,
        ms = applied.duration_ms,
        "listening on http://{}/mcp/",
        listener.local_addr()?
    );
    // Without TCP_NODELAY small answers wait for acknowledgements of the ones before.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    tokio::select! {
        served = axum::serve(listener, gateway.router()).into_future() => served?,
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    gateway.shutdown().await;
    Ok(())
}
