//! HTTP headers of clients: which answers they take, and what reaches servers over HTTP.

use http::{HeaderMap, header};

use super::sessionless::ARGUMENT_HEADER_PREFIX;

/// The kinds of answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

/// Reads `Accept`. A request without it takes both.
pub(crate) fn accepts(headers: &HeaderMap) -> Accepts {
    let mut found = Accepts {
        json: false,
        events: false,
    };
    if !headers.contains_key(header::ACCEPT) {
        return Accepts {
            json: true,
            events: true,
        };
    }
    for value in headers.get_all(header::ACCEPT) {
        for part in value.to_str().unwrap_or_default().split(',') {
            match part.split(';').next().unwrap_or(part).trim() {
                "*/*" => {
                    found.json = true;
                    found.events = true;
                }
                "application/json" | "application/*" => found.json = true,
                "text/event-stream" | "text/*" => found.events = true,
                _ => {}
            }
        }
    }
    found
}

/// Headers of a client that concern only its own connection to us (`spec/environment.md` §9), and
/// its credentials, which are not for the servers.
const KEPT_BACK: [&str; 24] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "connection",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "keep-alive",
    "expect",
    "accept",
    "accept-encoding",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "mcp-session-id",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "last-event-id",
    "authorization",
    "cookie",
    "origin",
];

/// What servers over HTTP get to see of a client's request.
pub(crate) fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut forwarded = HeaderMap::new();
    for (name, value) in headers {
        let kept_back =
            KEPT_BACK.contains(&name.as_str()) || name.as_str().starts_with(ARGUMENT_HEADER_PREFIX);
        if !kept_back {
            forwarded.append(name.clone(), value.clone());
        }
    }
    forwarded
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn accept_is_read_by_type() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(text));
            let found = accepts(&headers);
            (found.json, found.events)
        };
        assert_eq!(of("application/json, text/event-stream"), (true, true));
        assert_eq!(of("text/event-stream;q=0.5"), (false, true));
        assert_eq!(of("*/*"), (true, true));
        assert_eq!(of("text/plain"), (false, false));
    }

    #[test]
    fn credentials_of_the_client_stay_here() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer secret"));
        headers.insert("x-agent-id", HeaderValue::from_static("a"));
        let seen = forwarded(&headers);
        assert!(seen.get("authorization").is_none());
        assert_eq!(seen.get("x-agent-id").unwrap(), "a");
    }
}
