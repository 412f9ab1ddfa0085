//! `/data`: the world in and out.

pub(crate) mod hooks;
mod populate;
mod snapshot;
pub(crate) mod transfer;
mod upload;

pub(crate) use populate::{Populated, commit, populate, unpack_error};
pub(crate) use snapshot::{SnapshotRequest, snapshot, spawn_pack};

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use crate::environment::Environment;
use crate::error::ApiError;

/// The right to one transfer, kept until it ends.
pub(crate) fn permit(environment: &Environment) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(&environment.transfers)
        .try_acquire_owned()
        .map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "{} transfers are running already (max_transfers)",
                    environment.settings.data.max_transfers
                ),
            )
        })
}
