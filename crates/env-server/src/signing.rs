//! Signed requests (`spec/environment.md` §18).
//!
//! Besides the rules there: a nonce counts once within the window, and the body goes to a file while it is
//! hashed, so that its size costs no memory.

use std::collections::HashMap;
use std::io::SeekFrom;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use futures::StreamExt as _;
use http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncSeekExt as _, AsyncWriteExt as _};
use tokio_util::io::ReaderStream;

use crate::error::ApiError;
use crate::rest::decoded;
use crate::settings::Settings;

/// How far the time of a request may be from ours.
const WINDOW: Duration = Duration::from_secs(300);

/// Nonces that are remembered; one more is refused until old ones are over.
const MAX_NONCES: usize = 100_000;

/// Bytes of a nonce.
const MAX_NONCE: usize = 256;

/// Signatures that requests have to carry.
#[derive(Debug)]
pub struct RequestSigning {
    key: VerifyingKey,
    /// Nonces that were used, and until when they are remembered.
    nonces: Mutex<HashMap<String, SystemTime>>,
}

/// The public key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the public key of request signatures is not the base64 of a 32-byte Ed25519 key")]
pub struct SigningKeyError;

impl RequestSigning {
    /// Asks for signatures that the private half of this key has made.
    ///
    /// # Errors
    /// When it is not the base64 of 32 bytes that are an Ed25519 key.
    pub fn new(public_key: &str) -> Result<Self, SigningKeyError> {
        let bytes = STANDARD
            .decode(public_key.trim())
            .map_err(|_| SigningKeyError)?;
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| SigningKeyError)?;
        Ok(Self {
            key: VerifyingKey::from_bytes(&bytes).map_err(|_| SigningKeyError)?,
            nonces: Mutex::default(),
        })
    }

    /// Remembers a nonce; `false` where it was used before.
    fn is_new(&self, nonce: &str, now: SystemTime) -> bool {
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.len() >= MAX_NONCES {
            nonces.retain(|_, until| *until > now);
        }
        if nonces.len() >= MAX_NONCES {
            return false;
        }
        match nonces.get(nonce) {
            Some(until) if *until > now => false,
            _ => {
                // A request may be as much ahead of us as behind.
                nonces.insert(nonce.to_owned(), now + WINDOW * 2);
                true
            }
        }
    }
}

/// What the headers say.
struct Claim<'h> {
    timestamp: &'h str,
    nonce: &'h str,
    signature: Signature,
}

impl<'h> Claim<'h> {
    fn read(headers: &'h HeaderMap, now: SystemTime) -> Option<Self> {
        let get = |name: &str| headers.get(name)?.to_str().ok();
        let timestamp = get("x-studio-timestamp")?;
        let nonce = get("x-studio-nonce")?;
        if nonce.is_empty() || nonce.len() > MAX_NONCE {
            return None;
        }
        let seconds: i64 = timestamp.parse().ok()?;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        let now = i64::try_from(now).ok()?;
        if now.abs_diff(seconds) > WINDOW.as_secs() {
            return None;
        }
        let signature = STANDARD.decode(get("x-studio-signature")?).ok()?;
        Some(Self {
            timestamp,
            nonce,
            signature: Signature::from_slice(&signature).ok()?,
        })
    }
}

/// Whether a path needs no signature. Whole components count: `/mcpx` is not `/mcp`.
fn is_exempt(path: &str) -> bool {
    matches!(path, "/" | "/health" | "/mcp" | "/rest")
        || path.starts_with("/mcp/")
        || path.starts_with("/rest/")
}

/// The request again, where it is signed or signatures are not asked for.
pub(crate) async fn signed(settings: &Settings, request: Request) -> Result<Request, ApiError> {
    match &settings.signing {
        Some(signing) if !is_exempt(request.uri().path()) => {
            verified(signing, request, settings.data.max_upload_bytes).await
        }
        _ => Ok(request),
    }
}

async fn verified(
    signing: &RequestSigning,
    request: Request,
    limit: u64,
) -> Result<Request, ApiError> {
    let (parts, body) = request.into_parts();
    let path = decoded(parts.uri.path());
    let refused = || {
        ApiError::new(
            StatusCode::FORBIDDEN,
            format!(
                "Request signature verification failed for {} {path}",
                parts.method
            ),
        )
    };
    let now = SystemTime::now();
    let claim = Claim::read(&parts.headers, now).ok_or_else(refused)?;
    let (hash, body) = hashed(body, limit).await?;
    let query = parts.uri.query().map(|query| format!("?{query}"));
    let message = format!(
        "{}\n{path}{}\n{}\n{}\n{hash}",
        parts.method,
        query.unwrap_or_default(),
        claim.timestamp,
        claim.nonce,
    );
    signing
        .key
        .verify_strict(message.as_bytes(), &claim.signature)
        .map_err(|_| refused())?;
    // Only what is really signed uses a nonce up.
    if !signing.is_new(claim.nonce, now) {
        return Err(refused());
    }

    Ok(Request::from_parts(parts, body))
}

/// The SHA-256 of a body, and the body again.
async fn hashed(body: Body, limit: u64) -> Result<(String, Body), ApiError> {
    let disk = |error: std::io::Error| {
        ApiError::internal(format!(
            "the body cannot be kept while it is checked: {error}"
        ))
    };
    let mut pieces = body.into_data_stream();
    let mut hash = Sha256::new();
    let mut kept: Option<tokio::fs::File> = None;
    let mut total = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece
            .map_err(|error| ApiError::bad_request(format!("the body cannot be read: {error}")))?;
        total += piece.len() as u64;
        if total > limit {
            return Err(ApiError::too_large(format!(
                "the body is larger than {limit} bytes (max_upload_bytes)"
            )));
        }
        hash.update(&piece);
        let file = match &mut kept {
            Some(file) => file,
            none => none.insert(tokio::fs::File::from_std(
                tempfile::tempfile().map_err(disk)?,
            )),
        };
        file.write_all(&piece).await.map_err(disk)?;
    }
    let hash: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let body = match kept {
        None => Body::empty(),
        Some(mut file) => {
            file.flush().await.map_err(disk)?;
            file.seek(SeekFrom::Start(0)).await.map_err(disk)?;
            Body::from_stream(ReaderStream::with_capacity(file, 128 * 1024))
        }
    };
    Ok((hash, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exempt_paths_are_whole_components() {
        for path in ["/", "/health", "/mcp", "/mcp/", "/rest/a/b"] {
            assert!(is_exempt(path), "{path}");
        }
        for path in [
            "/mcpfoo",
            "/restless",
            "/health/",
            "/docs",
            "/data/populate",
            "/metrics",
        ] {
            assert!(!is_exempt(path), "{path}");
        }
    }

    #[test]
    fn a_nonce_counts_once() {
        let key = STANDARD.encode([
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64,
            0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68,
            0xf7, 0x07, 0x51, 0x1a,
        ]);
        let signing = RequestSigning::new(&key).unwrap();
        let now = SystemTime::now();
        assert!(signing.is_new("a", now));
        assert!(!signing.is_new("a", now));
        assert!(signing.is_new("b", now));
        assert!(signing.is_new("a", now + WINDOW * 3));
        assert!(RequestSigning::new("AAAA").is_err());
        assert!(RequestSigning::new("not base64").is_err());
    }
}
