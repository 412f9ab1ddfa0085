//! The routes between the world and S3.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::{ErrorBody, answer};
use crate::s3::{
    JobList, JobStarted, JobStatus, S3Populate, S3Populated, S3Snapshot, S3Snapshotted,
};

/// Adds the paths of both directions.
pub(super) fn add_paths(schemas: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
    let body = json!({
        "required": true,
        "content": {"application/json": {"schema": schemas.subschema_for::<S3Populate>()}},
    });
    let done = answer::<S3Populated>(schemas, "Everything is in place");
    let populate = Direction {
        path: "/data/populate/s3",
        name: "populate",
        summary: "Fetch objects of S3 into the world: all of them, or nothing",
        body,
        done,
    };
    populate.add(schemas, paths);
    let body = json!({
        "required": true,
        "content": {"application/json": {"schema": schemas.subschema_for::<S3Snapshot>()}},
    });
    let done = answer::<S3Snapshotted>(schemas, "Everything is in S3");
    let snapshot = Direction {
        path: "/data/snapshot/s3",
        name: "snapshot",
        summary: "Put the world into S3: an object for each file, or one archive",
        body,
        done,
    };
    snapshot.add(schemas, paths);
}

struct Direction {
    path: &'static str,
    name: &'static str,
    summary: &'static str,
    body: Value,
    done: Value,
}

impl Direction {
    fn add(self, schemas: &mut SchemaGenerator, paths: &mut Map<String, Value>) {
        let Self {
            path,
            name,
            summary,
            body,
            done,
        } = self;
        let invalid = answer::<ErrorBody>(schemas, "The body is not valid");
        let unknown = answer::<ErrorBody>(schemas, "There is no such job");
        let status = answer::<JobStatus>(schemas, "How the job is");
        paths.insert(
            path.to_owned(),
            json!({"post": {
                "summary": summary,
                "operationId": format!("{name}_s3"),
                "requestBody": body.clone(),
                "responses": {
                    "200": done,
                    "400": answer::<ErrorBody>(schemas, "An address, a name or a file breaks a rule"),
                    "409": answer::<ErrorBody>(schemas, "What is in the world does not fit"),
                    "413": answer::<ErrorBody>(schemas, "The objects are larger than a limit"),
                    "422": invalid.clone(),
                    "500": answer::<ErrorBody>(schemas, "S3, the disk or a hook failed"),
                    "503": answer::<ErrorBody>(schemas, "Too many transfers"),
                },
            }}),
        );
        paths.insert(
            format!("{path}/start"),
            json!({"post": {
                "summary": format!("The same in the background ({name})"),
                "operationId": format!("start_{name}_s3"),
                "requestBody": body,
                "responses": {
                    "200": answer::<JobStarted>(schemas, "The job runs"),
                    "422": invalid,
                },
            }}),
        );
        paths.insert(
            format!("{path}/status"),
            json!({"get": {
                "summary": format!("All {name} jobs that are remembered, in the order of their start"),
                "operationId": format!("list_{name}_s3"),
                "responses": {"200": answer::<JobList>(schemas, "The jobs")},
            }}),
        );
        let parameters = json!([{
            "name": "job_id", "in": "path", "required": true, "schema": {"type": "string"},
        }]);
        paths.insert(
            format!("{path}/status/{{job_id}}"),
            json!({
                "get": {
                    "summary": format!("How a {name} job is"),
                    "operationId": format!("{name}_s3_status"),
                    "parameters": parameters.clone(),
                    "responses": {"200": status.clone(), "404": unknown.clone()},
                },
                "delete": {
                    "summary": format!("Ask a {name} job to end; its status becomes `error` when it has"),
                    "operationId": format!("cancel_{name}_s3"),
                    "parameters": parameters,
                    "responses": {"200": status, "404": unknown},
                },
            }),
        );
    }
}
