//! A tool server, a scripted model and an observer for tests.

pub mod model;
pub mod server;

use std::sync::{Arc, Mutex};

use agent_core::{Agents, Observer, RunInput, ToolSources, run};
use formats::chat::Message;
use formats::event::{Event, EventKind};
use formats::trajectory::{AgentStatus, Trajectory};
use llm_client::Model;
use serde_json::{Value, json};

/// Keeps every event.
#[derive(Default, Clone)]
pub struct Events(Arc<Mutex<Vec<Event>>>);

impl Observer for Events {
    fn event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Events {
    pub fn all(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// The events as JSON objects of type `kind`.
    pub fn of(&self, kind: &str) -> Vec<Value> {
        self.all()
            .iter()
            .map(|event| serde_json::to_value(event).unwrap())
            .filter(|event| event["type"] == kind)
            .collect()
    }

    pub fn warnings(&self) -> Vec<String> {
        self.all()
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::Warning { message } => Some(message),
                _ => None,
            })
            .collect()
    }
}

/// A trajectory's messages as `role: text [calls]` lines, ids left out.
pub fn lines(trajectory: &Trajectory) -> Vec<String> {
    trajectory.messages.iter().map(line).collect()
}

pub fn line(message: &Message) -> String {
    let mut line = format!("{}: {}", message.role.as_str(), message.text());
    let pictures = message
        .content
        .iter()
        .flat_map(formats::chat::Content::blocks)
        .filter(|block| block.as_image_url().is_some())
        .count();
    if pictures > 0 {
        line.push_str(&format!("<{pictures} images>"));
    }
    for call in &message.tool_calls {
        line.push_str(&format!(
            " [{}({})]",
            call.function.name, call.function.arguments
        ));
    }
    line.trim_end().to_owned()
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// Why the run ended, for assertions that say it.
pub fn why(trajectory: &Trajectory) -> String {
    trajectory.error.as_ref().map_or_else(
        || trajectory.status.to_string(),
        |error| {
            format!(
                "{} {}/{}: {}",
                trajectory.status, error.owner, error.kind, error.message
            )
        },
    )
}

/// Waits for something that happens in another task.
pub async fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    for _ in 0..500 {
        if check() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never happened: {what}");
}

/// Runs an agent with the tools of `server`; the task is "go".
pub async fn go(agent: &str, settings: Value, model: Model, server: &server::Server) -> Trajectory {
    let input = RunInput::new(model)
        .agent(agent, settings)
        .user("go")
        .tools(ToolSources::gateway(&server.url));
    run(&Agents::builtin(), input).await.unwrap()
}

#[track_caller]
pub fn assert_completed(trajectory: &Trajectory) {
    assert_eq!(
        trajectory.status,
        AgentStatus::Completed,
        "{}\n{:#?}",
        why(trajectory),
        lines(trajectory)
    );
}

/// Status, owner and kind of a run that did not complete.
pub fn end(trajectory: &Trajectory) -> (AgentStatus, &str, &str) {
    let error = trajectory.error.as_ref().expect("the run has an error");
    (trajectory.status, error.owner.as_str(), &error.kind)
}

/// Every call of the record has exactly one answer, before the next message that is no answer.
#[track_caller]
pub fn assert_every_call_answered(messages: &[Message]) {
    assert_eq!(model::objection(messages), None);
}
