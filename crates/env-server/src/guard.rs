//! Who may ask: web pages of other sites may not, and others only with the token, if there is one.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::uri::Authority;
use http::{HeaderValue, StatusCode, header};

use crate::environment::Environment;
use crate::error::ApiError;

/// Paths that anybody may ask for: they say that the process lives, and no more.
const OPEN: [&str; 2] = ["/health", "/"];

pub(crate) async fn guard(
    State(environment): State<Environment>,
    request: Request,
    next: Next,
) -> Response {
    let settings = &environment.settings;
    if let Some(origin) = request.headers().get(header::ORIGIN)
        && !is_allowed_origin(origin.to_str().unwrap_or_default(), &settings.allowed_hosts)
    {
        return ApiError::new(
            StatusCode::FORBIDDEN,
            format!(
                "requests of pages from `{}` are not allowed (allowed_hosts)",
                origin.to_str().unwrap_or("?")
            ),
        )
        .into_response();
    }
    if let Some(token) = &settings.auth_token
        && !OPEN.contains(&request.uri().path())
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

/// Whether a page of `origin` is one of this machine or of a configured host. A program sends no
/// `Origin`; a browser always does when a page sends something.
fn is_allowed_origin(origin: &str, allowed: &[String]) -> bool {
    if allowed.iter().any(|host| host == "*") {
        return true;
    }
    let Some((_, authority)) = origin.split_once("://") else {
        return false;
    };
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    ["localhost", "127.0.0.1", "[::1]"]
        .into_iter()
        .chain(allowed.iter().map(String::as_str))
        .any(|known| {
            known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(authority.as_str())
        })
}

#[cfg(test)]
mod tests {
    use super::is_allowed_origin;

    #[test]
    fn origins() {
        let allowed = ["env.example".to_owned()];
        for origin in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "http://[::1]:8",
            "https://ENV.example",
        ] {
            assert!(is_allowed_origin(origin, &allowed), "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost.evil.example",
        ] {
            assert!(!is_allowed_origin(origin, &allowed), "{origin}");
        }
        assert!(is_allowed_origin("http://evil.example", &["*".to_owned()]));
    }
}
