//! An event that happens: its file, and its actions one after the other (`spec/environment.md` §17.3).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mcp_gateway::Gateway;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::config::{Action, OnFailure};
use super::files::{self, Run};
use super::record::summary;
use super::run::Surroundings;

/// What an event's file says.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    path: PathBuf,
    run: Run,
    document: Value,
}

impl Occurrence {
    /// An event that happens now.
    pub(super) fn new(
        path: PathBuf,
        run: &Run,
        event_id: &str,
        checkpoint: &Value,
        trigger: &Value,
    ) -> Self {
        let document = json!({
            "event": event_id,
            "status": "running",
            "occurred_at": jiff::Timestamp::now(),
            "checkpoint": checkpoint,
            "trigger": trigger,
            "dispatches": [],
            "run_id": run.run_id,
            "environment_id": run.environment_id,
        });
        Self {
            path,
            run: run.clone(),
            document,
        }
    }

    /// Takes its file; `None` where it has happened in this run.
    pub(super) async fn claim(self) -> io::Result<Option<Self>> {
        let claimed = tokio::task::spawn_blocking(move || {
            let claimed = files::claim(&self.path, &self.run, &self.document)?;
            Ok(claimed.then_some(self))
        });
        claimed.await.map_err(io::Error::other)?
    }

    /// Runs the actions. When `cancel` comes, the one that is running and those after it fail.
    pub(super) async fn run(
        mut self,
        actions: Vec<Action>,
        surroundings: Surroundings,
        cancel: CancellationToken,
    ) {
        let mut aborted = false;
        for action in actions {
            let started_at = jiff::Timestamp::now();
            let started = Instant::now();
            let (id, kind, on_failure) = action.parts();
            let outcome = if aborted {
                Outcome::Skipped
            } else {
                tokio::select! {
                    biased;
                    outcome = action.act(&surroundings.gateway) => outcome,
                    () = cancel.cancelled() => Outcome::Failed("the action was cancelled".to_owned()),
                }
            };
            let (status, output, error) = match outcome {
                Outcome::Completed(output) => ("completed", output, None),
                Outcome::Skipped => ("skipped", Value::Null, None),
                Outcome::Failed(reason) => ("failed", Value::Null, Some(reason)),
            };
            if let Some(reason) = &error {
                tracing::warn!(action = id, reason, "an action of the coordinator failed");
                aborted |= on_failure == OnFailure::Abort || cancel.is_cancelled();
            }
            surroundings.metrics.action(kind, status, started.elapsed());
            let dispatch = json!({
                "action_id": id,
                "action_type": kind,
                "status": status,
                "started_at": started_at,
                "completed_at": jiff::Timestamp::now(),
                "output": output,
                "error": error,
            });
            if let Some(dispatches) = self.document["dispatches"].as_array_mut() {
                dispatches.push(dispatch);
            }
            self.save().await;
        }
        self.document["status"] = json!(if aborted { "failed" } else { "completed" });
        self.document["completed_at"] = json!(jiff::Timestamp::now());
        self.save().await;
    }

    async fn save(&self) {
        let (path, document) = (self.path.clone(), self.document.clone());
        let saved = tokio::task::spawn_blocking(move || files::write_json(&path, &document)).await;
        if let Err(error) = saved.map_err(io::Error::other).flatten() {
            tracing::warn!(%error, path = %self.path.display(), "an event cannot be recorded");
        }
    }
}

/// Marks events as failed that a killed environment was in the middle of.
pub(super) fn close_abandoned(path: &Path, run: &Run) -> io::Result<()> {
    let Some(mut document) = files::read_json::<Value>(path) else {
        return Ok(());
    };
    let of_run = serde_json::from_value::<Run>(document.clone()).is_ok_and(|known| known.is(run));
    if of_run && document["status"] == "running" {
        document["status"] = json!("failed");
        document["error"] = json!("the environment ended while the actions were running");
        files::write_json(path, &document)?;
    }
    Ok(())
}

enum Outcome {
    Completed(Value),
    Skipped,
    Failed(String),
}

impl Action {
    fn parts(&self) -> (String, &'static str, OnFailure) {
        match self {
            Self::CallMcpTool {
                action_id,
                on_failure,
                ..
            } => (action_id.clone(), "call_mcp_tool", *on_failure),
            Self::InvokeAgent {
                action_id,
                on_failure,
                ..
            } => (action_id.clone(), "invoke_agent", *on_failure),
        }
    }

    async fn act(self, gateway: &Gateway) -> Outcome {
        match self {
            Self::CallMcpTool {
                actor_id,
                tool_name,
                arguments,
                ..
            } => match gateway.call_tool(&actor_id, &tool_name, arguments).await {
                Ok(result) => Outcome::Completed(summary(&result)),
                Err(error) => Outcome::Failed(error.to_string()),
            },
            Self::InvokeAgent { actor_id, .. } => Outcome::Failed(format!(
                "this environment runs no virtual coworkers, so `{actor_id}` cannot be invoked"
            )),
        }
    }
}
