//! The handshake of a client.

use http::StatusCode;
use serde_json::{Value, json};

use super::VERSIONS;
use super::session::Session;
use crate::gateway::Gateway;
use crate::generation::Generation;
use crate::jsonrpc::{self, Raw, RawObject};

/// Opens a session for `initialize` with `params`.
pub(crate) fn open_session(
    gateway: &Gateway,
    params: &RawObject,
) -> Result<std::sync::Arc<Session>, (StatusCode, String)> {
    let inner = &gateway.inner;
    let capabilities = params.read::<Value>("capabilities").unwrap_or_default();
    let session = Session::new(negotiated(params), capabilities, &inner.options);
    let limit = inner.options.max_sessions;
    let session = match inner.sessions.insert(session, limit) {
        Ok(session) => session,
        Err(count) => {
            return Err((
                StatusCode::SERVICE_UNAVAILABLE,
                format!("there are {count} sessions, the limit is {limit} (max_sessions)"),
            ));
        }
    };
    tracing::debug!(session = %session.id, version = session.version, "session opened");
    Ok(session)
}

/// The revision that was asked for where it is served, else the newest.
fn negotiated(params: &RawObject) -> &'static str {
    let asked = params.text("protocolVersion");
    VERSIONS
        .into_iter()
        .find(|known| Some(*known) == asked.as_deref())
        .unwrap_or(VERSIONS[VERSIONS.len() - 1])
}

/// The result of `initialize`.
pub(crate) fn result(generation: &Generation, version: &str) -> Raw {
    jsonrpc::raw(&json!({
        "protocolVersion": version,
        "capabilities": capabilities(generation),
        "serverInfo": server_info(),
    }))
}

/// What the gateway says about itself.
pub(crate) fn server_info() -> Value {
    json!({"name": "Gateway", "version": env!("CARGO_PKG_VERSION")})
}

/// What the gateway offers with the servers of a configuration.
pub(crate) fn capabilities(generation: &Generation) -> Value {
    let mut capabilities = json!({
        "experimental": {},
        "logging": {},
        "prompts": {"listChanged": true},
        "resources": {"subscribe": generation.can("/resources/subscribe"), "listChanged": true},
        "tools": {"listChanged": true},
    });
    if generation.can("/completions") {
        capabilities["completions"] = json!({});
    }
    capabilities
}
