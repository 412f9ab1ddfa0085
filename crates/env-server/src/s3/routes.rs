//! The routes: the blocking forms, and the same in the background.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};

use super::capture::{RootfsCapture, RootfsCaptured};
use super::client;
use super::jobs::{JobList, JobStarted, JobStatus, Progress};
use super::populate::{S3Populate, S3Populated};
use super::snapshot::{S3Snapshot, S3Snapshotted};
use crate::environment::Environment;
use crate::error::ApiError;
use crate::json_body;

async fn populate_body(
    environment: &Environment,
    request: Request,
) -> Result<S3Populate, ApiError> {
    let body: S3Populate =
        json_body::required(request, environment.settings.max_json_bytes).await?;
    body.check(environment)?;
    Ok(body)
}

async fn snapshot_body(
    environment: &Environment,
    request: Request,
) -> Result<S3Snapshot, ApiError> {
    let body: S3Snapshot =
        json_body::required(request, environment.settings.max_json_bytes).await?;
    client::check(body.s3_credentials.as_ref())?;
    Ok(body)
}

/// `POST /data/rootfs/capture`.
pub(crate) async fn capture(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<RootfsCaptured>, ApiError> {
    let body: RootfsCapture =
        json_body::required(request, environment.settings.max_json_bytes).await?;
    client::check(body.s3_credentials.as_ref())?;
    Box::pin(body.run(environment)).await.map(Json)
}

/// `POST /data/populate/s3`.
pub(crate) async fn populate(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<S3Populated>, ApiError> {
    let body = populate_body(&environment, request).await?;
    let progress = Arc::new(Progress::default());
    Box::pin(body.run(environment, progress)).await.map(Json)
}

/// `POST /data/populate/s3/start`.
pub(crate) async fn start_populate(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<JobStarted>, ApiError> {
    let body = populate_body(&environment, request).await?;
    let jobs = Arc::clone(&environment.populate_jobs);
    Ok(Json(jobs.start(|progress| body.run(environment, progress))))
}

/// `GET /data/populate/s3/status/{job_id}`.
pub(crate) async fn populate_status(
    State(environment): State<Environment>,
    Path(id): Path<String>,
) -> Result<Json<JobStatus>, ApiError> {
    environment.populate_jobs.status(&id).map(Json)
}

/// `DELETE /data/populate/s3/status/{job_id}`.
pub(crate) async fn cancel_populate(
    State(environment): State<Environment>,
    Path(id): Path<String>,
) -> Result<Json<JobStatus>, ApiError> {
    environment.populate_jobs.cancel(&id).map(Json)
}

/// `GET /data/populate/s3/status`.
pub(crate) async fn list_populates(State(environment): State<Environment>) -> Json<JobList> {
    Json(environment.populate_jobs.list())
}

/// `POST /data/snapshot/s3`.
pub(crate) async fn snapshot(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<S3Snapshotted>, ApiError> {
    let body = snapshot_body(&environment, request).await?;
    let progress = Arc::new(Progress::default());
    Box::pin(body.run(environment, progress)).await.map(Json)
}

/// `POST /data/snapshot/s3/start`.
pub(crate) async fn start_snapshot(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Json<JobStarted>, ApiError> {
    let body = snapshot_body(&environment, request).await?;
    let jobs = Arc::clone(&environment.snapshot_jobs);
    Ok(Json(jobs.start(|progress| body.run(environment, progress))))
}

/// `GET /data/snapshot/s3/status/{job_id}`.
pub(crate) async fn snapshot_status(
    State(environment): State<Environment>,
    Path(id): Path<String>,
) -> Result<Json<JobStatus>, ApiError> {
    environment.snapshot_jobs.status(&id).map(Json)
}

/// `DELETE /data/snapshot/s3/status/{job_id}`.
pub(crate) async fn cancel_snapshot(
    State(environment): State<Environment>,
    Path(id): Path<String>,
) -> Result<Json<JobStatus>, ApiError> {
    environment.snapshot_jobs.cancel(&id).map(Json)
}

/// `GET /data/snapshot/s3/status`.
pub(crate) async fn list_snapshots(State(environment): State<Environment>) -> Json<JobList> {
    Json(environment.snapshot_jobs.list())
}
