//! The coordinator: the world reacts while the agent works (`spec/environment.md` §17).
//!
//! It records every tool call, and when the trigger of an event holds it calls tools. One task owns a
//! configuration: it takes the calls in their order, looks at the triggers, and starts the actions,
//! which run beside it. The coordinator itself lives as long as the environment and passes calls on to
//! the task that runs at the moment.

mod config;
mod event;
mod files;
mod record;
mod run;
mod trigger;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use formats::apps::AppsConfig;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mcp_gateway::{Gateway, ToolCall, ToolCallObserver};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

pub(crate) use config::CoordinatorConfig;
use files::Run;
use run::{Message, Owner, Surroundings};

use crate::error::{ApiError, InvalidItem};
use crate::json_body;
use crate::metrics::Metrics;
use crate::settings::Settings;

/// How long actions that were cancelled may take to end.
const AFTER_CANCEL: Duration = Duration::from_secs(5);

/// Calls that wait to be recorded.
const QUEUE: usize = 64;

/// What makes the world react.
#[derive(Debug)]
pub(crate) struct Coordinator {
    root: PathBuf,
    drain: Duration,
    max_events: usize,
    max_recorded_bytes: usize,
    metrics: Arc<Metrics>,
    /// Tells runs without a name apart.
    environment_id: String,
    active: RwLock<Option<Active>>,
}

/// A configuration that is enabled.
#[derive(Debug, Clone)]
struct Active {
    config: Value,
    messages: mpsc::Sender<Message>,
}

/// The coordinator could not start.
#[derive(Debug, thiserror::Error)]
#[error("Environment Coordinator could not use its directory `{}`: {source}", root.display())]
pub(crate) struct StartError {
    root: PathBuf,
    source: std::io::Error,
}

impl Coordinator {
    pub(crate) fn new(settings: &Settings, metrics: Arc<Metrics>) -> Self {
        let own = &settings.coordinator;
        Self {
            root: own
                .root
                .clone()
                .unwrap_or_else(|| settings.apps_data.root.join(".coordinator")),
            drain: own.drain,
            max_events: own.max_events,
            max_recorded_bytes: own.max_recorded_bytes,
            metrics,
            environment_id: uuid::Uuid::new_v4().simple().to_string(),
            active: RwLock::default(),
        }
    }

    /// Reads the part of a configuration that is ours.
    pub(crate) fn read(&self, config: &AppsConfig) -> Result<Option<CoordinatorConfig>, ApiError> {
        #[derive(Deserialize)]
        struct Part {
            coordinator_config: Option<CoordinatorConfig>,
        }
        let Some(value) = &config.coordinator_config else {
            return Ok(None);
        };
        if !value.is_object() {
            let loc = vec![json!("body"), json!("coordinator_config")];
            return Err(ApiError::invalid(&json_body::no_object(loc, value.clone())));
        }
        let part: Part = json_body::parse(&json!({"coordinator_config": value}))
            .map_err(|item| ApiError::invalid(&item))?;
        let Some(ours) = part.coordinator_config else {
            return Ok(None);
        };
        ours.check(self.max_events).map_err(|reason| {
            let loc = vec![json!("body"), json!("coordinator_config"), json!("events")];
            ApiError::invalid(&InvalidItem::value(loc, &reason, Value::Null))
        })?;
        Ok(Some(ours))
    }

    /// Makes `config` the one that is followed. The same as before changes nothing; another one ends
    /// the events of the old one. Answers whether anything has changed.
    pub(crate) async fn configure(
        &self,
        config: Option<CoordinatorConfig>,
        given: Option<&Value>,
        gateway: &Gateway,
    ) -> Result<bool, StartError> {
        let config = config.filter(|config| config.enabled);
        let given = given.cloned().unwrap_or_default();
        match (self.active(), &config) {
            (None, None) => return Ok(false),
            (Some(active), Some(_)) if active.config == given && !active.messages.is_closed() => {
                return Ok(false);
            }
            _ => self.stop(Duration::ZERO).await,
        }
        let Some(config) = config else {
            return Ok(true);
        };
        if !config.agents.is_empty() {
            tracing::warn!("virtual coworkers are configured, and this environment runs none");
        }
        let run = Run {
            run_id: config.run_id.clone(),
            environment_id: self.environment_id.clone(),
        };
        let (messages, queue) = mpsc::channel(QUEUE);
        let surroundings = Surroundings {
            gateway: gateway.clone(),
            metrics: self.metrics.clone(),
        };
        let owner = Owner::open(
            self.root.clone(),
            run,
            config,
            without_secrets(&given),
            surroundings,
            self.max_recorded_bytes,
        );
        let owner = owner.await.map_err(|source| StartError {
            root: self.root.clone(),
            source,
        })?;
        tokio::spawn(owner.run(queue));
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = Some(Active {
            config: given,
            messages,
        });
        Ok(true)
    }

    /// Looks at the triggers once more and waits until no action is running; what takes longer than the
    /// limit is cancelled.
    pub(crate) async fn drain(&self) {
        if let Some(active) = self.active() {
            let (done, drained) = oneshot::channel();
            let limit = self.drain;
            if active
                .messages
                .send(Message::Drain { limit, done })
                .await
                .is_ok()
            {
                let _ = drained.await;
            }
        }
    }

    /// Ends the events. Actions that are running get `grace`.
    pub(crate) async fn stop(&self, grace: Duration) {
        let active = self
            .active
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(active) = active {
            let (done, stopped) = oneshot::channel();
            let message = Message::Stop { grace, done };
            if active.messages.send(message).await.is_ok() {
                let _ = stopped.await;
            }
        }
    }

    fn active(&self) -> Option<Active> {
        self.active
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ToolCallObserver for Coordinator {
    fn is_interested(&self) -> bool {
        self.active
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    fn observe(&self, call: ToolCall) -> BoxFuture<'_, ()> {
        async move {
            if let Some(active) = self.active() {
                let (done, recorded) = oneshot::channel();
                let message = Message::Call { call, done };
                if active.messages.send(message).await.is_ok() {
                    let _ = recorded.await;
                }
            }
        }
        .boxed()
    }
}

/// A configuration as it is kept in the world: the variables of coworkers may hold keys.
fn without_secrets(config: &Value) -> Value {
    let mut config = config.clone();
    let agents = config.get_mut("agents").and_then(Value::as_object_mut);
    for agent in agents.into_iter().flat_map(serde_json::Map::values_mut) {
        let env = agent.get_mut("env").and_then(Value::as_object_mut);
        for value in env.into_iter().flat_map(serde_json::Map::values_mut) {
            *value = json!("[redacted]");
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_coworkers_are_not_kept() {
        let config = json!({"agents": {"a": {"persona": "p", "env": {"KEY": "secret"}}}, "x": 1});
        let right =
            json!({"agents": {"a": {"persona": "p", "env": {"KEY": "[redacted]"}}}, "x": 1});
        assert_eq!(without_secrets(&config), right);
        assert_eq!(
            without_secrets(&json!({"agents": []})),
            json!({"agents": []})
        );
    }
}
