//! `/data`: the world in and out.

mod hooks;
mod populate;
mod snapshot;
mod transfer;
mod upload;

pub(crate) use populate::{Populated, populate};
pub(crate) use snapshot::{SnapshotRequest, snapshot};

use std::sync::Arc;

use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use crate::environment::Environment;
use crate::error::ApiError;

/// The right to one transfer, kept until it ends.
fn permit(environment: &Environment) -> Result<OwnedSemaphorePermit, ApiError> {
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
