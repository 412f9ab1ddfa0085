//! Access tokens: what authorises requests where no key does.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::Instant;

use crate::error::ChatError;

/// A token that is valid for now.
pub struct AccessToken {
    secret: SecretString,
    header: HeaderValue,
    renew_at: Instant,
}

impl AccessToken {
    /// The token `secret`, in the place of which another one is fetched from `renew_at` on. `None` if
    /// it has characters that no HTTP header may have.
    #[must_use]
    pub fn new(secret: SecretString, renew_at: Instant) -> Option<Self> {
        let mut header =
            HeaderValue::try_from(format!("Bearer {}", secret.expose_secret())).ok()?;
        header.set_sensitive(true);
        Some(Self {
            secret,
            header,
            renew_at,
        })
    }

    /// The value of `Authorization`.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether it need not be renewed yet.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.renew_at > Instant::now()
    }

    /// Removes the token from `text`.
    #[must_use]
    pub fn cut_from(&self, text: &str) -> String {
        text.replace(self.secret.expose_secret(), "[token]")
    }
}

/// Where access tokens come from. Its `Debug` shows no secret.
pub trait AccessTokens: std::fmt::Debug + Send + Sync {
    /// A token that is valid. All who ask at once wait for the same one.
    fn token(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<AccessToken>, ChatError>>;

    /// Forgets `used`, which a server refused.
    fn forget(&self, used: &Arc<AccessToken>);
}
