//! The state that requests share.

use std::sync::{Arc, Mutex};

use mcp_gateway::Gateway;
use tokio::sync::Semaphore;

use crate::coordinator::Coordinator;
use crate::metrics::Metrics;
use crate::rest;
use crate::s3::Jobs;
use crate::settings::Settings;

/// One environment. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub(crate) struct Environment(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: Settings,
    pub(crate) gateway: Gateway,
    /// One for each upload and download that may run.
    pub(crate) transfers: Arc<Semaphore>,
    /// Held while an archive is moved into place, so that two never mix.
    pub(crate) placing: Mutex<()>,
    /// The client of the REST proxy.
    pub(crate) rest: reqwest::Client,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) coordinator: Arc<Coordinator>,
    /// Held while `/apps` is at work, so that servers and coordinator belong together.
    pub(crate) configuring: tokio::sync::Mutex<()>,
    pub(crate) populate_jobs: Arc<Jobs>,
    pub(crate) snapshot_jobs: Arc<Jobs>,
}

impl Environment {
    pub(crate) fn new(settings: Settings, gateway: Gateway) -> Self {
        let metrics = Arc::new(Metrics::new());
        let coordinator = Arc::new(Coordinator::new(&settings, metrics.clone()));
        gateway.observe_tool_calls(coordinator.clone());
        Self(Arc::new(Inner {
            coordinator,
            configuring: tokio::sync::Mutex::default(),
            transfers: Arc::new(Semaphore::new(settings.data.max_transfers)),
            rest: rest::client(settings.rest_connect, settings.rest_silence),
            metrics,
            populate_jobs: Arc::new(Jobs::new("populate", settings.data.max_jobs)),
            snapshot_jobs: Arc::new(Jobs::new("snapshot", settings.data.max_jobs)),
            settings,
            gateway,
            placing: Mutex::new(()),
        }))
    }
}

impl std::ops::Deref for Environment {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
