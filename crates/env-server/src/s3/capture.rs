//! What changed on the machine, as an object of S3 (`spec/environment.md` §16).

use std::sync::Arc;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::{self, S3CredentialsBody};
use super::jobs::Progress;
use super::snapshot::{is_valid, key_prefix};
use super::upload;
use crate::environment::Environment;
use crate::error::ApiError;
use crate::rootfs::Layer;

/// A request to put a layer into S3.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RootfsCapture {
    /// Letters, digits, `-` and `_`.
    pub(crate) snapshot_id: String,
    /// Instead of those of the environment.
    #[serde(default)]
    pub(crate) s3_credentials: Option<S3CredentialsBody>,
}

/// What was sent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RootfsCaptured {
    /// `s3://bucket/key`.
    s3_uri: String,
    /// Bytes of the layer, compressed.
    size_bytes: u64,
    /// Seconds that it took.
    duration_s: f64,
}

impl RootfsCapture {
    pub(super) async fn run(self, environment: Environment) -> Result<RootfsCaptured, ApiError> {
        if !is_valid(&self.snapshot_id) {
            return Err(ApiError::bad_request("Invalid snapshot_id"));
        }
        let layer = Layer::new(&environment)?;
        let _permit = crate::data::permit(&environment)?;
        let started = Instant::now();
        let settings = &environment.settings.s3;
        let credentials = self.s3_credentials.as_ref();
        let store = Arc::new(client::bucket(settings, credentials, &settings.bucket)?);
        let folder = format!("{}{}", key_prefix(settings), self.snapshot_id);
        let key = format!("{folder}/rootfs-layer.tar.gz");
        let s3_uri = format!("s3://{}/{key}", settings.bucket);
        environment.coordinator.drain().await;
        let progress = Arc::new(Progress::default());
        let _telling = progress.tell(settings.progress_interval, s3_uri.clone());
        let size_bytes = upload::stream(&store, &key, layer.spawn(None, "s3"), &progress)
            .await
            .map_err(|reason| {
                ApiError::internal(format!("Failed to capture {s3_uri}: {reason}"))
            })?;
        Ok(RootfsCaptured {
            s3_uri,
            size_bytes,
            duration_s: started.elapsed().as_secs_f64(),
        })
    }
}
