//! `POST /data/snapshot` (`spec/environment.md` §14).

use std::time::Instant;

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::archive::{ArchiveFormat, PackOptions, pack};
use tokio::sync::OwnedSemaphorePermit;

use super::hooks::{self, Hook};
use super::transfer::DownloadWriter;
use super::{permit, transfer};
use crate::environment::Environment;
use crate::error::{ApiError, InvalidItem};
use crate::json_body;
use crate::metrics::Direction;

/// The body of a snapshot request; all of it may be left out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SnapshotRequest {
    /// Run before the archive is made.
    #[serde(default)]
    pub(crate) pre_snapshot_hooks: Option<Vec<Hook>>,
}

/// Streams the world as an archive. The packer runs on a thread of its own, at the pace of the client,
/// and ends with it. A failure in the middle breaks the transfer, so that it never looks complete.
pub(crate) async fn snapshot(
    State(environment): State<Environment>,
    Query(query): Query<Vec<(String, String)>>,
    request: Request,
) -> Result<Response, ApiError> {
    let settings = &environment.settings;
    let options = pack_options(&query)?;
    let body: Option<SnapshotRequest> =
        json_body::optional(request, settings.max_json_bytes).await?;
    let permit = permit(&environment)?;
    let hooks = body
        .unwrap_or_default()
        .pre_snapshot_hooks
        .unwrap_or_default();
    environment.coordinator.drain().await;
    let timings = hooks::run(&hooks, &settings.data).await?;

    let format = options.format;
    let (writer, stream) = transfer::download(settings.data.transfer_stall);
    spawn_pack(environment.clone(), writer, options, Some(permit), "client");

    let name = format!("snap_{}.{}", uuid::Uuid::new_v4().simple(), format.name());
    let mut response = (
        [
            (header::CONTENT_TYPE, format.media_type().to_owned()),
            (
                header::CONTENT_DISPOSITION,
                format!("attachment; filename=\"{name}\""),
            ),
        ],
        Body::from_stream(stream),
    )
        .into_response();
    if !hooks.is_empty() {
        let timings = ascii(&serde_json::to_string(&timings).unwrap_or_default());
        if let Ok(value) = HeaderValue::from_str(&timings) {
            response.headers_mut().insert("x-hook-timings", value);
        }
    }
    Ok(response)
}

/// JSON in the letters that a header may hold: others stand in strings only, where they can be escaped.
fn ascii(json: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if matches!(letter, ' '..='~') {
            text.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{unit:04x}");
        }
    }
    text
}

/// Packs the world for a `peer` (`client` or `s3`) on a thread of its own. `permit` is held until that
/// is done.
pub(crate) fn spawn_pack(
    environment: Environment,
    mut writer: DownloadWriter,
    options: PackOptions,
    permit: Option<OwnedSemaphorePermit>,
    peer: &'static str,
) {
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let started = Instant::now();
        let packed = pack(&environment.settings.roots(), &mut writer, &options);
        match &packed {
            Ok(report) => {
                let (files, bytes) = (report.members, report.bytes);
                environment.metrics.moved(
                    Direction::Snapshot,
                    peer,
                    files,
                    bytes,
                    started.elapsed(),
                );
                tracing::info!(
                    members = files,
                    bytes,
                    skipped = report.skipped.len(),
                    shortened = report.shortened.len(),
                    unlocked = report.unlocked.len(),
                    "the snapshot is complete"
                );
            }
            Err(error) => {
                let source = std::error::Error::source(error).map(ToString::to_string);
                tracing::warn!(%error, source, "the snapshot failed");
            }
        }
        writer.finish(packed.map(drop).map_err(|error| error.to_string()));
    });
}

/// What the query asks for: `format`, `empty_directories`, `reproducible`. Empty directories are
/// members of the two formats that are ours; the layout of the reference has none.
pub(super) fn pack_options(query: &[(String, String)]) -> Result<PackOptions, ApiError> {
    let mut options = PackOptions::default();
    let mut empty_directories = None;
    for (name, value) in query {
        match name.as_str() {
            "format" => {
                options.format = ArchiveFormat::from_name(value).ok_or_else(|| {
                    invalid_query(name, "it is `tar.gz`, `tar.zst` or `zip`", value)
                })?;
            }
            "empty_directories" => empty_directories = Some(flag(name, value)?),
            "reproducible" => options.reproducible = flag(name, value)?,
            _ => {}
        }
    }
    options.empty_directories = empty_directories.unwrap_or(options.format != ArchiveFormat::TarGz);
    Ok(options)
}

fn flag(name: &str, value: &str) -> Result<bool, ApiError> {
    value
        .parse()
        .map_err(|_| invalid_query(name, "it is `true` or `false`", value))
}

fn invalid_query(name: &str, rule: &str, value: &str) -> ApiError {
    let loc: Vec<Value> = vec![json!("query"), json!(name)];
    ApiError::invalid(&InvalidItem::value(loc, rule, json!(value)))
}

#[cfg(test)]
mod tests {
    use super::ascii;

    #[test]
    fn letters_that_no_header_holds_are_escaped() {
        let json = serde_json::to_string("a \"ö\" 🔧\n\u{7f}").unwrap();
        let text = ascii(&json);
        assert_eq!(text, r#""a \"\u00f6\" \ud83d\udd27\n\u007f""#);
        let back: String = serde_json::from_str(&text).unwrap();
        assert_eq!(back, "a \"ö\" 🔧\n\u{7f}");
    }
}
