//! Tool calls seen by the program around the gateway, and tool calls that it makes itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header};
use serde_json::{Map, Value, json};

use crate::endpoint::methods;
use crate::gateway::Gateway;
use crate::jsonrpc::{self, Outcome, RawObject};

/// The default actor: the agent under test. A caller from outside is always this one, whatever it
/// claims.
pub const TARGET_AGENT: &str = "target_agent";

/// Headers in which a client may say which program it is.
const ATTRIBUTION: [&str; 4] = [
    "x-agent-id",
    "x-agent-version",
    "x-orchestrator-id",
    "x-orchestrator-version",
];

/// Characters of each that are kept.
const MAX_ATTRIBUTION: usize = 128;

/// A `tools/call` that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Who called: [`TARGET_AGENT`] for every client of the endpoint, else what
    /// [`Gateway::call_tool`] was given.
    pub actor: String,
    /// The name under which the tool is served.
    pub tool: String,
    /// The arguments as they were sent; `null` where there were none.
    pub arguments: Value,
    /// What the client says about the program that calls: the headers `X-Agent-Id`, `X-Agent-Version`,
    /// `X-Orchestrator-Id` and `X-Orchestrator-Version`, as far as it sent them. Nothing follows from it.
    pub attribution: BTreeMap<&'static str, String>,
    /// The result of the tool, or why there is none: what the tool itself said was wrong, or what
    /// kept the call from reaching it.
    pub outcome: Result<Value, String>,
}

impl ToolCall {
    /// A call that has ended.
    #[must_use]
    pub fn new(
        actor: impl Into<String>,
        tool: impl Into<String>,
        arguments: Value,
        outcome: Result<Value, String>,
    ) -> Self {
        Self {
            actor: actor.into(),
            tool: tool.into(),
            arguments,
            attribution: BTreeMap::new(),
            outcome,
        }
    }
}

/// Sees every tool call at its end, before the caller gets its answer.
pub trait ToolCallObserver: Send + Sync {
    /// Whether calls are to be told at all. Asked for each call, so it has to be quick.
    fn is_interested(&self) -> bool;

    /// One call. The answer waits until this is done.
    fn observe(&self, call: ToolCall) -> BoxFuture<'_, ()>;
}

/// A call of the program itself that was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolCallError {
    /// There is no configuration.
    #[error("no MCP servers are configured")]
    NotConfigured,
    /// The tool, or what stands between, said no.
    #[error("{0}")]
    Failed(String),
}

impl Gateway {
    /// Lets `observer` see the tool calls of all clients and of [`call_tool`](Self::call_tool). The
    /// first observer stays; answers whether this is it.
    pub fn observe_tool_calls(&self, observer: Arc<dyn ToolCallObserver>) -> bool {
        self.inner.observer.set(observer).is_ok()
    }

    /// Calls a tool under its served name as `actor`, within the allowlist of the configuration. Servers
    /// over HTTP see the actor as a bearer token, all servers as `_meta.actor_id`. A server with
    /// `"isolation": "session"` is called in its instance that belongs to no session.
    ///
    /// # Errors
    /// Also when the tool says that it failed (`isError`); the text is then the tool's own.
    pub async fn call_tool(
        &self,
        actor: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, ToolCallError> {
        let entered = self.enter().ok_or(ToolCallError::NotConfigured)?;
        let generation = &entered.generation;
        let mut params = RawObject::default();
        params.set("name", jsonrpc::raw(tool));
        params.set("arguments", jsonrpc::raw(&arguments));
        params.set("_meta", jsonrpc::raw(&json!({"actor_id": actor})));
        let headers = as_actor(HeaderMap::new(), actor);
        let watched = self.watch_tool_call(actor, "tools/call", &params, &headers);
        let outcome = tokio::select! {
            biased;
            () = generation.aborted().cancelled() => {
                Ok(methods::tool_failure(methods::REPLACED))
            }
            outcome = methods::call_tool(generation, generation.shared(), params, None, headers) => outcome,
        };
        if let Some(watched) = watched {
            watched.ended(&outcome).await;
        }
        read_outcome(&outcome).map_err(ToolCallError::Failed)
    }

    /// What the observer needs to know of a request, where it is a tool call and somebody observes.
    pub(crate) fn watch_tool_call(
        &self,
        actor: &str,
        method: &str,
        params: &RawObject,
        headers: &HeaderMap,
    ) -> Option<WatchedCall> {
        if method != "tools/call" {
            return None;
        }
        let observer = self.inner.observer.get()?;
        observer.is_interested().then(|| WatchedCall {
            observer: observer.clone(),
            actor: actor.to_owned(),
            tool: params.text("name").unwrap_or_default(),
            arguments: params.read("arguments").unwrap_or_default(),
            attribution: attribution(headers),
        })
    }
}

/// A tool call whose end somebody waits for.
pub(crate) struct WatchedCall {
    observer: Arc<dyn ToolCallObserver>,
    actor: String,
    tool: String,
    arguments: Value,
    attribution: BTreeMap<&'static str, String>,
}

impl WatchedCall {
    pub(crate) async fn ended(self, outcome: &Outcome) {
        let outcome = read_outcome(outcome);
        let call = ToolCall {
            attribution: self.attribution,
            ..ToolCall::new(self.actor, self.tool, self.arguments, outcome)
        };
        self.observer.observe(call).await;
    }
}

fn attribution(headers: &HeaderMap) -> BTreeMap<&'static str, String> {
    let said = ATTRIBUTION.into_iter().filter_map(|name| {
        let value = headers.get(name)?.to_str().ok()?;
        Some((name, value.chars().take(MAX_ATTRIBUTION).collect()))
    });
    said.collect()
}

/// The result as a value; what a tool says is wrong counts as an error.
fn read_outcome(outcome: &Outcome) -> Result<Value, String> {
    let result = outcome.as_ref().map_err(jsonrpc::RpcError::message)?;
    let result: Value = serde_json::from_str(result.get())
        .map_err(|error| format!("the result is no JSON: {error}"))?;
    if result["isError"] != true {
        return Ok(result);
    }
    let texts: Vec<&str> = result["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["text"].as_str())
        .collect();
    Err(if texts.is_empty() {
        "the tool failed without a text".to_owned()
    } else {
        texts.join("\n")
    })
}

/// Adds the identity under which a tool is called, in place of any other.
pub(crate) fn as_actor(mut headers: HeaderMap, actor: &str) -> HeaderMap {
    match HeaderValue::from_str(&format!("Bearer {actor}")) {
        Ok(value) => headers.insert(header::AUTHORIZATION, value),
        // A name that no header can hold is told in `_meta` only.
        Err(_) => headers.remove(header::AUTHORIZATION),
    };
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_actor_replaces_every_other_identity() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        let seen = as_actor(headers.clone(), "coordinator");
        assert_eq!(seen[header::AUTHORIZATION], "Bearer coordinator");
        assert!(as_actor(headers, "new\nline").is_empty());
    }

    #[test]
    fn what_a_tool_says_is_wrong_is_an_error() {
        let of = |text: &str| read_outcome(&Ok(serde_json::from_str(text).unwrap()));
        assert!(of(r#"{"content": []}"#).is_ok());
        let failed = r#"{"isError": true, "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}"#;
        assert_eq!(of(failed).unwrap_err(), "a\nb");
        assert!(of(r#"{"isError": true, "content": []}"#).is_err());
        let refused = Err(jsonrpc::RpcError::new(-32602, "Unknown tool: 'x'"));
        assert_eq!(read_outcome(&refused).unwrap_err(), "Unknown tool: 'x'");
    }
}
