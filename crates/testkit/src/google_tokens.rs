//! A server of Google's access tokens, strict about who asks.
//!
//! It knows one service account, one user and one machine. A demand of the account is checked as Google
//! checks it: signature, times, audience, scope.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey,
};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The account.
const EMAIL: &str = "agent@stub-project.iam.gserviceaccount.com";
/// The id of its key.
const KEY_ID: &str = "stub-key-1";
/// What the user's program knows.
const USER: [(&str, &str); 3] = [
    ("client_id", "stub-client"),
    ("client_secret", "stub/client secret"),
    ("refresh_token", "1//stub-refresh"),
];
/// What tokens are asked for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A running server of tokens on a loopback port. It ends when dropped.
#[derive(Debug)]
pub struct TokenServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    cancel: CancellationToken,
    private_key: String,
}

#[derive(Debug)]
struct Shared {
    public_key: Vec<u8>,
    address: SocketAddr,
    given: AtomicUsize,
    lifetime: AtomicU64,
}

impl TokenServer {
    /// Starts a server with a new key.
    ///
    /// # Errors
    /// When no loopback port or no key can be had.
    pub async fn start() -> io::Result<Self> {
        let no_key = |_| io::Error::other("no key can be made");
        let key = RsaKeyPair::generate(KeySize::Rsa2048).map_err(no_key)?;
        let der: Pkcs8V1Der<'_> = key.as_der().map_err(no_key)?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            public_key: key.public_key().as_ref().to_vec(),
            address,
            given: AtomicUsize::new(0),
            lifetime: AtomicU64::new(3600),
        });
        let cancel = CancellationToken::new();
        let router = Router::new()
            .route("/token", post(exchange))
            .route(
                "/computeMetadata/v1/instance/service-accounts/default/token",
                get(metadata),
            )
            .with_state(Arc::clone(&shared));
        let ended = cancel.clone();
        tokio::spawn(async move {
            let served =
                axum::serve(listener, router).with_graceful_shutdown(ended.cancelled_owned());
            if let Err(error) = served.await {
                tracing::warn!(%error, "the token server failed");
            }
        });
        Ok(Self {
            address,
            shared,
            cancel,
            private_key: pem(der.as_ref()),
        })
    }

    /// The credential file of the service account.
    #[must_use]
    pub fn service_account(&self) -> String {
        json!({
            "type": "service_account",
            "project_id": "stub-project",
            "private_key_id": KEY_ID,
            "private_key": self.private_key,
            "client_email": EMAIL,
            "token_uri": self.token_uri(),
        })
        .to_string()
    }

    /// The credential file of the user.
    #[must_use]
    pub fn user(&self) -> String {
        let mut file = json!({"type": "authorized_user", "token_uri": self.token_uri()});
        for (name, value) in USER {
            file[name] = value.into();
        }
        file.to_string()
    }

    /// Host and port, as a metadata server.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    fn token_uri(&self) -> String {
        format!("http://{}/token", self.address)
    }

    /// The token with `number`, counted from 1.
    #[must_use]
    pub fn token(number: usize) -> String {
        format!("ya29.stub-token-{number}")
    }

    /// How many tokens were given.
    #[must_use]
    pub fn given(&self) -> usize {
        self.shared.given.load(Ordering::SeqCst)
    }

    /// Tokens live for `seconds` from now on.
    pub fn set_lifetime(&self, seconds: u64) {
        self.shared.lifetime.store(seconds, Ordering::SeqCst);
    }
}

impl Drop for TokenServer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END PRIVATE KEY-----\n");
    pem
}

async fn metadata(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if headers
        .get("metadata-flavor")
        .is_none_or(|flavor| flavor != "Google")
    {
        return (
            StatusCode::FORBIDDEN,
            "Missing required header \"Metadata-Flavor\": \"Google\"",
        )
            .into_response();
    }
    give(&shared)
}

async fn exchange(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: String) -> Response {
    let kind = headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    if kind != Some("application/x-www-form-urlencoded") {
        return refuse("invalid_request", "the body must be a form");
    }
    let fields: Vec<(String, String)> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let field = |name: &str| {
        let found = fields.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    };
    match field("grant_type") {
        Some("refresh_token") => {
            if USER.iter().all(|(name, value)| field(name) == Some(*value)) {
                give(&shared)
            } else {
                refuse("invalid_grant", "Token has been expired or revoked.")
            }
        }
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer") => {
            match check(&shared, field("assertion").unwrap_or_default()) {
                Ok(()) => give(&shared),
                Err(reason) => refuse("invalid_grant", reason),
            }
        }
        other => refuse("unsupported_grant_type", other.unwrap_or("none")),
    }
}

fn check(shared: &Shared, assertion: &str) -> Result<(), &'static str> {
    let (text, signature) = assertion.rsplit_once('.').ok_or("Invalid JWT")?;
    let (head, claims) = text.split_once('.').ok_or("Invalid JWT")?;
    let signature = URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| "Invalid JWT")?;
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &shared.public_key)
        .verify(text.as_bytes(), &signature)
        .map_err(|_| "Invalid JWT Signature.")?;
    let read = |part: &str| -> Option<Value> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
    };
    let head = read(head).ok_or("Invalid JWT")?;
    let claims = read(claims).ok_or("Invalid JWT")?;
    if head["alg"] != "RS256" || head["kid"] != KEY_ID {
        return Err("Invalid JWT: the key is not known");
    }
    if claims["iss"] != EMAIL || claims["scope"] != SCOPE {
        return Err("Invalid JWT: account or scope");
    }
    if claims["aud"] != format!("http://{}/token", shared.address) {
        return Err("Invalid JWT: audience");
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let time = |key: &str| claims[key].as_u64().unwrap_or_default();
    let fits = time("iat") <= now + 60 && time("exp") > now && time("exp") <= time("iat") + 3600;
    fits.then_some(()).ok_or("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.")
}

fn give(shared: &Shared) -> Response {
    let number = shared.given.fetch_add(1, Ordering::SeqCst) + 1;
    let body = json!({
        "access_token": TokenServer::token(number),
        "expires_in": shared.lifetime.load(Ordering::SeqCst),
        "token_type": "Bearer",
    });
    axum::Json(body).into_response()
}

fn refuse(error: &str, description: &str) -> Response {
    let body = json!({"error": error, "error_description": description});
    (StatusCode::BAD_REQUEST, axum::Json(body)).into_response()
}
