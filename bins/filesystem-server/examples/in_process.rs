//! Serves a directory to a client in the same process, without pipes: `cargo run --example in_process -- DIR`.

use filesystem_server::{FilesystemServer, Limits, Settings};
use rmcp::{ServiceExt, model::CallToolRequestParams};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the result of an example")]
async fn main() -> anyhow::Result<()> {
    let root = std::env::args_os()
        .nth(1)
        .unwrap_or_else(|| ".".into())
        .into();
    let server = FilesystemServer::new(Settings {
        root,
        writable: false,
        expose_physical_paths: false,
        injected_errors: None,
        limits: Limits::default(),
    })?;
    let (server_end, client_end) = tokio::io::duplex(64 * 1024);
    let (_server, client) = tokio::try_join!(
        async { anyhow::Ok(server.serve(server_end).await?) },
        async { anyhow::Ok(().serve(client_end).await?) },
    )?;
    let answer = client
        .call_tool(CallToolRequestParams::new("get_directory_tree"))
        .await?;
    if let Some(text) = answer.content.first().and_then(|block| block.as_text()) {
        println!("{}", text.text);
    }
    Ok(())
}
