//! The world to objects of S3.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::signer::Signer as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use snapshot::archive::{ArchiveFormat, PackError, PackOptions, PackReport, pack_into};

use super::client::{self, S3CredentialsBody};
use super::jobs::Progress;
use super::upload::{self, Uploaded};
use crate::data::hooks::{self, Hook, HookTiming};
use crate::data::{spawn_pack, transfer};
use crate::environment::Environment;
use crate::error::ApiError;
use crate::metrics::Direction;
use crate::settings::S3Settings;

/// How long the address of an archive is good for: a week, the most that S3 signs.
const PRESIGNED: Duration = Duration::from_secs(604_800);

/// Keys of failed objects that a message names.
const NAMED: usize = 5;

/// A request to put the world into S3.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct S3Snapshot {
    /// `files` (an object for each file, the default); any other value is one `tar.gz`.
    #[serde(default)]
    pub(crate) format: Option<String>,
    /// Letters, digits, `-` and `_`; made up unless given.
    #[serde(default)]
    pub(crate) snapshot_id: Option<String>,
    /// Run before anything is sent.
    #[serde(default)]
    pub(crate) pre_snapshot_hooks: Option<Vec<Hook>>,
    /// Instead of those of the environment.
    #[serde(default)]
    pub(crate) s3_credentials: Option<S3CredentialsBody>,
    /// With `files`: whether a `tar.zst` of everything is sent too. Default `true`.
    #[serde(default)]
    pub(crate) snapshot_zip_enabled: Option<bool>,
}

/// What was sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum S3Snapshotted {
    /// An object for each file.
    Files {
        /// The name of the snapshot.
        snapshot_id: String,
        /// Objects.
        files_uploaded: u64,
        /// Their bytes.
        total_bytes: u64,
        /// The hooks in the order of the request.
        hook_timings: Vec<HookTiming>,
    },
    /// One archive.
    Archive {
        /// The name of the snapshot.
        snapshot_id: String,
        /// `s3://bucket/key`.
        s3_uri: String,
        /// An address from which the archive can be fetched for a week.
        presigned_url: String,
        /// Bytes of the archive.
        size_bytes: u64,
        /// The hooks in the order of the request.
        hook_timings: Vec<HookTiming>,
    },
}

impl S3Snapshot {
    pub(super) async fn run(
        self,
        environment: Environment,
        progress: Arc<Progress>,
    ) -> Result<S3Snapshotted, ApiError> {
        let snapshot_id = match self.snapshot_id {
            Some(id) if is_valid(&id) => id,
            Some(_) => return Err(ApiError::bad_request("Invalid snapshot ID")),
            None => format!("snap_{}", uuid::Uuid::new_v4().simple()),
        };
        let _permit = crate::data::permit(&environment)?;
        let settings = &environment.settings.s3;
        let credentials = self.s3_credentials.as_ref();
        let store = Arc::new(client::bucket(settings, credentials, &settings.bucket)?);
        environment.coordinator.drain().await;
        let hooks = self.pre_snapshot_hooks.unwrap_or_default();
        let hook_timings = hooks::run(&hooks, &environment.settings.data).await?;
        let target = Target {
            environment: &environment,
            store,
            prefix: key_prefix(settings),
            snapshot_id,
            progress: &progress,
        };
        if self.format.as_deref().unwrap_or("files") != "files" {
            let key = format!("{}{}.tar.gz", target.prefix, target.snapshot_id);
            let size_bytes = target.archive(&key, PackOptions::default()).await?;
            return target.archived(&key, size_bytes, hook_timings).await;
        }
        let folder = format!("{}{}", target.prefix, target.snapshot_id);
        let _telling = progress.tell(settings.progress_interval, folder);
        let started = Instant::now();
        let sent = target.files().await?;
        let took = started.elapsed();
        environment
            .metrics
            .moved(Direction::Snapshot, "s3", sent.files, sent.bytes, took);
        if self.snapshot_zip_enabled.unwrap_or(true) && sent.files > 0 {
            let key = format!(
                "snapshot_zips/{}{}.tar.zst",
                target.prefix, target.snapshot_id
            );
            let options = PackOptions {
                format: ArchiveFormat::TarZst,
                fixed_metadata: true,
                ..PackOptions::default()
            };
            if let Err(error) = target.archive(&key, options).await {
                tracing::error!(key, error = %error.detail(), "the combined archive cannot be uploaded");
            }
        }
        Ok(S3Snapshotted::Files {
            snapshot_id: target.snapshot_id,
            files_uploaded: sent.files,
            total_bytes: sent.bytes,
            hook_timings,
        })
    }
}

/// Whether a snapshot may have this name.
pub(super) fn is_valid(id: &str) -> bool {
    !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// What the keys of snapshots begin with: nothing, or something that ends with a slash.
pub(super) fn key_prefix(settings: &S3Settings) -> String {
    match settings.prefix.trim_end_matches('/') {
        "" => String::new(),
        prefix => format!("{prefix}/"),
    }
}

/// Where a snapshot goes.
struct Target<'t> {
    environment: &'t Environment,
    store: Arc<AmazonS3>,
    prefix: String,
    snapshot_id: String,
    progress: &'t Progress,
}

impl Target<'_> {
    async fn files(&self) -> Result<Uploaded, ApiError> {
        let bucket = &self.environment.settings.s3.bucket;
        let folder = format!("{}{}/", self.prefix, self.snapshot_id);
        let (mut sink, uploads) = upload::uploads(&folder);
        let environment = self.environment.clone();
        let packing = tokio::task::spawn_blocking(move || {
            pack_into(
                &environment.settings.roots(),
                &mut sink,
                &PackOptions::default(),
            )
        });
        let sent = uploads.run(&self.store, self.progress).await;
        let failed = |reason: &str| {
            ApiError::internal(format!(
                "Failed to create files snapshot {} at s3://{bucket}/{folder}: {reason}",
                self.snapshot_id
            ))
        };
        finished(packing.await).map_err(|reason| failed(&reason))?;
        if sent.failed.is_empty() {
            return Ok(sent);
        }
        let keys: Vec<&str> = sent
            .failed
            .iter()
            .take(NAMED)
            .map(|(key, _)| key.as_str())
            .collect();
        let mut reason = format!(
            "{} file(s) failed after retry: {}",
            sent.failed.len(),
            keys.join(", ")
        );
        if let Some(more) = sent
            .failed
            .len()
            .checked_sub(NAMED)
            .filter(|more| *more > 0)
        {
            reason += &format!(" (and {more} more)");
        }
        if let Some((_, first)) = sent.failed.first() {
            reason += &format!("; the first: {first}");
        }
        Err(failed(&reason))
    }

    /// Sends one archive as it is made; answers its bytes.
    async fn archive(&self, key: &str, options: PackOptions) -> Result<u64, ApiError> {
        let failed = |reason: String| {
            ApiError::internal(format!(
                "Failed to create snapshot {} at s3://{}/{key}: {reason}",
                self.snapshot_id, self.environment.settings.s3.bucket
            ))
        };
        let (writer, stream) = transfer::download(self.environment.settings.data.transfer_stall);
        spawn_pack(self.environment.clone(), writer, options, None, "s3");
        upload::stream(&self.store, key, stream, self.progress)
            .await
            .map_err(failed)
    }
    async fn archived(
        self,
        key: &str,
        size_bytes: u64,
        hook_timings: Vec<HookTiming>,
    ) -> Result<S3Snapshotted, ApiError> {
        let path = Path::parse(key)
            .map_err(|error| ApiError::internal(format!("`{key}` cannot be a key: {error}")))?;
        let signed = self
            .store
            .signed_url(Method::GET, &path, PRESIGNED)
            .await
            .map_err(|error| {
                ApiError::internal(format!("the address cannot be signed: {error}"))
            })?;
        Ok(S3Snapshotted::Archive {
            snapshot_id: self.snapshot_id,
            s3_uri: format!("s3://{}/{key}", self.environment.settings.s3.bucket),
            presigned_url: signed.to_string(),
            size_bytes,
            hook_timings,
        })
    }
}

/// Why the packing ended, where it did not end well.
fn finished(
    packed: Result<Result<PackReport, PackError>, tokio::task::JoinError>,
) -> Result<PackReport, String> {
    match packed {
        Ok(Ok(report)) => Ok(report),
        Ok(Err(error)) => Err(match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }),
        Err(error) => Err(error.to_string()),
    }
}
