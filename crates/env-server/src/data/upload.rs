//! The form of a populate request, streamed: the archive goes straight to the thread that unpacks it.

use std::time::Duration;

use axum::extract::Multipart;
use axum::extract::multipart::{Field, MultipartError};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use snapshot::archive::{Staged, UnpackError, stage_tar_gz};

use super::transfer::{self, UploadSender};
use crate::error::{ApiError, InvalidItem};
use crate::settings::DataLimits;
use crate::subsystem::Place;

/// What a form brought.
#[derive(Default)]
pub(super) struct Form {
    /// The archive, unpacked beside its place; `None` where the place was not valid.
    pub(super) archive: Option<Result<Staged, UnpackError>>,
    /// The text of the field with the hooks.
    pub(super) hooks: Option<String>,
}

/// Reads the whole form. With a `place` the archive is staged for it, without one it is only read, so
/// that the client gets its answer.
pub(super) async fn receive(
    mut multipart: Multipart,
    place: Option<&Place>,
    limits: &DataLimits,
) -> Result<Form, ApiError> {
    let mut form = Form::default();
    let mut seen = false;
    let mut wrong = None;
    let mut reader = PartReader { limits, total: 0 };
    while let Some(mut field) = reader.next(&mut multipart).await? {
        match field.name().unwrap_or_default() {
            "archive" if field.file_name().is_none() => {
                let text = reader.text(&mut field).await?;
                wrong = Some(InvalidItem::value(
                    archive_loc(),
                    "a file part is needed, got a plain field",
                    json!(text),
                ));
                seen = true;
            }
            "archive" if seen => {
                reader.pass(&mut field, None).await?;
                wrong = Some(InvalidItem::value(
                    archive_loc(),
                    "one file is needed, got several",
                    Value::Null,
                ));
            }
            "archive" => {
                seen = true;
                match place {
                    Some(place) => {
                        form.archive = Some(stage(&mut reader, &mut field, place).await?);
                    }
                    None => reader.pass(&mut field, None).await?,
                }
            }
            "post_populate_hooks" => form.hooks = Some(reader.text(&mut field).await?),
            _ => reader.pass(&mut field, None).await?,
        }
    }
    if let Some(item) = wrong {
        return Err(ApiError::invalid(&item));
    }
    if !seen {
        return Err(no_archive());
    }
    Ok(form)
}

/// The answer to a request without an archive.
pub(super) fn no_archive() -> ApiError {
    ApiError::invalid(&InvalidItem::missing(archive_loc(), Value::Null))
}

fn archive_loc() -> Vec<Value> {
    vec![json!("body"), json!("archive")]
}

async fn stage(
    reader: &mut PartReader<'_>,
    field: &mut Field<'_>,
    place: &Place,
) -> Result<Result<Staged, UnpackError>, ApiError> {
    let (sender, input) = transfer::upload();
    let place = place.clone();
    let limits = reader.limits.archive.clone();
    let unpacking = tokio::task::spawn_blocking(move || {
        stage_tar_gz(input, &place.root, &place.inner, &limits)
    });
    reader.pass(field, Some(sender)).await?;
    unpacking
        .await
        .map_err(|error| ApiError::internal(format!("unpacking failed: {error}")))
}

/// Reads parts within the limits of an upload.
struct PartReader<'l> {
    limits: &'l DataLimits,
    total: u64,
}

impl PartReader<'_> {
    async fn next<'m>(&self, multipart: &'m mut Multipart) -> Result<Option<Field<'m>>, ApiError> {
        self.in_time(multipart.next_field()).await
    }

    async fn chunk(&mut self, field: &mut Field<'_>) -> Result<Option<Bytes>, ApiError> {
        let chunk = self.in_time(field.chunk()).await?;
        if let Some(chunk) = &chunk {
            self.total += chunk.len() as u64;
            if self.total > self.limits.max_upload_bytes {
                return Err(ApiError::too_large(format!(
                    "the upload is larger than {} bytes (max_upload_bytes)",
                    self.limits.max_upload_bytes
                )));
            }
        }
        Ok(chunk)
    }

    async fn in_time<T>(
        &self,
        arriving: impl Future<Output = Result<T, MultipartError>>,
    ) -> Result<T, ApiError> {
        let stall: Duration = self.limits.transfer_stall;
        match tokio::time::timeout(stall, arriving).await {
            Ok(arrived) => arrived.map_err(|error| {
                ApiError::bad_request(format!("the form cannot be read: {}", error.body_text()))
            }),
            Err(_) => Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                format!("nothing arrived for {stall:?} (transfer_stall)"),
            )),
        }
    }

    /// Reads a part to its end, into `to` as long as that takes anything.
    async fn pass(
        &mut self,
        field: &mut Field<'_>,
        mut to: Option<UploadSender>,
    ) -> Result<(), ApiError> {
        while let Some(chunk) = self.chunk(field).await? {
            if let Some(sender) = &to
                && !sender.send(chunk).await
            {
                // The unpacker has given up and says why; the client wants to finish speaking first.
                to = None;
            }
        }
        if let Some(sender) = to {
            sender.end().await;
        }
        Ok(())
    }

    async fn text(&mut self, field: &mut Field<'_>) -> Result<String, ApiError> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk(field).await? {
            text.extend_from_slice(&chunk);
            if text.len() > self.limits.max_field_bytes {
                return Err(ApiError::too_large(format!(
                    "a form field is larger than {} bytes (max_field_bytes)",
                    self.limits.max_field_bytes
                )));
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
