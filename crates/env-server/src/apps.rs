//! `/apps`: which MCP servers run (`spec/environment.md` §5).

use axum::Json;
use axum::extract::{Request, State};
use formats::apps::{AppsApplied, AppsConfig};
use http::StatusCode;
use mcp_gateway::{ApplyError, AppsState};

use crate::coordinator::CoordinatorConfig;
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
    let coordinator = environment.coordinator.read(&config)?;
    // It goes on when its caller goes away.
    let applied = tokio::spawn(apply(environment, config, coordinator)).await;
    applied
        .map_err(|error| ApiError::internal(format!("applying the configuration failed: {error}")))?
        .map(Json)
}

async fn apply(
    environment: Environment,
    config: AppsConfig,
    coordinator: Option<CoordinatorConfig>,
) -> Result<AppsApplied, ApiError> {
    let started = std::time::Instant::now();
    let refused = |error: ApplyError| {
        tracing::warn!(%error, owner = %error.owner(), "the configuration is not applied");
        let status =
            StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ApiError::new(status, error.detail())
    };
    let limit = environment.settings.gateway.apply_queue_timeout;
    let _configuring = tokio::time::timeout(limit, environment.configuring.lock())
        .await
        .map_err(|_| refused(ApplyError::Busy(started.elapsed())))?;
    let gateway = &environment.gateway;
    let given = config.coordinator_config.clone();
    let mut applied = gateway.apply(config).await.map_err(refused)?;
    let is_new = environment
        .coordinator
        .configure(coordinator, given.as_ref(), gateway)
        .await
        .map_err(|error| {
            tracing::error!(%error, "the coordinator does not start");
            ApiError::internal(error.to_string())
        })?;
    // Exactly 0 says that nothing had to change.
    if is_new || applied.duration_ms > 0.0 {
        applied.duration_ms = started.elapsed().as_secs_f64() * 1000.0;
    }
    tracing::info!(servers = ?applied.servers, milliseconds = applied.duration_ms, "the configuration is applied");
    Ok(applied)
}

/// `GET /apps`: the configuration without its secrets, and how each server is.
pub(crate) async fn state(State(environment): State<Environment>) -> Json<AppsState> {
    Json(environment.gateway.state())
}
