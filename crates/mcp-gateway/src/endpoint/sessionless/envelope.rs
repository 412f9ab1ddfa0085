//! What each request of a client without a session carries: its revision, its capabilities, and
//! the headers that repeat a part of the body (MCP 2026-07-28, "Per-request protocol fields" and
//! "Standard request headers").

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::{NAME_HEADER, encoded_header, results};
use crate::endpoint::session::log_rank;
use crate::endpoint::{SESSION_HEADER, VERSION_HEADER, header_text};
use crate::jsonrpc::{INVALID_PARAMS, RawObject, RpcError};

/// The revision without sessions.
pub(crate) const VERSION: &str = "2026-07-28";

/// A header and the body do not agree.
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// The revision is not served.
const UNSUPPORTED_VERSION: i64 = -32022;

const METHOD_HEADER: &str = "mcp-method";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// What a request says about itself.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) capabilities: Value,
    /// The rank of the weakest log message that the client wants; `None`: it wants none.
    pub(super) log_rank: Option<usize>,
}

/// Why a request is refused before it is looked at any further.
pub(super) type Refusal = (StatusCode, RpcError);

pub(super) fn bad_request(code: i64, message: impl std::fmt::Display) -> Refusal {
    (StatusCode::BAD_REQUEST, RpcError::new(code, message))
}

/// Whether a message is one of a client without a session.
pub(crate) fn is_sessionless(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawObject>,
) -> bool {
    let only_here = matches!(method, "server/discover" | "subscriptions/listen");
    header_text(headers, VERSION_HEADER) == Some(VERSION)
        || params
            .and_then(|params| params.read::<RawObject>("_meta"))
            .is_some_and(|meta| meta.get(VERSION_KEY).is_some())
        || (only_here && !headers.contains_key(SESSION_HEADER))
}

/// Checks the envelope of a request, and takes what is meant for the gateway out of `_meta`.
///
/// The order is that of the official servers, because clients conclude from the first error which
/// revision is spoken: first `_meta`, then headers, then the revision.
pub(super) fn open(
    headers: &HeaderMap,
    method: &str,
    params: &mut RawObject,
) -> Result<Envelope, Refusal> {
    let Some(mut meta) = params.read::<RawObject>("_meta") else {
        return Err(bad_request(
            INVALID_PARAMS,
            format!("`params._meta` is no object with `{VERSION_KEY}` and `{CAPABILITIES_KEY}`"),
        ));
    };
    for key in [VERSION_KEY, CAPABILITIES_KEY] {
        if meta.get(key).is_none() {
            return Err(bad_request(
                INVALID_PARAMS,
                format!("`params._meta` has no `{key}`"),
            ));
        }
    }
    let version = meta.text(VERSION_KEY);
    check_headers(headers, method, params, version.as_deref())?;
    let version = version.unwrap_or_default();
    if version != VERSION {
        return Err((StatusCode::BAD_REQUEST, unsupported(&version)));
    }
    let capabilities = meta.read::<Value>(CAPABILITIES_KEY).unwrap_or_default();
    if !capabilities.is_object() {
        return Err(bad_request(
            INVALID_PARAMS,
            format!("`params._meta[\"{CAPABILITIES_KEY}\"]` is not an object"),
        ));
    }
    let log_rank =
        match meta.text(LOG_LEVEL_KEY) {
            None => None,
            Some(level) => Some(log_rank(&level).ok_or_else(|| {
                bad_request(INVALID_PARAMS, format!("`{level}` is not a log level"))
            })?),
        };
    for key in [VERSION_KEY, CAPABILITIES_KEY, INFO_KEY, LOG_LEVEL_KEY] {
        meta.remove(key);
    }
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta.to_raw());
    }
    Ok(Envelope {
        capabilities,
        log_rank,
    })
}

/// The error that names the revisions that are served.
fn unsupported(requested: &str) -> RpcError {
    RpcError::with_data(
        UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        &json!({"supported": results::supported(), "requested": requested}),
    )
}

/// Headers by which proxies route have to say the same as the body.
fn check_headers(
    headers: &HeaderMap,
    method: &str,
    params: &RawObject,
    version: Option<&str>,
) -> Result<(), Refusal> {
    let mismatch = |text: String| Err(bad_request(HEADER_MISMATCH, text));
    for name in [VERSION_HEADER, METHOD_HEADER, NAME_HEADER] {
        if headers.get_all(name).iter().count() > 1 {
            return mismatch(format!("header `{name}` is there more than once"));
        }
    }
    let same = |name: &str, body: Option<&str>| {
        body.is_some() && header_text(headers, name).map(str::trim) == body
    };
    if !same(VERSION_HEADER, version) {
        return mismatch(format!(
            "header `{VERSION_HEADER}` is not the `{VERSION_KEY}` of the body"
        ));
    }
    if !same(METHOD_HEADER, Some(method)) {
        return mismatch(format!("header `{METHOD_HEADER}` is not `{method}`"));
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(value) = params.text(key) else {
        return Ok(());
    };
    let header = headers.get(NAME_HEADER).and_then(encoded_header::decode);
    if header.as_deref() != Some(value.as_str()) {
        return mismatch(format!(
            "header `{NAME_HEADER}` is not the `{key}` of the body, `{value}`"
        ));
    }
    Ok(())
}
