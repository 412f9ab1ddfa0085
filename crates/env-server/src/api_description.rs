//! `/openapi.json` and `/docs`: the interface described from the types that serve it.

mod markdown;
mod rootfs;
mod s3;

use axum::Json;
use axum::response::Html;
use formats::apps::{AppsApplied, AppsConfig};
use mcp_gateway::AppsState;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::data::{Populated, SnapshotRequest};
use crate::rest;

/// A page without anything from elsewhere that shows `/openapi.json`.
pub(crate) async fn page() -> Html<&'static str> {
    Html(include_str!("docs.html"))
}

/// The OpenAPI 3.1 description.
pub(crate) async fn openapi() -> Json<Value> {
    Json(description())
}

/// The OpenAPI 3.1 description of the interface: what `GET /openapi.json` answers.
#[must_use]
pub fn openapi_document() -> Value {
    description()
}

/// The same as a Markdown page.
#[must_use]
pub fn openapi_markdown() -> String {
    markdown::page(&description())
}

/// What an error looks like.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ErrorBody {
    /// A text; for 422 a list of objects with `type`, `loc`, `msg`, `input`; for 503 of `/apps` an
    /// object that names the servers that are not ready.
    detail: Value,
}

fn description() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let apps = apps_path(&mut schemas);
    let populate = populate_path(&mut schemas);
    let snapshot = snapshot_path(&mut schemas);
    let mut description = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Archipelago Environment Gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "One world of files and MCP servers. Agents connect to `/mcp/` (MCP over \
                streamable HTTP), which is not described here.",
        },
        "paths": {
            "/health": {"get": {
                "summary": "Whether the process answers",
                "operationId": "health",
                "responses": {"200": text_answer("The two letters OK")},
            }},
            "/": {"get": {
                "summary": "What this is",
                "operationId": "banner",
                "responses": {"200": text_answer("One line")},
            }},
            "/metrics": {"get": {
                "summary": "What the environment did, in the text of Prometheus",
                "operationId": "metrics",
                "responses": {"200": text_answer("Lines of name, labels and number")},
            }},
            "/apps": apps,
            "/rest/{service}/{path}": rest_path(&mut schemas),
            "/data/populate": populate,
            "/data/snapshot": snapshot,
        },
    });
    if let Some(paths) = description["paths"].as_object_mut() {
        s3::add_paths(&mut schemas, paths);
        rootfs::add_paths(&mut schemas, paths);
    }
    description["components"] = json!({"schemas": schemas.take_definitions(true)});
    description
}

fn apps_path(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "get": {
            "summary": "The configuration without its secrets, and how each MCP server is",
            "operationId": "apps_state",
            "responses": {"200": answer::<AppsState>(schemas, "The state")},
        },
        "post": {
            "summary": "Configure the MCP servers, or change them while they run",
            "operationId": "configure_apps",
            "requestBody": {
                "required": true,
                "content": {"application/json": {"schema": schemas.subschema_for::<AppsConfig>()}},
            },
            "responses": {
                "200": answer::<AppsApplied>(schemas, "The servers are ready"),
                "400": answer::<ErrorBody>(schemas, "A server's entry cannot be used; nothing has changed"),
                "422": answer::<ErrorBody>(schemas, "The body is not valid"),
                "500": answer::<ErrorBody>(schemas, "The servers are ready, but the coordinator cannot start"),
                "503": answer::<ErrorBody>(schemas, "A server did not get ready; nothing has changed"),
            },
        },
    })
}

/// All methods of the proxy, which are one and the same.
fn rest_path(schemas: &mut SchemaGenerator) -> Value {
    let parameter = |name: &str, description: &str| {
        json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": description,
            "schema": {"type": "string"},
        })
    };
    let mut operation = json!({
        "summary": "Pass a request on to an application server, and its answer back, as they are",
        "parameters": [
            parameter("service", "The name of the server in the configuration"),
            parameter("path", "The path on the host of its `url`; the query follows as it came"),
        ],
        "responses": {
            "404": answer::<ErrorBody>(schemas, "There is no server of that name with a `url`"),
            "502": answer::<ErrorBody>(schemas, "The server cannot be reached"),
            "504": answer::<ErrorBody>(schemas, "The server did not answer in time"),
            "default": {"description": "The answer of the server"},
        },
    });
    let methods = rest::METHODS.split(", ").map(|method| {
        let method = method.to_lowercase();
        operation["operationId"] = json!(format!("rest_{method}"));
        (method, operation.clone())
    });
    Value::Object(methods.collect())
}

fn populate_path(schemas: &mut SchemaGenerator) -> Value {
    json!({"post": {
        "summary": "Put an archive into the world: all of it, or nothing",
        "operationId": "populate",
        "parameters": [{
            "name": "subsystem",
            "in": "query",
            "required": false,
            "description": "`filesystem`, `.apps_data`, or a directory below one of them",
            "schema": {"type": "string", "default": "filesystem"},
        }],
        "requestBody": {
            "required": true,
            "content": {"multipart/form-data": {"schema": {
                "type": "object",
                "required": ["archive"],
                "properties": {
                    "archive": {
                        "type": "string",
                        "contentMediaType": "application/gzip",
                        "description": "A tar.gz or tar.zst with paths relative to the subsystem",
                    },
                    "post_populate_hooks": {
                        "type": "string",
                        "description": "JSON: commands that run when the data is in place \
                            (the objects of `pre_snapshot_hooks`)",
                    },
                },
            }}},
        },
        "responses": {
            "200": answer::<Populated>(schemas, "The archive is in place"),
            "400": answer::<ErrorBody>(schemas, "The subsystem, the hooks or the archive break a rule"),
            "409": answer::<ErrorBody>(schemas, "What is in the world does not fit"),
            "413": answer::<ErrorBody>(schemas, "The archive is larger than a limit"),
            "422": answer::<ErrorBody>(schemas, "There is no file `archive`"),
            "500": answer::<ErrorBody>(schemas, "The disk or a hook failed"),
            "503": answer::<ErrorBody>(schemas, "Too many transfers"),
        },
    }})
}

fn snapshot_path(schemas: &mut SchemaGenerator) -> Value {
    json!({"post": {
        "summary": "The world as an archive",
        "operationId": "snapshot",
        "parameters": [{
            "name": "format",
            "in": "query",
            "required": false,
            "schema": {"type": "string", "enum": ["tar.gz", "tar.zst", "zip"], "default": "tar.gz"},
        }, {
            "name": "empty_directories",
            "in": "query",
            "required": false,
            "description": "Whether directories without content are members; unless given they are, but \
                not in a tar.gz",
            "schema": {"type": "boolean"},
        }, {
            "name": "reproducible",
            "in": "query",
            "required": false,
            "description": "Whether the same world gives the same bytes: members in the order of their \
                names. Otherwise they come as the disk has them",
            "schema": {"type": "boolean", "default": true},
        }],
        "requestBody": {
            "required": false,
            "content": {"application/json": {"schema": schemas.subschema_for::<SnapshotRequest>()}},
        },
        "responses": {
            "200": {
                "description": "An archive with `filesystem/…` and `.apps_data/…`; a failure in the \
                    middle breaks the transfer",
                "content": {"application/gzip": {}, "application/zstd": {}, "application/zip": {}},
            },
            "422": answer::<ErrorBody>(schemas, "The body is not valid"),
            "500": answer::<ErrorBody>(schemas, "A hook failed"),
            "503": answer::<ErrorBody>(schemas, "Too many transfers"),
        },
    }})
}

fn answer<T: JsonSchema>(schemas: &mut SchemaGenerator, description: &str) -> Value {
    json!({
        "description": description,
        "content": {"application/json": {"schema": schemas.subschema_for::<T>()}},
    })
}

fn text_answer(description: &str) -> Value {
    json!({"description": description, "content": {"text/plain": {"schema": {"type": "string"}}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use crate::routes::METHODS;

    #[test]
    fn every_route_is_described_and_every_reference_leads_somewhere() {
        let description = description();
        let undescribed = ["/docs", "/redoc", "/openapi.json"];
        let served: BTreeSet<(String, String)> = METHODS
            .into_iter()
            .chain([("/rest/{service}/{path}", rest::METHODS)])
            .filter(|(path, _)| !undescribed.contains(path))
            .flat_map(|(path, methods)| {
                let methods = methods.split(", ").map(str::to_lowercase);
                methods.map(|method| (path.to_owned(), method))
            })
            .collect();
        let paths = description["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(|method| (path.clone(), method.clone()))
            })
            .collect();
        assert_eq!(described, served);
        let text = description.to_string();
        let references: Vec<&str> = text
            .split("\"$ref\":\"#")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert!(!references.is_empty());
        for reference in references {
            assert!(description.pointer(reference).is_some(), "{reference}");
        }
    }
}
