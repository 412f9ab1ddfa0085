//! The client of an environment's HTTP interface (`spec/environment.md` §4, §5, §12, §14).

mod apps;
mod error;
mod populate;
mod reply;
mod snapshot;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{RequestBuilder, Response, Url};

use crate::life::Life;

pub use apps::FailedServer;
pub use error::Call;
pub use error::ClientError;
pub use populate::Populated;
pub use snapshot::SnapshotSaved;

/// The limits of an [`EnvironmentClient`].
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// For a connection. Default 5 s.
    pub connect: Duration,
    /// For one health check. Default 5 s.
    pub health: Duration,
    /// Between two health checks while waiting. Default 50 ms.
    pub health_pause: Duration,
    /// For sending one archive and its unpacking. Default 600 s.
    pub populate: Duration,
    /// For `POST /apps`, the start of all servers included. Default 600 s.
    pub apps: Duration,
    /// For the beginning of a snapshot, and then for each part of it. Default 600 s: an
    /// environment may compress a large file before it sends anything.
    pub snapshot_read: Duration,
    /// Bytes of a snapshot as it is sent. Default 64 GiB.
    pub snapshot_bytes: u64,
    /// How often a snapshot is tried, counting the first. Default 3.
    pub snapshot_attempts: u32,
    /// Between two attempts. Default 1 s.
    pub snapshot_pause: Duration,
    /// Bytes of a reply that is read as a whole, such as an error. Default 1 MiB.
    pub reply_bytes: usize,
    /// Characters of a reply that an error message shows. Default 2000.
    pub reply_characters: usize,
    /// What a world may ask of this machine while it is converted.
    pub world: ::snapshot::Limits,
    /// Where converted worlds lie until they are sent. Default: the system's folder for temporary
    /// files.
    pub temporary_root: PathBuf,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            health: Duration::from_secs(5),
            health_pause: Duration::from_millis(50),
            populate: Duration::from_secs(600),
            apps: Duration::from_secs(600),
            snapshot_read: Duration::from_secs(600),
            snapshot_bytes: 64 << 30,
            snapshot_attempts: 3,
            snapshot_pause: Duration::from_secs(1),
            reply_bytes: 1 << 20,
            reply_characters: 2000,
            world: ::snapshot::Limits::default(),
            temporary_root: std::env::temp_dir(),
        }
    }
}

/// Talks to one environment. Cheap to clone.
///
/// Every call has its own time limit and can be dropped at any moment. Only calls that change
/// nothing are repeated: the health check and the snapshot.
#[derive(Debug, Clone)]
pub struct EnvironmentClient {
    http: reqwest::Client,
    base_url: String,
    settings: Arc<ClientSettings>,
    /// What is known of the environment, where it is ours; errors tell how it ended.
    life: Option<Arc<Life>>,
}

impl EnvironmentClient {
    /// A client for the environment at `base_url`, such as `http://127.0.0.1:8080`.
    ///
    /// Proxies of the system are not used.
    ///
    /// # Errors
    /// [`ClientError::Address`] where `base_url` is no HTTP address.
    pub fn new(base_url: &str, settings: ClientSettings) -> Result<Self, ClientError> {
        let address_error = |reason: String| ClientError::Address {
            url: base_url.to_owned(),
            reason,
        };
        let url = Url::parse(base_url).map_err(|error| address_error(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(address_error(
                "it must begin with http:// or https:// and name a host".to_owned(),
            ));
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(settings.connect)
            .build()
            .map_err(|error| address_error(error::chain(&error)))?;
        Ok(Self {
            http,
            base_url: base_url.trim_end_matches('/').to_owned(),
            settings: Arc::new(settings),
            life: None,
        })
    }

    pub(crate) fn of_life(mut self, life: Arc<Life>) -> Self {
        self.life = Some(life);
        self
    }

    /// The address without a final slash.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The address of the MCP endpoint, with the final slash that some servers insist on.
    #[must_use]
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp/", self.base_url)
    }

    /// The limits.
    #[must_use]
    pub fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Checks the health once.
    ///
    /// # Errors
    /// [`ClientError`] where the environment does not answer, or with another status than 200.
    pub async fn health(&self) -> Result<(), ClientError> {
        let call = Call::Health;
        let limit = self.settings.health;
        let response = self
            .send(call, self.http.get(self.url("/health")), limit)
            .await?;
        if response.status() == reqwest::StatusCode::OK {
            return Ok(());
        }
        Err(self.refused(call, response).await)
    }

    /// Checks the health again and again until it is good, for at most `limit`.
    ///
    /// # Errors
    /// The last [`ClientError`], or at once the one that says that the process is gone.
    pub async fn wait_until_healthy(&self, limit: Duration) -> Result<(), ClientError> {
        let end = tokio::time::Instant::now() + limit;
        loop {
            let error = match self.health().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if error.died().is_some() || tokio::time::Instant::now() >= end {
                return Err(error);
            }
            tokio::time::sleep(self.settings.health_pause).await;
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }

    /// Sends `request` and waits for the head of the reply.
    async fn send(
        &self,
        call: Call,
        request: RequestBuilder,
        limit: Duration,
    ) -> Result<Response, ClientError> {
        match tokio::time::timeout(limit, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(self.lost(call, &error).await),
            Err(_) => Err(ClientError::TimedOut { call, limit }),
        }
    }
}
