//! `POST /apps`.

use formats::apps::{AppsApplied, AppsConfig};
use reqwest::StatusCode;
use serde_json::Value;

use super::EnvironmentClient;
use super::error::{Call, ClientError};
use super::reply::bounded;

/// A server that did not become ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedServer {
    /// Its name in the configuration.
    pub name: String,
    /// What the environment says about it, bounded.
    pub reason: String,
    /// Whether the reason is a program or folder that does not exist or may not be used: a mistake
    /// in the configuration.
    pub missing: bool,
}

impl EnvironmentClient {
    /// Configures the MCP servers and waits until they serve.
    ///
    /// # Errors
    /// [`ClientError::ServersNotReady`] with the reason of each server that could not start,
    /// [`ClientError::Refused`] where the configuration is not accepted.
    pub async fn apps(&self, config: &AppsConfig) -> Result<AppsApplied, ClientError> {
        let (call, limit) = (Call::Apps, self.settings.apps);
        let configure = async {
            let request = self.http.post(self.url("/apps")).json(config);
            let response = self.send(call, request, limit).await?;
            match response.status() {
                status if status.is_success() => self.document(call, response).await,
                StatusCode::SERVICE_UNAVAILABLE => {
                    let body = self.body(call, response).await?;
                    Err(self.not_ready(&body))
                }
                _ => Err(self.refused(call, response).await),
            }
        };
        tokio::time::timeout(limit, configure)
            .await
            .map_err(|_| ClientError::TimedOut { call, limit })?
    }

    /// The error for a 503 (`spec/environment.md` §5.4).
    fn not_ready(&self, body: &[u8]) -> ClientError {
        let limit = self.settings.reply_characters;
        let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
        let detail = parsed.get("detail").filter(|detail| detail.is_object());
        let Some(detail) = detail else {
            return ClientError::Refused {
                call: Call::Apps,
                status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
                detail: bounded(&super::reply::detail(body), limit),
            };
        };
        let failed = detail.get("failed_servers").and_then(Value::as_array);
        let failed = failed
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|name| {
                let said = detail.get("details").and_then(|details| details.get(name));
                failed_server(name, said, limit)
            })
            .collect();
        let summary = detail.get("error").and_then(Value::as_str).unwrap_or("");
        ClientError::ServersNotReady {
            summary: bounded(summary, limit),
            failed,
        }
    }
}

fn failed_server(name: &str, said: Option<&Value>, limit: usize) -> FailedServer {
    let reason = said
        .and_then(|said| said.get("error"))
        .and_then(Value::as_str)
        .unwrap_or("no reason given");
    FailedServer {
        name: name.to_owned(),
        reason: bounded(reason, limit),
        missing: said.is_some_and(|said| names_something_missing(said, reason)),
    }
}

/// Whether a server failed because its program or folder does not exist or may not be used.
fn names_something_missing(_said: &Value, reason: &str) -> bool {
    // What the system says about it, in the words of the first line: what follows is the server's
    // own output, where "not found" may mean anything.
    let first = reason.lines().next().unwrap_or("").to_ascii_lowercase();
    [
        "no such file or directory",
        "os error 2)",
        "os error 13)",
        "permission denied",
        "program not found",
        "does not exist",
    ]
    .iter()
    .any(|words| first.contains(words))
}
