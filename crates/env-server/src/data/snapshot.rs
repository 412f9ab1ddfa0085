//! `POST /data/snapshot` (`spec/environment.md` §14).

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use snapshot::archive::{PackOptions, pack_tar_gz};

use super::hooks::{self, Hook};
use super::{permit, transfer};
use crate::environment::Environment;
use crate::error::{ApiError, InvalidItem};
use crate::json_body;

/// The body of a snapshot request; all of it may be left out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SnapshotRequest {
    /// Run before the archive is made.
    #[serde(default)]
    pub(crate) pre_snapshot_hooks: Option<Vec<Hook>>,
}

/// Streams the world as `tar.gz`. The packer runs on a thread of its own, at the pace of the client,
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
    let timings = hooks::run(&hooks, &settings.data).await?;

    let (mut writer, stream) = transfer::download(settings.data.transfer_stall);
    let world = environment.clone();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let settings = &world.settings;
        let roots = [&settings.filesystem, &settings.apps_data]
            .map(|subsystem| (subsystem.name.as_str(), subsystem.root.as_path()));
        let packed = pack_tar_gz(&roots, &mut writer, &options);
        match &packed {
            Ok(report) => tracing::info!(
                members = report.members,
                bytes = report.bytes,
                skipped = report.skipped.len(),
                shortened = report.shortened.len(),
                "the snapshot is complete"
            ),
            Err(error) => {
                let source = std::error::Error::source(error).map(ToString::to_string);
                tracing::warn!(%error, source, "the snapshot failed");
            }
        }
        writer.finish(packed.map(drop).map_err(|error| error.to_string()));
    });

    let name = format!("snap_{}.tar.gz", uuid::Uuid::new_v4().simple());
    let mut response = (
        [
            (header::CONTENT_TYPE, "application/gzip".to_owned()),
            (
                header::CONTENT_DISPOSITION,
                format!("attachment; filename=\"{name}\""),
            ),
        ],
        Body::from_stream(stream),
    )
        .into_response();
    if !hooks.is_empty() {
        let timings = serde_json::to_string(&timings).unwrap_or_default();
        // A hook's name may hold what a header cannot; the timings are then not told.
        if let Ok(value) = HeaderValue::from_str(&timings) {
            response.headers_mut().insert("x-hook-timings", value);
        }
    }
    Ok(response)
}

/// What the query asks for: `format` (only `tar.gz`), `empty_directories` (`true` or `false`).
fn pack_options(query: &[(String, String)]) -> Result<PackOptions, ApiError> {
    let mut options = PackOptions::default();
    for (name, value) in query {
        let rule = match (name.as_str(), value.as_str()) {
            ("format", "tar.gz") => continue,
            ("format", _) => "the only format is `tar.gz`",
            ("empty_directories", "true") => {
                options.empty_directories = true;
                continue;
            }
            ("empty_directories", "false") => {
                options.empty_directories = false;
                continue;
            }
            ("empty_directories", _) => "it is `true` or `false`",
            _ => continue,
        };
        let loc: Vec<Value> = vec![json!("query"), json!(name)];
        return Err(ApiError::invalid(&InvalidItem::value(
            loc,
            rule,
            json!(value),
        )));
    }
    Ok(options)
}
