//! The network of a sandbox's containers.

use std::collections::HashMap;
use std::sync::Arc;

use bollard::models::NetworkCreateRequest;

use super::engine::{Engine, Leftover};
use super::holder::Holder;
use crate::SandboxError;

/// A network on which containers cannot reach each other. Removed when the last user is gone.
#[derive(Debug)]
pub(super) struct Network {
    engine: Arc<Engine>,
    name: String,
}

impl Network {
    /// Makes one, with or without a way out.
    pub(super) async fn create(engine: Arc<Engine>, way_out: bool) -> Result<Self, SandboxError> {
        let docker = engine.docker().await?;
        let name = format!("archipelago-{:016x}", fastrand::u64(..));
        let request = NetworkCreateRequest {
            name: name.clone(),
            driver: Some("bridge".to_owned()),
            internal: Some(!way_out),
            options: Some(HashMap::from([(
                "com.docker.network.bridge.enable_icc".to_owned(),
                "false".to_owned(),
            )])),
            labels: Holder::this().map(|this| this.labels()),
            ..NetworkCreateRequest::default()
        };
        docker
            .create_network(request)
            .await
            .map_err(|error| engine.refused("make a network".to_owned(), &error))?;
        Ok(Self { engine, name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.engine
            .remove_in_drop(Leftover::Network(self.name.clone()));
    }
}
