//! Who may ask: web pages of other sites may not, and others only with the token, if there is one.

use axum::extract::Request;
use http::{HeaderValue, StatusCode, header};
use mcp_gateway::check_host;

use crate::error::ApiError;
use crate::settings::Settings;

/// Paths that anybody may ask for: they say that the process lives, and no more.
const OPEN: [&str; 2] = ["/health", "/"];

/// Refuses a request that may not be made.
pub(crate) fn check(settings: &Settings, request: &Request) -> Result<(), ApiError> {
    if OPEN.contains(&request.uri().path()) {
        return Ok(());
    }
    // A browser names the site of a page in `Origin` when the page sends something to elsewhere, and
    // the name under which it knows us in `Host`. Programs use names that they were given.
    check_host(request, &settings.allowed_hosts)
        .map_err(|refusal| ApiError::new(StatusCode::FORBIDDEN, refusal))?;
    match &settings.auth_token {
        Some(token) if !bearer(request).is_some_and(|given| token.is(given)) => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "a valid bearer token is needed",
        )
        .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        _ => Ok(()),
    }
}

fn bearer(request: &Request) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start())
}
