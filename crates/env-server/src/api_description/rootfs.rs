//! The routes of what changed on the machine.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{ErrorBody, answer};
use crate::rootfs::Baseline;
use crate::s3::{RootfsCapture, RootfsCaptured};

/// Adds the paths.
pub(super) fn add_paths(schemas: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let no_baseline = answer::<ErrorBody>(schemas, "There is no baseline");
    let busy = answer::<ErrorBody>(schemas, "Too many transfers");
    paths.insert(
        "/data/rootfs/baseline".to_owned(),
        json!({"post": {
            "summary": "Changes of the machine count from now on",
            "operationId": "rootfs_baseline",
            "responses": {
                "200": answer::<Baseline>(schemas, "The marker is written"),
                "500": answer::<ErrorBody>(schemas, "The marker cannot be written"),
            },
        }}),
    );
    paths.insert(
        "/data/rootfs/layer".to_owned(),
        json!({"post": {
            "summary": "What changed on the machine since the baseline, the world left out, as a layer",
            "operationId": "rootfs_layer",
            "responses": {
                "200": {
                    "description": "A tar.gz with paths relative to the root; a failure in the middle \
                        breaks the transfer",
                    "content": {"application/gzip": {}},
                },
                "400": no_baseline.clone(),
                "503": busy.clone(),
            },
        }}),
    );
    paths.insert(
        "/data/rootfs/capture".to_owned(),
        json!({"post": {
            "summary": "The same, as an object of S3",
            "operationId": "rootfs_capture",
            "requestBody": {
                "required": true,
                "content": {"application/json": {"schema": schemas.subschema_for::<RootfsCapture>()}},
            },
            "responses": {
                "200": answer::<RootfsCaptured>(schemas, "The layer is in S3"),
                "400": answer::<ErrorBody>(schemas, "There is no baseline, or the name breaks a rule"),
                "422": answer::<ErrorBody>(schemas, "The body is not valid"),
                "500": answer::<ErrorBody>(schemas, "A file cannot be read, the layer is too large, or S3 failed"),
                "503": busy,
            },
        }}),
    );
}
