//! Signatures of requests (AWS Signature Version 4).

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;

use super::credentials::Keys;

/// The service, as signatures name it.
const SERVICE: &str = "bedrock";

/// The headers that sign a POST of `body` to `address` at the time `now`. The error is a sentence.
pub(super) fn signature(
    keys: &Keys,
    region: &str,
    address: &str,
    body: &[u8],
    now: SystemTime,
) -> Result<HeaderMap, String> {
    let problem = |error: &dyn std::error::Error| format!("the request cannot be signed: {error}");
    let identity = Credentials::new(
        keys.id.clone(),
        keys.secret.expose_secret(),
        keys.session_token
            .as_ref()
            .map(|token| token.expose_secret().to_owned()),
        None,
        SERVICE,
    )
    .into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| problem(&error))?
        .into();
    let request = SignableRequest::new(
        "POST",
        address,
        [("content-type", "application/json")].into_iter(),
        SignableBody::Bytes(body),
    )
    .map_err(|error| problem(&error))?;
    let (instructions, _) = sign(request, &parameters)
        .map_err(|error| problem(&error))?
        .into_parts();
    let mut headers = HeaderMap::new();
    for (name, value) in instructions.headers() {
        let name = HeaderName::try_from(name).map_err(|error| problem(&error))?;
        let mut value = HeaderValue::try_from(value).map_err(|error| problem(&error))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
