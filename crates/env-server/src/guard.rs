//! Who may ask: web pages of other sites may not, and others only with the token, if there is one.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, StatusCode, header};
use mcp_gateway::check_host;

use crate::environment::Environment;
use crate::error::ApiError;

/// Paths that anybody may ask for: they say that the process lives, and no more.
const OPEN: [&str; 2] = ["/health", "/"];

pub(crate) async fn guard(
    State(environment): State<Environment>,
    request: Request,
    next: Next,
) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let settings = &environment.settings;
    // A browser names the site of a page in `Origin` when the page sends something to elsewhere, and
    // the name under which it knows us in `Host`. Programs use names that they were given.
    if let Err(refusal) = check_host(&request, &settings.allowed_hosts) {
        return ApiError::new(StatusCode::FORBIDDEN, refusal).into_response();
    }
    if let Some(token) = &settings.auth_token
        && !bearer(&request).is_some_and(|given| token.is(given))
    {
        return ApiError::new(StatusCode::UNAUTHORIZED, "a valid bearer token is needed")
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            .into_response();
    }
    next.run(request).await
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
