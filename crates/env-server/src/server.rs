//! Listening, serving, and stopping in bounded time.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::serve::ListenerExt as _;
use mcp_gateway::Gateway;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::environment::Environment;
use crate::routes;
use crate::settings::{Settings, Subsystem};

/// How long the servers of the gateway may take to end when the requests are done or cut off.
const STOP_SERVERS: Duration = Duration::from_millis(1500);

/// The server of one environment.
#[derive(Debug)]
pub struct EnvServer;

/// The server cannot start. All of these are matters of configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is not free, or not of this machine.
    #[error("cannot listen on {host}:{port}: {source}")]
    Address {
        /// The host of the settings.
        host: String,
        /// The port of the settings.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// A directory of the world cannot be made or used.
    #[error("cannot use `{}` for the subsystem `{subsystem}`: {source}", path.display())]
    Root {
        /// The subsystem.
        subsystem: String,
        /// Its directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Serving failed.
#[derive(Debug, thiserror::Error)]
#[error("the server failed: {0}")]
pub struct ServeError(#[from] io::Error);

impl EnvServer {
    /// Makes the directories of the world where they do not exist, and takes the port.
    ///
    /// # Errors
    /// See [`BindError`].
    pub async fn bind(mut settings: Settings) -> Result<BoundServer, BindError> {
        for subsystem in [&mut settings.filesystem, &mut settings.apps_data] {
            subsystem.root = prepare(subsystem).map_err(|source| BindError::Root {
                subsystem: subsystem.name.clone(),
                path: subsystem.root.clone(),
                source,
            })?;
        }
        let address_error = |source| BindError::Address {
            host: settings.host.clone(),
            port: settings.port,
            source,
        };
        let listener = TcpListener::bind((settings.host.as_str(), settings.port))
            .await
            .map_err(address_error)?;
        let local_addr = listener.local_addr().map_err(address_error)?;
        let gateway = Gateway::new(gateway_options(&settings));
        Ok(BoundServer {
            listener,
            local_addr,
            environment: Environment::new(settings, gateway),
        })
    }
}

/// The directory of a subsystem, as an absolute path.
fn prepare(subsystem: &Subsystem) -> io::Result<PathBuf> {
    let root = std::path::absolute(&subsystem.root)?;
    std::fs::create_dir_all(&root)?;
    // What an environment that was killed in the middle of an unpacking has left.
    match snapshot::archive::sweep(&root) {
        Ok(swept) => {
            for path in swept.removed {
                tracing::info!(path = %path.display(), "removed what an earlier environment left");
            }
            for path in swept.kept {
                tracing::warn!(path = %path.display(), "files that a killed environment was replacing are here");
            }
        }
        Err(error) => {
            tracing::warn!(%error, root = %root.display(), "cannot look for what an earlier environment left");
        }
    }
    Ok(root)
}

fn gateway_options(settings: &Settings) -> mcp_gateway::GatewayOptions {
    let mut options = settings.gateway.clone();
    options
        .allowed_hosts
        .extend(settings.allowed_hosts.iter().cloned());
    let roots: [(&str, &Path); 2] = [
        ("FILESYSTEM_ROOT", &settings.filesystem.root),
        ("APPS_DATA_ROOT", &settings.apps_data.root),
    ];
    for (name, root) in roots {
        options
            .environment
            .insert(name.to_owned(), root.display().to_string());
    }
    options
}

/// A server that has its port and does not answer yet.
#[derive(Debug)]
pub struct BoundServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    environment: Environment,
}

impl BoundServer {
    /// Where it listens; with the port that was taken when port 0 was asked for.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop` is cancelled. Then no new connection is taken, requests in flight get
    /// [`Settings::shutdown_grace`], and MCP servers another 1.5 s to end by themselves. Those that
    /// still run are killed; what else still runs ends with the runtime.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(self, stop: CancellationToken) -> Result<(), ServeError> {
        let gateway = self.environment.gateway.clone();
        let grace = self.environment.settings.shutdown_grace;
        let app = routes::router(&self.environment);
        let environment = self.environment.clone();
        // Small answers over kept connections wait for 40 ms without this.
        let listener = self.listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY cannot be set");
            }
        });
        let serving = axum::serve(listener, app)
            .with_graceful_shutdown(stop.clone().cancelled_owned())
            .into_future();
        let ending = tokio::spawn({
            let stop = stop.clone();
            async move {
                stop.cancelled().await;
                tracing::info!("stopping");
                environment.populate_jobs.stop();
                environment.snapshot_jobs.stop();
                environment.coordinator.stop(grace).await;
                gateway.shutdown_within(STOP_SERVERS).await;
            }
        });
        let served = tokio::select! {
            served = serving => served,
            () = async { stop.cancelled().await; tokio::time::sleep(grace).await } => {
                tracing::warn!("requests were still running at the end");
                Ok(())
            }
        };
        // A listener that failed ends the servers as well.
        stop.cancel();
        if let Err(error) = ending.await {
            tracing::error!(%error, "the end of the environment went wrong");
        }
        Ok(served?)
    }
}
