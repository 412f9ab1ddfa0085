//! A gateway under test, and configurations for it.

use std::future::Future;
use std::time::{Duration, Instant};

use axum::serve::ListenerExt as _;
use formats::apps::{AppsConfig, ServerConfig};
use mcp_gateway::{Gateway, GatewayOptions};
use testkit::mcp::StubServer;

use crate::client::Client;

/// A gateway that serves on a free port.
pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) url: String,
    server: tokio::task::JoinHandle<()>,
}

impl World {
    pub(crate) async fn with(options: GatewayOptions) -> Self {
        let gateway = Gateway::new(options);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp/", listener.local_addr().unwrap());
        let listener = listener.tap_io(|socket| {
            let _ = socket.set_nodelay(true);
        });
        let router = gateway.router();
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            gateway,
            url,
            server,
        }
    }

    pub(crate) async fn new() -> Self {
        Self::with(options()).await
    }

    /// A gateway that serves these stubs.
    pub(crate) async fn serving<const N: usize>(stubs: [(&str, StubServer); N]) -> Self {
        Self::serving_with(options(), stubs).await
    }

    /// A gateway of these limits that serves these stubs.
    pub(crate) async fn serving_with<const N: usize>(
        limits: GatewayOptions,
        stubs: [(&str, StubServer); N],
    ) -> Self {
        let world = Self::with(limits).await;
        world.gateway.apply(config(stubs)).await.unwrap();
        world
    }

    /// A gateway that serves this configuration.
    pub(crate) async fn configured(config: AppsConfig) -> Self {
        let world = Self::new().await;
        world.gateway.apply(config).await.unwrap();
        world
    }

    pub(crate) async fn client(&self) -> Client {
        Client::open(&self.url).await
    }

    pub(crate) async fn end(self) {
        self.gateway.shutdown().await;
        self.server.abort();
    }
}

/// Limits that let tests be quick.
pub(crate) fn options() -> GatewayOptions {
    GatewayOptions {
        start_timeout: Duration::from_secs(20),
        drain_timeout: Duration::from_secs(5),
        stop_grace: Duration::from_millis(400),
        ..GatewayOptions::default()
    }
}

pub(crate) fn stub() -> StubServer {
    StubServer::default()
}

pub(crate) fn stdio(stub: &StubServer) -> ServerConfig {
    let command = stub.command();
    ServerConfig {
        transport: "stdio".to_owned(),
        command: Some(command.command),
        args: Some(command.args),
        env: Some(command.env),
        serve_mcp_tools: true,
        exposes_mcp: true,
        ..ServerConfig::default()
    }
}

pub(crate) fn program(command: &str, args: &[&str]) -> ServerConfig {
    ServerConfig {
        transport: "stdio".to_owned(),
        command: Some(command.to_owned()),
        args: Some(args.iter().map(|arg| (*arg).to_owned()).collect()),
        serve_mcp_tools: true,
        exposes_mcp: true,
        ..ServerConfig::default()
    }
}

pub(crate) fn remote(url: &str) -> ServerConfig {
    ServerConfig {
        transport: "http".to_owned(),
        url: Some(url.to_owned()),
        serve_mcp_tools: true,
        exposes_mcp: true,
        ..ServerConfig::default()
    }
}

pub(crate) fn servers<const N: usize>(servers: [(&str, ServerConfig); N]) -> AppsConfig {
    AppsConfig {
        mcp_servers: servers.into_iter().collect(),
        ..AppsConfig::default()
    }
}

pub(crate) fn config<const N: usize>(stubs: [(&str, StubServer); N]) -> AppsConfig {
    servers(stubs.map(|(name, stub)| (name, stdio(&stub))))
}

/// Asks `condition` again and again until it holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let end = Instant::now() + limit;
    while !condition().await {
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
