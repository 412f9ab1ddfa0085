//! Serves an environment in a directory until Enter is pressed:
//! `cargo run -p env-server --example serve -- /tmp/world`.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use env_server::{EnvServer, Settings};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let world = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("usage: serve DIRECTORY")?;
    let mut settings = Settings {
        port: 0,
        ..Settings::default()
    };
    settings.filesystem.root = world.join("filesystem");
    settings.apps_data.root = world.join("apps_data");

    let server = EnvServer::bind(settings).await?;
    writeln!(
        std::io::stdout(),
        "http://{}/docs — Enter stops",
        server.local_addr()
    )?;
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        stopper.cancel();
    });
    server.serve(stop).await?;
    Ok(())
}
