//! Removing what killed programs left in the engine.

use std::collections::HashMap;

use bollard::Docker;
use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{ListContainersOptions, ListNetworksOptions, StopContainerOptions};

use super::engine::Leftover;
use super::holder::{Holder, label};

/// Removes containers and networks whose program certainly runs no more; those that were to be
/// kept are only stopped.
///
/// Best effort: what cannot be removed now is tried again by the next run.
pub(crate) async fn sweep(docker: &Docker) {
    let Some(this) = Holder::this() else {
        return;
    };
    let ours = HashMap::from([("label".to_owned(), vec![label::PID.to_owned()])]);
    let all = ListContainersOptions {
        all: true,
        filters: Some(ours.clone()),
        ..ListContainersOptions::default()
    };
    for container in docker.list_containers(Some(all)).await.unwrap_or_default() {
        let labels = container.labels.unwrap_or_default();
        let (Some(id), true) = (container.id, is_orphan(&labels, &this)) else {
            continue;
        };
        if labels.get(label::KEPT).is_none_or(|kept| kept != "true") {
            tracing::info!(container = id, "removing an orphaned container");
            report(Leftover::Container(id).remove(docker).await);
        } else if container.state == Some(ContainerSummaryStateEnum::RUNNING) {
            let options = StopContainerOptions {
                signal: None,
                t: Some(5),
            };
            report(docker.stop_container(&id, Some(options)).await);
        }
    }
    let networks = ListNetworksOptions {
        filters: Some(ours),
    };
    for network in docker
        .list_networks(Some(networks))
        .await
        .unwrap_or_default()
    {
        let labels = network.labels.unwrap_or_default();
        if let (Some(id), true) = (network.id, is_orphan(&labels, &this)) {
            report(Leftover::Network(id).remove(docker).await);
        }
    }
}

fn is_orphan(labels: &HashMap<String, String>, this: &Holder) -> bool {
    Holder::named(labels).is_some_and(|holder| holder.is_gone(this))
}

fn report(done: Result<(), bollard::errors::Error>) {
    if let Err(error) = done {
        tracing::warn!(%error, "something that a killed program left could not be removed");
    }
}
