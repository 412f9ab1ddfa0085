//! How this interface treats paths and methods it does not have (`spec/environment.md` §2).

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode, header};

use crate::error::ApiError;
use crate::rest;
use crate::routes::METHODS;

/// The answer to what is no route of ours: 404, 405 with `Allow`, or 307 to the same path with or
/// without its last slash. `HEAD` is not implied by `GET`. `/mcp` has rules of its own.
pub(crate) fn no_route(request: &Request) -> Option<Response> {
    let path = request.uri().path();
    if path == "/mcp" || path == "/mcp/" {
        return None;
    }
    if let Some(rest) = path.strip_prefix("/rest/").filter(|rest| !rest.is_empty()) {
        if !allows(rest::METHODS, request.method()) {
            return Some(not_allowed(rest::METHODS));
        }
        // The root of a service ends with a slash, as on its own host.
        let bare = !rest.contains('/');
        let location = bare
            .then(|| location(request, &format!("{path}/")))
            .flatten();
        return location.map(redirect);
    }
    if path.starts_with("/mcp/") {
        return Some((StatusCode::NOT_FOUND, "Not Found").into_response());
    }
    if let Some(methods) = methods(path) {
        return (!allows(methods, request.method())).then(|| not_allowed(methods));
    }
    let other = match path.strip_suffix('/') {
        Some(bare) => bare.to_owned(),
        None => format!("{path}/"),
    };
    if methods(&other).is_some()
        && let Some(location) = location(request, &other)
    {
        return Some(redirect(location));
    }
    Some(ApiError::not_found().into_response())
}

fn not_allowed(methods: &'static str) -> Response {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
        .with_header(header::ALLOW, HeaderValue::from_static(methods))
        .into_response()
}

fn redirect(location: HeaderValue) -> Response {
    (
        StatusCode::TEMPORARY_REDIRECT,
        [(header::LOCATION, location)],
    )
        .into_response()
}

/// The route that a path belongs to, as one of a few names.
pub(crate) fn route(path: &str) -> &'static str {
    if path == "/mcp" || path == "/mcp/" {
        return "/mcp";
    }
    if path.starts_with("/rest/") {
        return "/rest";
    }
    METHODS
        .iter()
        .find_map(|(known, _)| matches(known, path).then_some(*known))
        .unwrap_or("other")
}

/// The methods of a path, as `Allow` names them.
fn methods(path: &str) -> Option<&'static str> {
    METHODS
        .iter()
        .find_map(|(known, methods)| matches(known, path).then_some(*methods))
}

/// Whether a path is the known one, in which `{…}` stands for any one component.
fn matches(known: &str, path: &str) -> bool {
    let (mut known, mut path) = (known.split('/'), path.split('/'));
    loop {
        match (known.next(), path.next()) {
            (None, None) => return true,
            (Some(known), Some(given)) if known == given => {}
            (Some(known), Some(given)) if known.starts_with('{') && !given.is_empty() => {}
            _ => return false,
        }
    }
}

fn allows(methods: &str, method: &Method) -> bool {
    methods
        .split(", ")
        .any(|allowed| allowed == method.as_str())
}

/// The absolute address of `path` on the host that was asked, with the query of the request.
fn location(request: &Request, path: &str) -> Option<HeaderValue> {
    let host = request.headers().get(header::HOST)?.to_str().ok()?;
    let query = request.uri().query().map(|query| format!("?{query}"));
    HeaderValue::from_str(&format!("http://{host}{path}{}", query.unwrap_or_default())).ok()
}
