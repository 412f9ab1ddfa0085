//! Access tokens: fetched when first needed, shared, and renewed before they expire.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::{StatusCode, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::credentials::{Credentials, Found};
use llm_wire::exchange::broken;
use llm_wire::failure::clipped;
use llm_wire::{AccessToken, AccessTokens, ChatError, ChatErrorKind};

/// What the tokens may be used for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How long a signed demand for a token holds, in seconds; the most that Google allows.
const DEMAND: i64 = 3600;
/// How long before its end a token is renewed, as Google's own libraries do.
const EARLY: Duration = Duration::from_secs(225);
/// How long a token server may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the metadata server may take; it is next door.
const METADATA_PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer of a token server, in bytes.
const LONGEST_ANSWER: usize = 256 * 1024;

type Fetching = Shared<BoxFuture<'static, Result<Arc<AccessToken>, ChatError>>>;

/// The tokens of one set of credentials.
pub struct Tokens {
    provider: String,
    found: Found,
    http: reqwest::Client,
    /// The fetch that gave the token that is in use, or is still under way.
    current: Mutex<Option<Fetching>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens of `found` for `provider`, fetched over `http`.
    pub fn new(provider: &str, found: Found, http: reqwest::Client) -> Arc<Self> {
        Arc::new(Self {
            provider: provider.to_owned(),
            found,
            http,
            current: Mutex::default(),
        })
    }

    /// Whether these are the tokens of the credentials `found`.
    pub fn is_of(&self, found: &Found) -> bool {
        self.found.source.expose_secret() == found.source.expose_secret()
    }

    async fn fetch(self: Arc<Self>) -> Result<Arc<AccessToken>, ChatError> {
        let (request, patience) = match &self.found.credentials {
            Credentials::ServiceAccount {
                email,
                key,
                key_id,
                token_uri,
                ..
            } => {
                let now = Timestamp::now().as_second();
                let demand =
                    demand(email, key, key_id.as_deref(), token_uri, now).ok_or_else(|| {
                        self.error(ChatErrorKind::Auth, "the private key cannot sign")
                    })?;
                let fields = [
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    ("assertion", demand.as_str()),
                ];
                (self.form(token_uri, &fields), PATIENCE)
            }
            Credentials::User {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
                ..
            } => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose_secret()),
                    ("refresh_token", refresh_token.expose_secret()),
                ];
                (self.form(token_uri, &fields), PATIENCE)
            }
            Credentials::Metadata { address } => {
                let request = self.http.get(address).header("metadata-flavor", "Google");
                (request, METADATA_PATIENCE)
            }
        };
        let asked = Instant::now();
        let answer = tokio::time::timeout(patience, self.exchange(request));
        let answer = answer.await.map_err(|_| {
            let seconds = patience.as_secs();
            let message = format!("no access token within {seconds} s");
            self.error(ChatErrorKind::Timeout, &message)
        })??;
        token(&answer, asked).map(Arc::new).ok_or_else(|| {
            self.error(
                ChatErrorKind::MalformedReply,
                "the token server's answer holds no token",
            )
        })
    }

    fn form(&self, address: &str, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.http
            .post(address)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<Vec<u8>, ChatError> {
        let broke = |error| broken(&self.provider, "the token server", error);
        let mut response = request.send().await.map_err(broke)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broke)? {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST_ANSWER {
                let message =
                    format!("the token server's answer has more than {LONGEST_ANSWER} bytes");
                return Err(self.error(ChatErrorKind::MalformedReply, &message));
            }
        }
        let status = response.status();
        if status.is_success() {
            return Ok(body);
        }
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => ChatErrorKind::RateLimit,
            _ if status.is_server_error() => ChatErrorKind::Server,
            _ => ChatErrorKind::Auth,
        };
        let mut error = self.error(kind, &refusal(status, &body));
        error.status = Some(status.as_u16());
        Err(error)
    }

    fn error(&self, kind: ChatErrorKind, message: &str) -> ChatError {
        ChatError::new(kind, &self.provider, message)
    }
}

impl AccessTokens for Tokens {
    fn token(self: Arc<Self>) -> BoxFuture<'static, Result<Arc<AccessToken>, ChatError>> {
        let fetching = {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            let is_good = |fetching: &&mut Fetching| match fetching.peek() {
                None => true,
                Some(Ok(token)) => token.is_good(),
                Some(Err(_)) => false,
            };
            match current.as_mut().filter(is_good) {
                Some(fetching) => fetching.clone(),
                None => {
                    let fetching = self.clone().fetch().boxed().shared();
                    current.insert(fetching).clone()
                }
            }
        };
        fetching.boxed()
    }

    fn forget(&self, used: &Arc<AccessToken>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = current.as_ref().is_some_and(
            |fetching| matches!(fetching.peek(), Some(Ok(token)) if Arc::ptr_eq(token, used)),
        );
        if is_same {
            *current = None;
        }
    }
}

/// What a token server says, in one sentence.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let word = |key: &str| said.get(key).and_then(Value::as_str);
    let told = match (word("error"), word("error_description")) {
        (Some(error), Some(more)) => format!("{error}: {more}"),
        (Some(error), None) => error.to_owned(),
        _ => "without a reason".to_owned(),
    };
    format!("no access token (status {status}): {}", clipped(&told, 500))
}

/// A demand for a token, signed with RS256 (RFC 7523).
fn demand(
    email: &str,
    key: &RsaKeyPair,
    key_id: Option<&str>,
    audience: &str,
    now: i64,
) -> Option<String> {
    let mut head = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(id) = key_id {
        head["kid"] = id.into();
    }
    let claims = json!({
        "iss": email, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + DEMAND
    });
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let text = format!("{}.{}", encode(&head), encode(&claims));
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        text.as_bytes(),
        &mut signature,
    )
    .ok()?;
    Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn token(answer: &[u8], asked: Instant) -> Option<AccessToken> {
    #[derive(Deserialize)]
    struct Answer {
        access_token: SecretString,
        expires_in: u64,
    }
    let answer: Answer = serde_json::from_slice(answer).ok()?;
    let lifetime = Duration::from_secs(answer.expires_in);
    AccessToken::new(
        answer.access_token,
        asked + lifetime.saturating_sub(EARLY.min(lifetime / 2)),
    )
}
