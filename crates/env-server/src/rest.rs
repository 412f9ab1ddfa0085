//! `/rest/{service}/{path}`: the HTTP side of the application servers (`spec/environment.md` §10).
//!
//! Requests and answers pass through as they are, piece by piece. The caller's `Authorization` stays
//! here: it is meant for this environment, and what it says about who asks is not believed.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::response::Response;
use futures::TryStreamExt as _;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};

use crate::environment::Environment;
use crate::error::ApiError;

/// The methods of the proxy, as `Allow` names them.
pub(crate) const METHODS: &str = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";

/// What the application sees as the one who asks: the agent of the task.
const ACTOR: HeaderValue = HeaderValue::from_static("Bearer target_agent");

/// Headers of one connection, not of the message (RFC 9110 §7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The client of the proxy: it follows no redirects and changes no body.
pub(crate) fn client(connect: Duration, silence: Duration) -> reqwest::Client {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect)
        .read_timeout(silence)
        .no_proxy()
        .build()
        .unwrap_or_default()
}

/// Passes a request on to the service that its path names.
pub(crate) async fn proxy(
    State(environment): State<Environment>,
    request: Request,
) -> Result<Response, ApiError> {
    let (service, address) = target(&environment, request.uri())?;
    let (parts, body) = request.into_parts();
    let mut headers = parts.headers;
    remove_hop_by_hop(&mut headers);
    headers.remove(header::HOST);
    headers.insert(header::AUTHORIZATION, ACTOR);
    let mut asked = environment
        .rest
        .request(parts.method.clone(), &address)
        .headers(headers);
    // A body without a length goes on in pieces; none at all must not become an empty one.
    if !body.is_end_stream() {
        asked = asked.body(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    let answered = asked.send().await.map_err(|error| {
        let reason = innermost(&error);
        tracing::warn!(service, reason, "a service does not answer");
        let (status, what) = if error.is_timeout() {
            (StatusCode::GATEWAY_TIMEOUT, "did not answer in time")
        } else {
            (StatusCode::BAD_GATEWAY, "cannot be reached")
        };
        ApiError::new(status, format!("Service '{service}' {what}: {reason}"))
    })?;
    Ok(passed_on(answered, &parts.method))
}

fn passed_on(answered: reqwest::Response, method: &Method) -> Response {
    let status = answered.status();
    let mut headers = answered.headers().clone();
    remove_hop_by_hop(&mut headers);
    let body = if *method == Method::HEAD {
        // Its length is that of the body which `GET` would have.
        Body::empty()
    } else {
        Body::from_stream(answered.bytes_stream().inspect_err(|error| {
            tracing::warn!(
                reason = innermost(error),
                "an answer of a service broke off"
            );
        }))
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    // What `Connection` names belongs to the connection too.
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// The name of the service, and where the request goes: scheme and host of its address, then the path
/// and the query as they came.
fn target(environment: &Environment, uri: &Uri) -> Result<(String, String), ApiError> {
    let rest = uri.path().strip_prefix("/rest/").unwrap_or_default();
    let (service, path) = rest.split_once('/').unwrap_or((rest, ""));
    let service = decoded(service);
    let unknown = || {
        ApiError::new(
            StatusCode::NOT_FOUND,
            format!("Unknown service '{service}'"),
        )
    };
    let configuration = environment.gateway.state().configuration;
    let base = configuration
        .as_ref()
        .and_then(|configuration| configuration.mcp_servers.get(&service))
        .and_then(|server| server.url.as_deref())
        .and_then(|url| url.parse::<Uri>().ok());
    let Some((scheme, authority)) = base
        .as_ref()
        .and_then(|base| Some((base.scheme_str()?, base.authority()?)))
    else {
        return Err(unknown());
    };
    let query = uri.query().map(|query| format!("?{query}"));
    let address = format!(
        "{scheme}://{}/{path}{}",
        without_credentials(authority),
        query.unwrap_or_default()
    );
    Ok((service, address))
}

fn without_credentials(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// A component of a path without its percent signs.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The cause at the bottom of an error, without the address, which may hold what is secret.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs() {
        assert_eq!(decoded("a%20b%2Fc"), "a b/c");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(decoded("%C3%A4"), "ä");
    }

    #[test]
    fn what_connection_names_is_not_passed_on() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("close, X-Own"));
        headers.insert("x-own", HeaderValue::from_static("1"));
        headers.insert("x-other", HeaderValue::from_static("2"));
        remove_hop_by_hop(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(headers.contains_key("x-other"));
    }
}
