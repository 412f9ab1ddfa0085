//! `/apps`: which MCP servers run (`spec/environment.md` §5).

use axum::Json;
use axum::extract::{Request, State};
use formats::apps::{AppsApplied, AppsConfig};
use http::StatusCode;
use mcp_gateway::AppsState;

use crate::environment::Environment;
use crate::error::ApiError;
use crate::json_body;

/// `POST /apps`: configures the servers, or changes them while they run.
pub(crate) async fn configure(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<AppsApplied>, ApiError> {
    let config: AppsConfig =
        json_body::required(request, environment.settings.max_json_bytes).await?;
    let applied = environment.gateway.apply(config).await.map_err(|error| {
        tracing::warn!(%error, owner = %error.owner(), "the configuration is not applied");
        let status =
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ApiError::new(status, error.detail())
    })?;
    tracing::info!(servers = ?applied.servers, milliseconds = applied.duration_ms, "the configuration is applied");
    Ok(Json(applied))
}

/// `GET /apps`: the configuration without its secrets, and how each server is.
pub(crate) async fn state(State(environment): State<Environment>) -> Json<AppsState> {
    Json(environment.gateway.state())
}
