//! Results and errors in the form that MCP 2026-07-28 asks for.

use http::StatusCode;
use serde_json::json;

use super::envelope::VERSION;
use super::questions::Questions;
use crate::endpoint::{VERSIONS, initialize};
use crate::generation::Generation;
use crate::jsonrpc::{
    self, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, Outcome, PARSE_ERROR,
    RESOURCE_NOT_FOUND, Raw, RawObject, RpcError,
};

/// A request needs a capability that its client did not name.
const MISSING_CAPABILITY: i64 = -32021;
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// Results that say how long they may be kept.
const CACHEABLE: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The revisions that the endpoint serves.
pub(super) fn supported() -> Vec<&'static str> {
    VERSIONS.into_iter().chain([VERSION]).collect()
}

/// The result of `server/discover`.
pub(super) fn discovered(generation: &Generation) -> Raw {
    let mut result = RawObject::default();
    result.set("supportedVersions", jsonrpc::raw(&supported()));
    let capabilities = initialize::capabilities(generation);
    result.set("capabilities", jsonrpc::raw(&capabilities));
    signed(result)
}

/// The outcome of a request as its client gets it.
///
/// What the server said stays; added is only what it left out and clients rely on: the kind of the
/// result, and that nothing may be kept (a server of the handshake era says when a list changes).
pub(super) fn complete(method: &str, outcome: Outcome, questions: Option<&Questions>) -> Outcome {
    match outcome {
        Ok(result) => {
            let Ok(mut object) = RawObject::parse(Some(&result)) else {
                return Ok(result);
            };
            object.set("resultType", jsonrpc::raw("complete"));
            if CACHEABLE.contains(&method) {
                for (key, value) in [("ttlMs", json!(0)), ("cacheScope", json!("private"))] {
                    if object.get(key).is_none() {
                        object.set(key, jsonrpc::raw(&value));
                    }
                }
            }
            Ok(object.to_raw())
        }
        Err(error) => Err(match questions.and_then(Questions::missing) {
            Some(capability) => RpcError::with_data(
                MISSING_CAPABILITY,
                format!(
                    "the client did not declare `{capability}`, which the request needed: {}",
                    error.message()
                ),
                &json!({"requiredCapabilities": {capability: {}}}),
            ),
            None => error,
        }),
    }
}

/// The result that asks the client to come back with answers.
pub(super) fn input_required(requests: Raw, state: &str) -> Raw {
    let mut result = RawObject::default();
    result.set("resultType", jsonrpc::raw("input_required"));
    result.set("inputRequests", requests);
    result.set("requestState", jsonrpc::raw(state));
    signed(result)
}

/// The error of a resource that does not exist, which this revision counts as a wrong parameter.
pub(super) fn resource_error(error: RpcError, uri: Option<&str>) -> RpcError {
    if error.code() != Some(RESOURCE_NOT_FOUND) {
        return error;
    }
    let Ok(mut object) = RawObject::parse(Some(&error.0)) else {
        return error;
    };
    object.set("code", jsonrpc::raw(&INVALID_PARAMS));
    if object.get("data").is_none()
        && let Some(uri) = uri
    {
        object.set("data", jsonrpc::raw(&json!({"uri": uri})));
    }
    RpcError(object.to_raw())
}

/// A result of the gateway's own, which names it.
pub(super) fn signed(mut result: RawObject) -> Raw {
    let mut meta = result.read::<RawObject>("_meta").unwrap_or_default();
    meta.set(SERVER_INFO_KEY, jsonrpc::raw(&initialize::server_info()));
    result.set("_meta", meta.to_raw());
    result.to_raw()
}

/// The HTTP status of an outcome that is the whole answer.
pub(super) fn status(outcome: &Outcome) -> StatusCode {
    match outcome.as_ref().err().and_then(RpcError::code) {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | MISSING_CAPABILITY) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

/// The list that a `…/list_changed` notification is about, as a subscription names it.
pub(super) fn filter_key(method: &str) -> Option<&'static str> {
    match method {
        "notifications/tools/list_changed" => Some("toolsListChanged"),
        "notifications/prompts/list_changed" => Some("promptsListChanged"),
        "notifications/resources/list_changed" => Some("resourcesListChanged"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn raw(text: &str) -> Raw {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_a_server_says_stays_and_only_the_rest_is_added() {
        let result = raw(r#"{"z":1.0,"contents":[],"ttlMs":7,"_meta":{"k":[1]}}"#);
        let full = complete("resources/read", Ok(result), None).unwrap();
        let value: Value = serde_json::from_str(full.get()).unwrap();
        assert!(
            full.get()
                .starts_with(r#"{"z":1.0,"contents":[],"ttlMs":7,"_meta":{"k":[1]},"#)
        );
        assert_eq!(
            (&value["resultType"], &value["cacheScope"]),
            (&json!("complete"), &json!("private"))
        );
        let call = complete("tools/call", Ok(raw(r#"{"content":[]}"#)), None).unwrap();
        assert!(!call.get().contains("ttlMs"), "{call}");
    }

    #[test]
    fn a_resource_that_is_not_there_is_a_wrong_parameter() {
        let own = RpcError(raw(r#"{"code":-32002,"message":"gone","data":{"why":1}}"#));
        let error = resource_error(own, Some("x://y"));
        assert_eq!(
            error.0.get(),
            r#"{"code":-32602,"message":"gone","data":{"why":1}}"#
        );
        let bare = resource_error(RpcError::new(RESOURCE_NOT_FOUND, "gone"), Some("x://y"));
        assert!(
            bare.0.get().contains(r#""data":{"uri":"x://y"}"#),
            "{}",
            bare.0
        );
        assert_eq!(status(&Err(bare)), StatusCode::BAD_REQUEST);
        let other = resource_error(RpcError::new(-32050, "own"), None);
        assert_eq!(other.code(), Some(-32050));
    }
}
