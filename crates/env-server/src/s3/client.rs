//! Connections to buckets.

use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use schemars::JsonSchema;
use serde::Deserialize;

use super::upload::PART;
use crate::error::{ApiError, InvalidItem};
use crate::settings::S3Settings;

/// Credentials of one request.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct S3CredentialsBody {
    /// The access key.
    pub(crate) access_key_id: String,
    /// Its secret.
    pub(crate) secret_access_key: String,
    /// The token of a temporary session.
    #[serde(default)]
    pub(crate) session_token: Option<String>,
    /// The region; `S3_DEFAULT_REGION` unless given.
    #[serde(default)]
    pub(crate) region: Option<String>,
}

impl std::fmt::Debug for S3CredentialsBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("S3CredentialsBody([redacted])")
    }
}

/// Refuses credentials of a body that cannot be right.
pub(super) fn check(given: Option<&S3CredentialsBody>) -> Result<(), ApiError> {
    match given.and_then(|given| given.region.as_deref()) {
        Some(region) if region.trim().is_empty() => {
            let loc = ["body", "s3_credentials", "region"].map(Into::into).into();
            let item = InvalidItem::value(loc, "region cannot be empty", region.into());
            Err(ApiError::invalid(&item))
        }
        _ => Ok(()),
    }
}

/// A client for one bucket.
pub(super) fn bucket(
    settings: &S3Settings,
    credentials: Option<&S3CredentialsBody>,
    bucket: &str,
) -> Result<AmazonS3, ApiError> {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in settings.variables() {
        // Variables that mean nothing to the client are none of its business.
        let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() else {
            continue;
        };
        // The token of our session means nothing beside the keys of another.
        if key != AmazonS3ConfigKey::Token || credentials.is_none() {
            builder = builder.with_config(key, value);
        }
    }
    // The address of another service is asked by path: names of its buckets are no host names.
    let own_endpoint = settings.endpoint();
    if let Some(endpoint) = own_endpoint {
        builder = builder
            .with_endpoint(endpoint)
            .with_allow_http(endpoint.starts_with("http://"));
    }
    let virtual_hosts = settings.virtual_hosts.unwrap_or(own_endpoint.is_none());
    builder = builder
        .with_virtual_hosted_style_request(virtual_hosts)
        .with_bucket_name(bucket)
        .with_retry(retries(settings))
        .with_client_options(
            ClientOptions::new()
                .with_timeout(request_timeout(settings))
                .with_connect_timeout(settings.connect_timeout)
                .with_allow_http(own_endpoint.is_some_and(|url| url.starts_with("http://"))),
        );
    let region = credentials.and_then(|given| given.region.as_deref());
    builder = builder.with_region(region.unwrap_or(&settings.default_region));
    if let Some(given) = credentials {
        builder = builder
            .with_access_key_id(&given.access_key_id)
            .with_secret_access_key(&given.secret_access_key);
        if let Some(token) = &given.session_token {
            builder = builder.with_token(token);
        }
    }
    builder
        .build()
        .map_err(|error| ApiError::internal(format!("S3 cannot be used: {error}")))
}

/// How long one request may take. The largest carries one part of an upload.
fn request_timeout(settings: &S3Settings) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "a part is small")]
    let slowest = PART as f64 / settings.min_throughput;
    let slowest = Duration::try_from_secs_f64(slowest).unwrap_or(settings.request_timeout);
    settings.request_timeout.max(slowest)
}

fn retries(settings: &S3Settings) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: settings.retry_backoff,
            max_backoff: settings.retry_backoff * 100,
            base: 2.0,
        },
        max_retries: settings.max_retries,
        retry_timeout: Duration::from_secs(180),
    }
}

/// An error in one line, its causes included.
pub(super) fn reason(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
