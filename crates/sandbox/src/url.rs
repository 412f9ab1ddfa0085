//! An environment that someone else started.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::client::{ClientSettings, EnvironmentClient};
use crate::{RunningEnvironment, Sandbox, SandboxError, StartRequest};

/// An environment at a known address.
///
/// Starting it only checks its health; stopping it leaves it alone. What one trial leaves in it is
/// there for the next, so it serves one trial at a time.
#[derive(Debug, Clone)]
pub struct UrlSandbox {
    base_url: String,
    /// How long the environment may take to answer its first health check. Default 120 s
    /// (`spec/orchestration.md` §3).
    pub ready: Duration,
    /// Limits of the client.
    pub client: ClientSettings,
}

impl UrlSandbox {
    /// The environment at `base_url`, such as `http://localhost:8080`.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            ready: Duration::from_secs(120),
            client: ClientSettings::default(),
        }
    }
}

impl Sandbox for UrlSandbox {
    fn name(&self) -> String {
        self.base_url.clone()
    }

    fn start(
        &self,
        request: StartRequest,
    ) -> BoxFuture<'_, Result<RunningEnvironment, SandboxError>> {
        Box::pin(async move {
            request
                .needs
                .refuse_mounts("an environment at an address")?;
            if let Some((name, _)) = request.needs.variables.first() {
                return Err(SandboxError::Unsupported(format!(
                    "the task sets the variable `{name}`, which an environment that runs already \
                     cannot take; start it with this variable, or use `--sandbox process`"
                )));
            }
            let remarks = request.needs.without_containers().into_iter().collect();
            let client = EnvironmentClient::new(&self.base_url, self.client.clone())
                .map_err(|error| SandboxError::Unhealthy(Box::new(error)))?;
            tokio::select! {
                () = request.cancel.cancelled() => Err(SandboxError::Cancelled),
                healthy = client.wait_until_healthy(self.ready) => {
                    healthy.map_err(|error| SandboxError::Unhealthy(Box::new(error)))?;
                    Ok(RunningEnvironment::given(client, remarks))
                }
            }
        })
    }
}
