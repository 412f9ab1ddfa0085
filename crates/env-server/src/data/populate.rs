//! `POST /data/populate` (`spec/environment.md` §12).

use std::sync::PoisonError;
use std::time::Instant;

use axum::Json;
use axum::extract::multipart::MultipartRejection;
use axum::extract::{Multipart, Query, State};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use snapshot::archive::{Fault, Staged, UnpackError, UnpackReport};

use super::hooks::{self, Hook, HookTiming};
use super::{permit, upload};
use crate::environment::Environment;
use crate::error::ApiError;
use crate::json_body;
use crate::metrics::Direction;
use crate::subsystem;

/// What was put into the world.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Populated {
    /// Members of the archive, directories and links included.
    pub(crate) objects_added: u64,
    /// The subsystem as it was given.
    pub(crate) subsystem: String,
    /// Bytes of all files.
    pub(crate) extracted_bytes: u64,
    /// The hooks in the order of the request.
    pub(crate) hook_timings: Vec<HookTiming>,
}

/// Receives an archive and puts all of it into the world, or nothing.
pub(crate) async fn populate(
    State(environment): State<Environment>,
    Query(query): Query<Vec<(String, String)>>,
    multipart: Result<Multipart, MultipartRejection>,
) -> Result<Json<Populated>, ApiError> {
    let multipart = multipart.map_err(|_| upload::no_archive())?;
    let _permit = permit(&environment)?;
    let started = Instant::now();
    let settings = &environment.settings;
    let given = query
        .iter()
        .rev()
        .find_map(|(name, value)| (name == "subsystem").then_some(value.as_str()))
        .unwrap_or(settings.filesystem.name.as_str());
    let place = subsystem::place(settings, given);
    let form = upload::receive(multipart, place.as_ref().ok(), &settings.data).await?;
    // Everything is judged before anything changes, in the order of §12.2.
    let hooks = parse_hooks(form.hooks.as_deref().unwrap_or_default())?;
    place.map_err(ApiError::bad_request)?;
    let staged = match form.archive {
        Some(staged) => staged.map_err(|error| unpack_error(&error))?,
        None => return Err(upload::no_archive()),
    };
    let report = commit(&environment, staged).await?;
    environment.metrics.moved(
        Direction::Populate,
        "client",
        report.members,
        report.bytes,
        started.elapsed(),
    );
    let hook_timings = hooks::run(&hooks, &settings.data).await?;
    tracing::info!(
        subsystem = given,
        objects = report.members,
        bytes = report.bytes,
        "populated"
    );
    Ok(Json(Populated {
        objects_added: report.members,
        subsystem: given.to_owned(),
        extracted_bytes: report.bytes,
        hook_timings,
    }))
}

/// Moves what was staged into place.
pub(crate) async fn commit(
    environment: &Environment,
    staged: Staged,
) -> Result<UnpackReport, ApiError> {
    let environment = environment.clone();
    tokio::task::spawn_blocking(move || {
        let _placing = environment
            .placing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        staged.commit()
    })
    .await
    .map_err(|error| ApiError::internal(format!("unpacking failed: {error}")))?
    .map_err(|error| unpack_error(&error))
}

/// The reference answers all of these with 500 and leaves half a world; here nothing has changed.
pub(crate) fn unpack_error(error: &UnpackError) -> ApiError {
    let status = match error.fault() {
        // The subsystem itself breaks a rule.
        _ if matches!(error, UnpackError::Target { .. }) => StatusCode::BAD_REQUEST,
        Fault::Limit => StatusCode::PAYLOAD_TOO_LARGE,
        Fault::Target => StatusCode::CONFLICT,
        Fault::Disk => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    tracing::warn!(%error, status = status.as_u16(), "an archive is refused");
    ApiError::new(status, error.to_string())
}

/// The hooks of a form field; none where it is empty.
fn parse_hooks(text: &str) -> Result<Vec<Hook>, ApiError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let refuse =
        |reason: &str| ApiError::bad_request(format!("Invalid post_populate_hooks JSON: {reason}"));
    let value: Value = serde_json::from_str(text).map_err(|error| refuse(&error.to_string()))?;
    json_body::parse(&value).map_err(|item| {
        let place: Vec<String> = item.loc.iter().skip(1).map(Value::to_string).collect();
        refuse(&format!("{} (at {})", item.msg, place.join(".")))
    })
}

#[cfg(test)]
mod tests {
    use super::parse_hooks;

    #[test]
    fn hooks_are_an_array_of_objects() {
        assert_eq!(parse_hooks("").unwrap().len(), 0);
        assert_eq!(parse_hooks("[]").unwrap().len(), 0);
        let hooks = parse_hooks(r#"[{"name": "a", "command": "true", "extra": 1}]"#).unwrap();
        assert_eq!(
            (hooks[0].name.as_str(), hooks[0].env.is_none()),
            ("a", true)
        );
        for wrong in [
            "{",
            "{}",
            "[1]",
            r#"[{"name": "a"}]"#,
            r#"[{"name": "a", "command": 1}]"#,
        ] {
            assert!(parse_hooks(wrong).is_err(), "{wrong}");
        }
    }
}
