//! Protection against web pages that reach a local gateway through a name of their own
//! (DNS rebinding): `Host` and `Origin` have to name this machine or a configured host.
//!
//! A program around the gateway asks the same of its own routes, see [`check_host`].

use std::net::IpAddr;

use http::header;
use http::uri::Authority;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Whether `Host` and `Origin` of a request name this machine or one of the `allowed` hosts (`*` allows
/// all), as the endpoint asks of every request.
///
/// An address in the place of a name passes as `Host`: what is to be kept out are names that somebody else can
/// lead anywhere, and a browser that was given an address says so only to what has it. Not so in `Origin`, which
/// is where a page came from.
///
/// # Errors
/// Why the request is to be refused, for people.
pub fn check_host<B>(request: &http::Request<B>, allowed: &[String]) -> Result<(), String> {
    let headers = request.headers();
    let host = match headers.get(header::HOST) {
        Some(host) => host.to_str().unwrap_or_default(),
        None => request.uri().authority().map_or("", |host| host.as_str()),
    };
    if !is_address(host) && !is_allowed(host, allowed) {
        return Err(format!(
            "Forbidden: host `{host}` is not allowed (allowed_hosts)"
        ));
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    let origin_host = origin.split_once("://").map_or("", |(_, host)| host);
    if is_allowed(origin_host, allowed) {
        Ok(())
    } else {
        Err(format!(
            "Forbidden: origin `{origin}` is not allowed (allowed_hosts)"
        ))
    }
}

/// Whether `host` is an IP address, perhaps with a port.
fn is_address(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let name = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.parse::<IpAddr>().is_ok()
}

fn is_allowed(host: &str, allowed: &[String]) -> bool {
    if allowed.iter().any(|known| known == "*") {
        return true;
    }
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host();
    let is = |known: &str| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host);
    LOOPBACK.into_iter().any(is) || allowed.iter().any(|known| is(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_configured_names_pass_with_any_port() {
        let allowed = ["environment".to_owned(), "env.example:8080".to_owned()];
        for host in [
            "localhost",
            "LOCALHOST:1",
            "127.0.0.1:8080",
            "[::1]:80",
            "environment:8080",
            "env.example:8080",
        ] {
            assert!(is_allowed(host, &allowed), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "env.example:81",
            "null",
            "127.0.0.2",
        ] {
            assert!(!is_allowed(host, &allowed), "{host}");
        }
    }

    #[test]
    fn an_address_passes_as_host_and_not_as_origin() {
        let ask = |host: &str, origin: Option<&str>| {
            let mut request = http::Request::builder().header("host", host);
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            check_host(&request.body(()).unwrap(), &[]).is_ok()
        };
        for host in ["172.17.0.2:8080", "10.0.0.5", "[fd00::7]:8080"] {
            assert!(ask(host, None), "{host}");
            assert!(ask(host, Some("http://localhost:3000")), "{host}");
            assert!(!ask(host, Some(&format!("http://{host}"))), "{host}");
        }
        for host in ["", "environment:8080", "172.17.0.2.evil.example", "1.2.3"] {
            assert!(!ask(host, None), "{host}");
        }
    }
}
