//! Signatures of requests (AWS Signature Version 4), worked out apart from any client.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use sha2::{Digest, Sha256};

/// The name of the algorithm.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A request as far as its signature covers it.
#[derive(Debug)]
pub(super) struct Request<'r> {
    pub(super) method: &'r str,
    /// As it was sent.
    pub(super) path: &'r str,
    pub(super) query: &'r str,
    pub(super) headers: &'r HeaderMap,
    pub(super) body: &'r [u8],
}

/// Whose keys a request is to be signed with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'k> {
    pub(super) id: &'k str,
    pub(super) secret: &'k str,
    pub(super) service: &'k str,
}

/// Checks that `request` is signed with `keys`. The error says what is wrong, in AWS's words where it
/// has some.
pub(super) fn check(request: &Request<'_>, keys: Keys<'_>) -> Result<(), String> {
    let header = |name: &str| {
        let value = request.headers.get(name)?.to_str().ok()?;
        Some(value.trim())
    };
    let authorization = header("authorization").ok_or("Missing Authentication Token")?;
    let fields = authorization
        .strip_prefix(ALGORITHM)
        .ok_or("Authorization header requires AWS4-HMAC-SHA256")?;
    let field = |name: &str| {
        fields
            .split(',')
            .find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='))
            .ok_or_else(|| format!("Authorization header requires '{name}' parameter"))
    };
    let (credential, signed, signature) = (
        field("Credential")?,
        field("SignedHeaders")?,
        field("Signature")?,
    );
    let (id, scope) = credential.split_once('/').unwrap_or((credential, ""));
    if id != keys.id {
        return Err("The security token included in the request is invalid.".to_owned());
    }
    let time =
        header("x-amz-date").ok_or("Authorization header requires existence of 'X-Amz-Date'")?;
    let parts: Vec<&str> = scope.split('/').collect();
    let [date, region, service, end] = parts[..] else {
        return Err(format!("Credential `{credential}` has no scope"));
    };
    if !time.starts_with(date) || service != keys.service || end != "aws4_request" {
        return Err(format!(
            "Credential should be scoped to correct service: '{}'",
            keys.service
        ));
    }
    for needed in ["host", "x-amz-date", "x-amz-security-token"] {
        let is_there = request.headers.contains_key(needed);
        if is_there && !signed.split(';').any(|name| name == needed) {
            return Err(format!("'{needed}' must be a signed header"));
        }
    }
    let canonical = canonical(request, signed);
    let to_sign = format!(
        "{ALGORITHM}\n{time}\n{scope}\n{}",
        hex(&Sha256::digest(canonical))
    );
    let first = format!("AWS4{}", keys.secret);
    let mut key = first.into_bytes();
    for part in [date, region, service, end, &to_sign] {
        key = keyed_hash(&key, part)?;
    }
    if hex(&key) == signature {
        return Ok(());
    }
    Err("The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method.".to_owned())
}

fn keyed_hash(key: &[u8], text: &str) -> Result<Vec<u8>, String> {
    let mut hash = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    hash.update(text.as_bytes());
    Ok(hash.finalize().into_bytes().to_vec())
}

/// The request in the form that is hashed.
fn canonical(request: &Request<'_>, signed: &str) -> String {
    let mut text = format!("{}\n", request.method);
    // The path is encoded once more, for all services but S3.
    for byte in request.path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    let mut query: Vec<&str> = request
        .query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .collect();
    query.sort_unstable();
    let _ = write!(text, "\n{}\n", query.join("&"));
    for name in signed.split(';') {
        let values: Vec<String> = request
            .headers
            .get_all(name)
            .iter()
            .map(|value| {
                let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
                value.split_whitespace().collect::<Vec<_>>().join(" ")
            })
            .collect();
        let _ = writeln!(text, "{name}:{}", values.join(","));
    }
    let _ = write!(text, "\n{signed}\n{}", hex(&Sha256::digest(request.body)));
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys<'static> = Keys {
        id: "AKIDEXAMPLE",
        secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        service: "service",
    };

    /// Signatures from AWS's published test suite for Signature Version 4: `get-vanilla`,
    /// `post-vanilla`, `post-x-www-form-urlencoded`.
    #[test]
    fn the_published_signatures_are_right_and_others_are_wrong() {
        let form = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("content-length", "13"),
            (
                "x-amz-content-sha256",
                "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e",
            ),
        ];
        let all = "content-length;content-type;host;x-amz-content-sha256;x-amz-date";
        for (method, more, signed, body, signature) in [
            (
                "GET",
                &[][..],
                "host;x-amz-date",
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                &[],
                "host;x-amz-date",
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "POST",
                &form,
                all,
                "Param1=value1",
                "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
            ),
        ] {
            let authorization = format!(
                "{ALGORITHM} Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={signed}, Signature={signature}"
            );
            let mut headers = HeaderMap::new();
            headers.insert("host", "example.amazonaws.com".parse().unwrap());
            headers.insert("x-amz-date", "20150830T123600Z".parse().unwrap());
            headers.insert("authorization", authorization.parse().unwrap());
            for (name, value) in more {
                headers.insert(*name, value.parse().unwrap());
            }
            let request = |body: &'static str, path: &'static str| Request {
                method,
                path,
                query: "",
                headers: &headers,
                body: body.as_bytes(),
            };
            assert_eq!(check(&request(body, "/"), KEYS), Ok(()), "{method} {body}");
            assert!(check(&request("other", "/"), KEYS).is_err());
            assert!(check(&request(body, "/other"), KEYS).is_err());
            let other = Keys {
                secret: "x",
                ..KEYS
            };
            assert!(check(&request(body, "/"), other).is_err());
        }
    }
}
