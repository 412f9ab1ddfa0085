//! Reading replies: bounded, and with the reason where they are errors.

use std::time::Duration;

use reqwest::Response;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::EnvironmentClient;
use super::error::{Call, ClientError, chain};

/// How long a lost connection waits for the news that the environment is gone.
const DEATH_NOTICE: Duration = Duration::from_millis(500);

/// How long the body of an error may take; its status is known already.
const ERROR_BODY: Duration = Duration::from_secs(5);

impl EnvironmentClient {
    /// The error for a broken connection, with the end of the environment if that is why.
    pub(super) async fn lost(&self, call: Call, error: &reqwest::Error) -> ClientError {
        let died = match &self.life {
            Some(life) => life.ended_within(DEATH_NOTICE).await,
            None => None,
        };
        ClientError::Lost {
            call,
            url: self.base_url.clone(),
            reason: chain(error),
            died,
        }
    }

    /// The error for a reply with an unexpected status.
    pub(super) async fn refused(&self, call: Call, response: Response) -> ClientError {
        let status = response.status().as_u16();
        let body = tokio::time::timeout(ERROR_BODY, self.body(call, response)).await;
        let detail = match body {
            Ok(Ok(body)) => detail(&body),
            // The status alone has to do.
            Ok(Err(_)) | Err(_) => String::new(),
        };
        ClientError::Refused {
            call,
            status,
            detail: bounded(&detail, self.settings.reply_characters),
        }
    }

    /// The body of a reply that is read as a whole.
    pub(super) async fn body(
        &self,
        call: Call,
        mut response: Response,
    ) -> Result<Vec<u8>, ClientError> {
        let limit = self.settings.reply_bytes;
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                    return Err(ClientError::TooLarge {
                        call,
                        limit: limit as u64,
                    });
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(body),
                Err(error) => return Err(self.lost(call, &error).await),
            }
        }
    }

    /// The body of a successful reply as a document.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        call: Call,
        response: Response,
    ) -> Result<T, ClientError> {
        let body = self.body(call, response).await?;
        serde_json::from_slice(&body).map_err(|error| ClientError::Reply {
            call,
            reason: format!(
                "{error} in `{}`",
                bounded(
                    &String::from_utf8_lossy(&body),
                    self.settings.reply_characters
                )
            ),
        })
    }
}

/// What an error body says: the text or the items of its `detail`, else the body itself.
pub(super) fn detail(body: &[u8]) -> String {
    let Ok(parsed) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).trim().to_owned();
    };
    match parsed.get("detail") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(item).collect::<Vec<_>>().join("; "),
        Some(other) => other.to_string(),
        None => parsed.to_string(),
    }
}

/// One item of a validation error (`spec/environment.md` §2): `body.mcpServers.x: Field required`.
fn item(item: &Value) -> String {
    let Some(message) = item.get("msg").and_then(Value::as_str) else {
        return item.to_string();
    };
    let place: Vec<String> = item
        .get("loc")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|part| {
            part.as_str()
                .map_or_else(|| part.to_string(), str::to_owned)
        })
        .collect();
    format!("{}: {message}", place.join("."))
}

/// At most `limit` characters of `text`, marked where it was cut.
pub(super) fn bounded(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} … ({} bytes in all)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_every_documented_shape_are_shown() {
        for (body, expected) in [
            (r#"{"detail": "not a gzip file"}"#, "not a gzip file"),
            (
                r#"{"detail": [{"type": "missing", "loc": ["body", "mcpServers", 0], "msg": "Field required"}]}"#,
                "body.mcpServers.0: Field required",
            ),
            (r#"{"detail": {"a": 1}}"#, r#"{"a":1}"#),
            (r#"{"other": 1}"#, r#"{"other":1}"#),
            ("Internal Server Error\n", "Internal Server Error"),
            ("", ""),
        ] {
            assert_eq!(detail(body.as_bytes()), expected);
        }
    }

    #[test]
    fn long_bodies_are_cut_between_characters() {
        assert_eq!(bounded("äöü", 3), "äöü");
        assert_eq!(bounded("äöü", 2), "äö … (6 bytes in all)");
    }
}
