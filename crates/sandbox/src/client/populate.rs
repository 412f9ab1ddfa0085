//! `POST /data/populate`.

use std::path::Path;

use reqwest::Body;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

use super::EnvironmentClient;
use super::error::{Call, ClientError};

/// Bytes that are read from an archive at a time.
const PART: usize = 64 << 10;

/// The answer of `POST /data/populate`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Populated {
    /// Entries of the archive, folders included.
    pub objects_added: u64,
    /// The subsystem as it was given.
    pub subsystem: String,
    /// Bytes of its files.
    #[serde(default)]
    pub extracted_bytes: u64,
}

impl EnvironmentClient {
    /// Unpacks the `tar.gz` at `archive` into `subsystem`: `filesystem`, `.apps_data`, or a folder
    /// below one of them. The file is streamed, never held as a whole.
    ///
    /// # Errors
    /// [`ClientError::World`] where the file cannot be read, else as
    /// [`EnvironmentClient::populate_from`].
    pub async fn populate(
        &self,
        subsystem: &str,
        archive: &Path,
    ) -> Result<Populated, ClientError> {
        let world_error = |error: std::io::Error| ClientError::World {
            path: archive.to_owned(),
            reason: error.to_string(),
        };
        let file = tokio::fs::File::open(archive).await.map_err(world_error)?;
        let length = file.metadata().await.map_err(world_error)?.len();
        self.populate_from(subsystem, file, Some(length)).await
    }

    /// Unpacks the `tar.gz` that `reader` gives into `subsystem`.
    ///
    /// `length` is the number of bytes, where it is known.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the environment's reason where it does not accept the archive.
    pub async fn populate_from(
        &self,
        subsystem: &str,
        reader: impl AsyncRead + Send + 'static,
        length: Option<u64>,
    ) -> Result<Populated, ClientError> {
        let (call, limit) = (Call::Populate, self.settings.populate);
        let body = Body::wrap_stream(ReaderStream::with_capacity(reader, PART));
        let part = match length {
            Some(length) => Part::stream_with_length(body, length),
            None => Part::stream(body),
        };
        // A part without a file name is a plain field, which the interface refuses.
        let part = part
            .file_name("world.tar.gz")
            .mime_str("application/gzip")
            .map_err(|error| ClientError::Reply {
                call,
                reason: super::error::chain(&error),
            })?;
        let request = self
            .http
            .post(self.url("/data/populate"))
            .query(&[("subsystem", subsystem)])
            .multipart(Form::new().part("archive", part));
        let populate = async {
            let response = self.send(call, request, limit).await?;
            if response.status().is_success() {
                return self.document(call, response).await;
            }
            Err(self.refused(call, response).await)
        };
        tokio::time::timeout(limit, populate)
            .await
            .map_err(|_| ClientError::TimedOut { call, limit })?
    }
}
