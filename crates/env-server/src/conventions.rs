//! How this interface treats paths and methods it does not have (`spec/environment.md` §2).

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, Method, StatusCode, header};

use crate::error::ApiError;
use crate::routes::METHODS;

/// Answers what is no route of ours: 404, 405 with `Allow`, or 307 to the same path with or without
/// its last slash. `HEAD` is not implied by `GET`. `/mcp` has rules of its own.
pub(crate) async fn conventions(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path == "/mcp" {
        return next.run(request).await;
    }
    if let Some(rest) = path.strip_prefix("/mcp/") {
        if rest.is_empty() {
            return next.run(request).await;
        }
        return (StatusCode::NOT_FOUND, "Not Found").into_response();
    }
    if let Some(methods) = methods(path) {
        if allows(methods, request.method()) {
            return next.run(request).await;
        }
        return ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
            .with_header(header::ALLOW, HeaderValue::from_static(methods))
            .into_response();
    }
    let other = match path.strip_suffix('/') {
        Some(bare) => bare.to_owned(),
        None => format!("{path}/"),
    };
    if methods(&other).is_some()
        && let Some(location) = location(&request, &other)
    {
        return (
            StatusCode::TEMPORARY_REDIRECT,
            [(header::LOCATION, location)],
        )
            .into_response();
    }
    ApiError::not_found().into_response()
}

/// The methods of a path, as `Allow` names them.
fn methods(path: &str) -> Option<&'static str> {
    METHODS
        .iter()
        .find_map(|(known, methods)| (*known == path).then_some(*methods))
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
