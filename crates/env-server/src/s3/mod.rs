//! Worlds in and out of S3 (`spec/environment.md` §13, §15): any S3-compatible service.

mod capture;
mod client;
mod jobs;
mod populate;
mod routes;
mod snapshot;
mod upload;

pub(crate) use capture::{RootfsCapture, RootfsCaptured};
pub(crate) use jobs::{JobList, JobStarted, JobStatus, Jobs};
pub(crate) use populate::{S3Populate, S3Populated};
pub(crate) use routes::{
    cancel_populate, cancel_snapshot, capture, list_populates, list_snapshots, populate,
    populate_status, snapshot, snapshot_status, start_populate, start_snapshot,
};
pub(crate) use snapshot::{S3Snapshot, S3Snapshotted};
