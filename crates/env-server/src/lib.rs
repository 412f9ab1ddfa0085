//! The HTTP interface of an environment.
//!
//! An environment is one world in which one agent works: two directories of files, and MCP servers
//! behind one endpoint. This crate serves both over HTTP (`spec/environment.md`): archives go in and
//! out under `/data`, `/apps` says which MCP servers run, `/mcp/` is where the agent connects.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use env_server::{EnvServer, Settings};
//! use tokio_util::sync::CancellationToken;
//!
//! let mut settings = Settings::default();
//! settings.filesystem.root = "world/filesystem".into();
//! settings.apps_data.root = "world/apps_data".into();
//! let server = EnvServer::bind(settings).await?;
//! println!("listening on http://{}", server.local_addr());
//! server.serve(CancellationToken::new()).await?;
//! # Ok(()) }
//! ```

mod api_description;
mod apps;
mod conventions;
mod coordinator;
mod data;
mod environment;
mod error;
mod guard;
mod json_body;
mod metrics;
mod rest;
mod rootfs;
mod routes;
mod s3;
mod server;
mod settings;
mod signing;
mod subsystem;

pub use mcp_gateway::GatewayOptions;

pub use api_description::{openapi_document, openapi_markdown};
pub use server::{BindError, BoundServer, EnvServer, ServeError};
pub use settings::{
    AuthToken, CoordinatorSettings, DataLimits, RootfsSettings, S3Settings, Settings, Subsystem,
};
pub use signing::{RequestSigning, SigningKeyError};
