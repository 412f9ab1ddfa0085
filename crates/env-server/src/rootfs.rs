//! `/data/rootfs`: what changed on the machine since a moment (`spec/environment.md` §16).

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header;
use nix::libc::O_NOFOLLOW;
use schemars::JsonSchema;
use serde::Serialize;
use snapshot::archive::{ArchiveFormat, ChangeTime, pack_layer};
use tokio::sync::OwnedSemaphorePermit;

use crate::data::{permit, transfer};
use crate::environment::Environment;
use crate::error::ApiError;
use crate::metrics::Direction;
use crate::settings::Settings;

/// Never part of a layer: what the kernel makes up, what does not last, and the world itself, which has
/// snapshots of its own.
const EXCLUDED: [&str; 10] = [
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "var/tmp",
    "var/lib/apt/lists",
    "var/cache/apt",
    "filesystem",
    ".apps_data",
];

/// Where the moment is kept from which on changes count.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Baseline {
    /// The file whose change time is the moment.
    marker_path: String,
    /// Seconds since 1970.
    marked_at: f64,
}

/// `POST /data/rootfs/baseline`: changes from now on count.
pub(crate) async fn baseline(
    State(environment): State<Environment>,
) -> Result<Json<Baseline>, ApiError> {
    let path = environment.settings.rootfs.marker.clone();
    let marked = tokio::task::spawn_blocking(move || mark(&path).map(|at| (path, at)));
    let (path, at) = marked
        .await
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| {
            let path = environment.settings.rootfs.marker.display();
            ApiError::internal(format!("cannot write the marker `{path}`: {error}"))
        })?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "the interface has seconds as a number with a fraction"
    )]
    let marked_at = at.seconds as f64 + at.nanoseconds as f64 / 1e9;
    Ok(Json(Baseline {
        marker_path: path.display().to_string(),
        marked_at,
    }))
}

/// Writes the marker; links are not followed.
fn mark(path: &Path) -> io::Result<ChangeTime> {
    if let Some(folder) = path.parent()
        && !folder.is_dir()
    {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut marker = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(O_NOFOLLOW)
        .open(path)?;
    marker.write_all(b"changes after this file count\n")?;
    // Also where it was there before, and with another mode.
    marker.set_permissions(PermissionsExt::from_mode(0o600))?;
    Ok(ChangeTime::of(&marker.metadata()?))
}

/// A layer that can be made: a baseline is there.
pub(crate) struct Layer {
    environment: Environment,
    since: ChangeTime,
}

impl Layer {
    pub(crate) fn new(environment: &Environment) -> Result<Self, ApiError> {
        let marker = &environment.settings.rootfs.marker;
        match marker.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => Ok(Self {
                environment: environment.clone(),
                since: ChangeTime::of(&metadata),
            }),
            _ => Err(ApiError::bad_request(
                "there is no baseline: call POST /data/rootfs/baseline first",
            )),
        }
    }

    /// Makes the layer for a `peer` (`client` or `s3`) on a thread of its own.
    pub(crate) fn spawn(
        self,
        permit: Option<OwnedSemaphorePermit>,
        peer: &'static str,
    ) -> transfer::DownloadStream {
        let (writer, stream) = transfer::download(self.environment.settings.data.transfer_stall);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let started = Instant::now();
            let settings = &self.environment.settings;
            let mut counted = Counted {
                writer,
                room: settings.rootfs.max_layer_bytes,
                limit: settings.rootfs.max_layer_bytes,
            };
            let excluded = excluded(settings);
            let packed = pack_layer(&settings.rootfs.root, self.since, &excluded, &mut counted);
            match &packed {
                Ok(report) => {
                    let (members, bytes) = (report.members, report.bytes);
                    self.environment.metrics.moved(
                        Direction::Layer,
                        peer,
                        members,
                        bytes,
                        started.elapsed(),
                    );
                    tracing::info!(members, bytes, "the layer is complete");
                }
                Err(error) => {
                    let source = std::error::Error::source(error).map(ToString::to_string);
                    tracing::warn!(%error, source, "the layer failed");
                }
            }
            let result = packed.map(drop).map_err(|error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                format!("{error}: {}", source.unwrap_or_default())
            });
            counted.writer.finish(result);
        });
        stream
    }
}

/// Paths relative to the root that are never part of a layer.
fn excluded(settings: &Settings) -> Vec<PathBuf> {
    let rootfs = &settings.rootfs;
    let of_settings = [
        &settings.filesystem.root,
        &settings.apps_data.root,
        &rootfs.marker,
    ];
    let below_root = of_settings
        .into_iter()
        .filter_map(|path| path.strip_prefix(&rootfs.root).ok())
        .map(Path::to_owned);
    EXCLUDED
        .iter()
        .map(PathBuf::from)
        .chain(below_root)
        .collect()
}

/// Takes no more than a layer may have.
struct Counted {
    writer: transfer::DownloadWriter,
    room: u64,
    limit: u64,
}

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room = self.room.checked_sub(bytes.len() as u64).ok_or_else(|| {
            io::Error::other(format!(
                "the layer is larger than {} bytes (max_layer_bytes)",
                self.limit
            ))
        })?;
        self.writer.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// `POST /data/rootfs/layer`: the layer as a stream. A failure in the middle breaks the transfer.
pub(crate) async fn layer(State(environment): State<Environment>) -> Result<Response, ApiError> {
    let layer = Layer::new(&environment)?;
    let permit = permit(&environment)?;
    environment.coordinator.drain().await;
    let format = ArchiveFormat::TarGz;
    let headers = [
        (header::CONTENT_TYPE, format.media_type()),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"rootfs-layer.tar.gz\"",
        ),
    ];
    let body = Body::from_stream(layer.spawn(Some(permit), "client"));
    Ok((headers, body).into_response())
}
