//! Where requests go and how they are authorised.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use crate::access::AccessTokens;
use crate::call::CallLabels;
use crate::extra_args::Settings;
use crate::secrets::without_credentials;

/// A server: base URL, key, fixed headers. Its `Debug` shows no secret.
#[derive(Clone)]
pub struct Endpoint {
    base: String,
    host: String,
    place: String,
    key: SecretString,
    headers: HeaderMap,
    /// A parameter of every address, such as the version of the interface.
    query: Option<(&'static str, String)>,
    attribution: bool,
    /// Tokens in the place of a key.
    tokens: Option<Arc<dyn AccessTokens>>,
    /// Whether it is told how long the client waits.
    waits: bool,
}

impl Endpoint {
    /// A server at `base`, which must be an `http` or `https` URL without query. The key goes into
    /// `Authorization: Bearer`.
    ///
    /// # Errors
    /// What is wrong with the base URL or the key.
    pub fn new(base: &str, key: Option<SecretString>) -> Result<Self, String> {
        Self::with_key_in(base, key, &header::AUTHORIZATION)
    }

    /// The same with the key in the header `name`, bare unless that is `Authorization`.
    ///
    /// # Errors
    /// What is wrong with the base URL or the key.
    pub fn with_key_in(
        base: &str,
        key: Option<SecretString>,
        name: &HeaderName,
    ) -> Result<Self, String> {
        // The address may contain credentials: a bad one is not repeated.
        let url = Url::parse(base).map_err(|error| format!("the base URL is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return Err("the base URL must be an http or https URL without query".to_owned());
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            let scheme = if name == header::AUTHORIZATION {
                "Bearer "
            } else {
                ""
            };
            let mut value = HeaderValue::try_from(format!("{scheme}{}", key.expose_secret()))
                .map_err(|_| "the key has characters that no HTTP header may have".to_owned())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            host,
            place: without_credentials(base),
            key: key.unwrap_or_default(),
            headers,
            query: None,
            attribution: false,
            tokens: None,
            waits: false,
        })
    }

    /// The same server with one more header.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub fn with_header(mut self, name: &'static str, value: &str) -> Result<Self, String> {
        let value = HeaderValue::try_from(value)
            .map_err(|_| "has characters that no HTTP header may have".to_owned())?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// The same server with the parameter `name` in every address. The error says what is wrong with
    /// its value.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub fn with_query(mut self, name: &'static str, value: &str) -> Result<Self, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if value.is_empty() || !value.bytes().all(fits) {
            return Err(format!(
                "`{value}` has characters other than letters, digits, `-`, `_` and `.`"
            ));
        }
        self.query = Some((name, value.to_owned()));
        Ok(self)
    }

    /// The same server, authorised by `tokens`.
    pub fn with_tokens(mut self, tokens: Arc<dyn AccessTokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The tokens that authorise requests, where no key does.
    pub fn tokens(&self) -> Option<&Arc<dyn AccessTokens>> {
        self.tokens.as_ref()
    }

    /// The same server, told who asks (`spec/llm.md` §3).
    pub fn with_attribution(mut self) -> Self {
        self.attribution = true;
        self
    }

    /// The same server, told how long the client waits for each answer.
    pub fn with_waits(mut self) -> Self {
        self.waits = true;
        self
    }

    /// Adds to `headers` how long the client waits for an answer, where the server is told.
    pub fn tell_wait(&self, headers: &mut HeaderMap, wait: Duration) {
        if self.waits {
            let name = HeaderName::from_static("x-gateway-timeout-s");
            headers.insert(name, wait.as_secs().max(1).into());
        }
    }

    /// The headers of one call beside those of the server: `extra_headers`, and who asks where the
    /// server is told.
    pub fn call_headers(&self, labels: &CallLabels<'_>, settings: &Settings<'_>) -> HeaderMap {
        let mut headers = settings.headers.clone();
        if !self.attribution {
            return headers;
        }
        let attempt = labels.attempt.map(|attempt| attempt.to_string());
        let attribution = [
            ("service", Some(labels.service.unwrap_or("trajectory"))),
            (
                "workload",
                Some(labels.workload.unwrap_or("trajectory_single")),
            ),
            ("trajectory_id", labels.trajectory_id),
            ("world_id", labels.world_id),
            ("work_unit", labels.work_unit),
            ("campaign_id", labels.campaign_id),
            ("account_id", labels.account_id),
            ("user_id", labels.user_id),
            ("batch_id", labels.batch_id),
            ("call_id", labels.call_id),
            ("attempt", attempt.as_deref()),
        ];
        for (name, value) in attribution {
            let value = value.and_then(|value| HeaderValue::try_from(value).ok());
            if let Some(value) = value {
                headers
                    .entry(HeaderName::from_static(name))
                    .or_insert(value);
            }
        }
        headers
    }

    /// The headers that every request to the server has.
    pub fn fixed_headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The address of `path` (with a slash in front) at the server.
    pub fn address(&self, path: &str) -> String {
        match &self.query {
            Some((name, value)) => format!("{}{path}?{name}={value}", self.base),
            None => format!("{}{path}", self.base),
        }
    }

    /// The base URL without credentials.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Removes the key from `text`.
    pub fn without_key(&self, text: &str) -> String {
        let key = self.key.expose_secret();
        // A key that short is a placeholder, and cutting it out would garble the text.
        if key.len() < 6 {
            return text.to_owned();
        }
        text.replace(key, "[key]")
    }

    /// Whether `base` is on this machine.
    pub fn is_local(base: &str) -> bool {
        let Ok(url) = Url::parse(base) else {
            return false;
        };
        match url.host_str() {
            Some("localhost") => true,
            Some(host) => host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback()),
            None => false,
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
