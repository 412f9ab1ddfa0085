//! The routes.

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use http::{HeaderValue, StatusCode};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};

use crate::conventions::{no_route, route};
use crate::environment::Environment;
use crate::signing::signed;
use crate::{api_description, apps, data, guard, metrics, rest, rootfs, s3};

/// Every path but `/mcp`, with its methods as the header `Allow` names them.
pub(crate) const METHODS: [(&str, &str); 20] = [
    ("/health", "GET"),
    ("/", "GET"),
    ("/docs", "GET"),
    ("/redoc", "GET"),
    ("/openapi.json", "GET"),
    ("/metrics", "GET"),
    ("/apps", "GET, POST"),
    ("/data/populate", "POST"),
    ("/data/populate/s3", "POST"),
    ("/data/populate/s3/start", "POST"),
    ("/data/populate/s3/status", "GET"),
    ("/data/populate/s3/status/{job_id}", "DELETE, GET"),
    ("/data/snapshot", "POST"),
    ("/data/snapshot/s3", "POST"),
    ("/data/snapshot/s3/start", "POST"),
    ("/data/snapshot/s3/status", "GET"),
    ("/data/snapshot/s3/status/{job_id}", "DELETE, GET"),
    ("/data/rootfs/baseline", "POST"),
    ("/data/rootfs/capture", "POST"),
    ("/data/rootfs/layer", "POST"),
];

/// Characters of a request's id that are logged; a client may send any.
const MAX_LOGGED_ID: usize = 128;

pub(crate) fn router(environment: &Environment) -> Router {
    Router::new()
        .route("/health", get(|| async { "OK" }))
        .route("/", get(|| async { "Archipelago Environment" }))
        .route("/docs", get(api_description::page))
        .route("/redoc", get(api_description::page))
        .route("/openapi.json", get(api_description::openapi))
        .route("/metrics", get(metrics::page))
        .route("/rest/{*path}", any(rest::proxy))
        .route("/apps", get(apps::state).post(apps::configure))
        .route("/data/populate", post(data::populate))
        .route("/data/populate/s3", post(s3::populate))
        .route("/data/populate/s3/start", post(s3::start_populate))
        .route("/data/populate/s3/status", get(s3::list_populates))
        .route(
            "/data/populate/s3/status/{job_id}",
            get(s3::populate_status).delete(s3::cancel_populate),
        )
        .route("/data/snapshot", post(data::snapshot))
        .route("/data/snapshot/s3", post(s3::snapshot))
        .route("/data/snapshot/s3/start", post(s3::start_snapshot))
        .route("/data/snapshot/s3/status", get(s3::list_snapshots))
        .route(
            "/data/snapshot/s3/status/{job_id}",
            get(s3::snapshot_status).delete(s3::cancel_snapshot),
        )
        .route("/data/rootfs/baseline", post(rootfs::baseline))
        .route("/data/rootfs/capture", post(s3::capture))
        .route("/data/rootfs/layer", post(rootfs::layer))
        // Bodies are counted where they are read.
        .layer(DefaultBodyLimit::disable())
        .with_state(environment.clone())
        .merge(environment.gateway.router())
        // The first is the outermost. Together, since each layer of its own costs every request.
        .layer((
            SetRequestIdLayer::x_request_id(RandomId),
            PropagateRequestIdLayer::x_request_id(),
            from_fn_with_state(environment.clone(), log),
            CatchPanicLayer::custom(panicked),
            from_fn_with_state(environment.clone(), admit),
        ))
}

/// Ids that tell requests apart. They are no secrets, so they cost no call of the system as
/// `MakeRequestUuid` does.
#[derive(Debug, Clone, Copy)]
struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &http::Request<B>) -> Option<RequestId> {
        let bytes = fastrand::u128(..).to_ne_bytes();
        let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
        HeaderValue::from_str(&id.to_string())
            .ok()
            .map(RequestId::new)
    }
}

/// Lets a request through that may be made and has a route.
async fn admit(
    State(environment): State<Environment>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let settings = &environment.settings;
    if let Err(refusal) = guard::check(settings, &request) {
        return refusal.into_response();
    }
    let request = match signed(settings, request).await {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    match no_route(&request) {
        Some(answer) => answer,
        None => next.run(request).await,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature tower-http asks for"
)]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(message = message.unwrap_or("unknown"), "a request panicked");
    (StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error").into_response()
}

/// One line for each request, when its answer begins. Calls of the agent are many and have their own
/// record, so they are told at a lower level.
async fn log(
    State(environment): State<Environment>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    let started = std::time::Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let id = request
        .headers()
        .get("x-request-id")
        .and_then(|id| id.to_str().ok())
        .unwrap_or_default()
        .chars()
        .take(MAX_LOGGED_ID)
        .collect::<String>();
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let took = started.elapsed();
    let milliseconds = took.as_millis();
    environment
        .metrics
        .request(&method, route(&path), status, took);
    if matches!(path.as_str(), "/mcp" | "/mcp/" | "/health") {
        tracing::debug!(%method, path, status, milliseconds, id, "answered");
    } else {
        tracing::info!(%method, path, status, milliseconds, id, "answered");
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_without_its_message() {
        let app = Router::new()
            .route(
                "/",
                get(async || -> &'static str { panic!("a secret of the code") }),
            )
            .layer(CatchPanicLayer::custom(panicked));
        let answer = app.oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let kind = &answer.headers()["content-type"];
        assert_eq!(kind, "text/plain; charset=utf-8");
        let body = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert_eq!(body, "Internal Server Error");
    }
}
