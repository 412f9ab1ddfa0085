//! Starts an environment, fills it from an archive, and saves a snapshot of it.
//!
//! ```text
//! cargo run -p sandbox --example round_trip -- target/debug/archipelago-env world.tar.gz out.tar.gz
//! ```

use std::path::Path;

use sandbox::{ProcessSandbox, Sandbox as _, StartRequest};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [program, world, out] = args.as_slice() else {
        return Err("give the environment's program, a world as tar.gz, and an output file".into());
    };
    let sandbox = ProcessSandbox::new(program, [""; 0]).inherit(std::env::vars_os());
    let environment = sandbox
        .start(StartRequest::new("example", "environment.log"))
        .await?;
    let client = environment.client();
    client.populate("filesystem", Path::new(world)).await?;
    client.snapshot(Path::new(out)).await?;
    environment.stop().await;
    Ok(())
}
