//! `POST /data/snapshot`.

use std::path::{Path, PathBuf};

use tokio::io::AsyncWriteExt as _;

use super::EnvironmentClient;
use super::error::{Call, ClientError};

/// A snapshot on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSaved {
    /// Its size in bytes.
    pub bytes: u64,
    /// The attempt that succeeded, counted from 1.
    pub attempts: u32,
}

impl EnvironmentClient {
    /// Saves the state of the world as a `tar.gz` at `to`.
    ///
    /// The reply goes to a file beside it, which takes the name when it is complete: a reader sees
    /// a whole snapshot or none. What may pass by itself is tried again.
    ///
    /// # Errors
    /// The [`ClientError`] of the last attempt.
    pub async fn snapshot(&self, to: &Path) -> Result<SnapshotSaved, ClientError> {
        let mut attempts = 1;
        loop {
            match self.try_snapshot(to).await {
                Ok(bytes) => return Ok(SnapshotSaved { bytes, attempts }),
                Err(error) if attempts < self.settings.snapshot_attempts && error.may_pass() => {
                    tracing::warn!(%error, attempts, "the snapshot failed and is tried again");
                }
                Err(error) => return Err(error),
            }
            attempts += 1;
            tokio::time::sleep(self.settings.snapshot_pause).await;
        }
    }

    async fn try_snapshot(&self, to: &Path) -> Result<u64, ClientError> {
        let (call, limit) = (Call::Snapshot, self.settings.snapshot_read);
        let request = self.http.post(self.url("/data/snapshot"));
        let mut response = self.send(call, request, limit).await?;
        if !response.status().is_success() {
            return Err(self.refused(call, response).await);
        }
        let mut partial = Partial::create(to).await?;
        loop {
            let chunk = match tokio::time::timeout(limit, response.chunk()).await {
                Err(_) => return Err(ClientError::TimedOut { call, limit }),
                Ok(Err(error)) => return Err(self.lost(call, &error).await),
                Ok(Ok(None)) => return partial.finish().await,
                Ok(Ok(Some(chunk))) => chunk,
            };
            let limit = self.settings.snapshot_bytes;
            if partial.bytes + chunk.len() as u64 > limit {
                return Err(ClientError::TooLarge { call, limit });
            }
            partial.write(&chunk).await?;
        }
    }
}

/// A file under another name until it is complete; removed when dropped before that.
struct Partial {
    to: PathBuf,
    path: PathBuf,
    file: tokio::fs::File,
    bytes: u64,
    complete: bool,
}

impl Partial {
    async fn create(to: &Path) -> Result<Self, ClientError> {
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let path = to.with_file_name(name);
        let create = async {
            if let Some(folder) = to.parent() {
                tokio::fs::create_dir_all(folder).await?;
            }
            tokio::fs::File::create(&path).await
        };
        let created = create.await;
        match created {
            Ok(file) => Ok(Self {
                to: to.to_owned(),
                path,
                file,
                bytes: 0,
                complete: false,
            }),
            Err(source) => Err(ClientError::Write { path, source }),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.bytes += bytes.len() as u64;
        let written = self.file.write_all(bytes).await;
        written.map_err(|source| self.write_error(source))
    }

    async fn finish(mut self) -> Result<u64, ClientError> {
        let saved = async {
            self.file.flush().await?;
            self.file.sync_all().await?;
            tokio::fs::rename(&self.path, &self.to).await
        };
        let saved = saved.await;
        saved.map_err(|source| self.write_error(source))?;
        self.complete = true;
        Ok(self.bytes)
    }

    fn write_error(&self, source: std::io::Error) -> ClientError {
        ClientError::Write {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.complete {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
