//! The log file of the reference (`FILE_LOGGING`, `spec/agents.md` §17): one JSON record per line,
//! whose `extra.message_type` says what it is about.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use agent_core::Observer;
use formats::Object;
use formats::chat::{Block, Content, KnownBlock, Message};
use formats::event::{Event, EventKind, ToolOutcome};
use program::{Refused, Variables};
use serde_json::{Value, json};

use crate::run::is_true;

/// Appends records to a file; each is handed to the system at once.
pub(crate) struct LogFile {
    state: Mutex<State>,
}

struct State {
    file: File,
    /// Whether a record could not be written; no further one is tried.
    broken: bool,
    /// Keys that every record has.
    context: Object,
    agent: String,
    /// What the next message warns of.
    warning: Option<Object>,
    retries: Retries,
}

/// Failed attempts of the model call under way.
#[derive(Default)]
struct Retries {
    count: u32,
    waited: f64,
    last_error: String,
}

impl LogFile {
    /// The log that the variables ask for.
    ///
    /// # Errors
    /// When it is asked for without a path, or the file cannot be opened.
    pub(crate) fn open(variables: &Variables) -> Result<Option<Self>, Refused> {
        if !variables
            .get("FILE_LOGGING")
            .is_some_and(|value| is_true(&value))
        {
            return Ok(None);
        }
        let path = variables.get("FILE_LOG_PATH").ok_or_else(|| {
            Refused::configuration("`FILE_LOGGING` is on and `FILE_LOG_PATH` names no file")
        })?;
        let path = Path::new(&path);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let opened = folder.and_then(|()| File::options().create(true).append(true).open(path));
        let file = opened.map_err(|error| {
            Refused::configuration(format_args!(
                "cannot write the log `{}` of `FILE_LOG_PATH`: {error}",
                path.display()
            ))
        })?;
        Ok(Some(Self {
            state: Mutex::new(State {
                file,
                broken: false,
                context: Object::new(),
                agent: String::new(),
                warning: None,
                retries: Retries::default(),
            }),
        }))
    }
}

impl Observer for LogFile {
    fn event(&self, event: &Event) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .event(event);
    }
}

impl State {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted {
                trajectory_id,
                agent_config_id,
                model,
                messages,
            } => self.begin(event, trajectory_id, agent_config_id, model, messages),
            EventKind::RunContinued { model } => {
                self.info(
                    event,
                    None,
                    &format!("The run goes on with {model}"),
                    json!({}),
                );
            }
            EventKind::Configured { tools } => {
                let text = format!("{} tools are there", tools.len());
                self.info(event, Some("configure"), &text, json!({"payload": tools}));
            }
            EventKind::StepStarted => {
                let text = format!("Step {} begins", event.step.unwrap_or_default());
                self.info(event, Some("step"), &text, json!({}));
            }
            EventKind::Retry {
                wait_seconds,
                failure,
                ..
            } => {
                self.retries.count += 1;
                self.retries.waited += wait_seconds;
                self.retries.last_error.clone_from(&failure.kind);
            }
            EventKind::Reasoning { text } => self.info(event, Some("reasoning"), text, json!({})),
            EventKind::Response {
                message, duration, ..
            } => {
                self.response(event, message, *duration);
            }
            EventKind::Message { message } => {
                if let Some(warning) = self.warning.take() {
                    let extra = Value::Object(warning);
                    self.info(event, Some("turn_warning"), &message.text(), extra);
                }
            }
            EventKind::ToolCall { call } => {
                let name = &call.function.name;
                let extra =
                    json!({"ref": call.id, "name": name, "payload": call.function.arguments});
                self.info(event, Some("tool_call"), &format!("Calling {name}"), extra);
            }
            EventKind::ToolResult {
                message, outcome, ..
            } => self.result(event, message, *outcome),
            EventKind::Compacted {
                before, messages, ..
            } => {
                let text = format!("Summarised {before} messages to {}", messages.len());
                self.info(event, Some("resum"), &text, json!({}));
            }
            EventKind::Budget { details } => self.budget(event, details),
            EventKind::Warning { message } => {
                self.write(event, "WARNING", Some("step"), message, json!({}));
            }
            EventKind::FinalAnswer { answer, .. } => {
                self.info(event, Some("final_answer"), answer, json!({}));
            }
            EventKind::RunEnded { status, failure } => {
                if let Some(failure) = failure {
                    self.retried(event, "error", Some(&failure.kind), None);
                    self.write(event, "ERROR", None, &failure.to_string(), json!({}));
                }
                self.info(event, None, &format!("The run ended {status}"), json!({}));
            }
            // What happens inside has its own place: the events.
            EventKind::Subagent { name, event: inner } => {
                if let EventKind::RunEnded { status, .. } = &inner.kind {
                    let text = format!("The subagent {name} ended {status}");
                    self.info(event, None, &text, json!({}));
                }
            }
            _ => {}
        }
    }

    fn begin(
        &mut self,
        event: &Event,
        trajectory_id: &str,
        agent: &str,
        model: &str,
        messages: &[Message],
    ) {
        self.agent = agent.to_owned();
        self.context
            .insert("trajectory_id".into(), trajectory_id.into());
        self.info(
            event,
            None,
            &format!("Running {model} with {agent}"),
            json!({}),
        );
        if agent != "loop_agent" {
            return;
        }
        self.context.insert("model".into(), model.into());
        self.info(event, Some("configure"), "The loop begins", json!({}));
        for message in messages {
            let role = message.role.as_str();
            let (first, rest) = role.split_at(role.len().min(1));
            let text = format!("{}{rest}: {}", first.to_uppercase(), message.text());
            self.info(event, Some("configure"), &text, json!({}));
        }
    }

    fn response(&mut self, event: &Event, message: &Message, seconds: f64) {
        self.retried(event, "success", None, Some(seconds));
        let thinking = message
            .extra
            .get("thinking_blocks")
            .and_then(Value::as_array);
        for block in thinking.into_iter().flatten() {
            if let Some(text) = block.get("thinking").and_then(Value::as_str) {
                self.write(event, "DEBUG", Some("thinking"), text, json!({}));
            }
        }
        let (text, calls) = (message.text(), &message.tool_calls);
        let is_loop = self.agent == "loop_agent";
        // The loop agent's last text is its answer, which has a record of its own.
        let is_answer = is_loop && calls.is_empty();
        if !is_answer && !text.trim().is_empty() {
            self.info(event, Some("response"), &text, json!({}));
        }
        if !is_loop && !calls.is_empty() {
            let names: Vec<&str> = calls
                .iter()
                .map(|call| call.function.name.as_str())
                .collect();
            let text = format!("Calling tools: {}", names.join(", "));
            self.info(event, Some("step"), &text, json!({}));
        }
    }

    /// After a model call that was repeated or failed.
    fn retried(&mut self, event: &Event, status: &str, error: Option<&str>, seconds: Option<f64>) {
        let retries = std::mem::take(&mut self.retries);
        if retries.count == 0 {
            return;
        }
        let extra = json!({
            "func_name": "chat", "attempts": retries.count + 1, "retries_used": retries.count,
            "total_backoff_seconds": retries.waited, "total_wall_seconds": seconds,
            "final_status": status, "final_error_class": error,
        });
        let text = format!(
            "The model call was repeated {} times, last after {}",
            retries.count, retries.last_error
        );
        self.info(event, Some("llm_retry_summary"), &text, extra);
    }

    fn result(&mut self, event: &Event, message: &Message, outcome: ToolOutcome) {
        let name = message.name.as_deref().unwrap_or_default();
        let mut extra = json!({"ref": message.tool_call_id, "name": name});
        if matches!(outcome, ToolOutcome::Ok | ToolOutcome::ToolError) {
            extra["payload"] = payload(message.content.as_ref());
        }
        let (level, text) = match outcome {
            ToolOutcome::Ok => ("INFO", format!("{name} gave a result")),
            _ => ("ERROR", format!("{name} failed: {}", message.text())),
        };
        self.write(event, level, Some("tool_result"), &text, extra);
    }

    fn budget(&mut self, event: &Event, details: &Object) {
        let kind = details.get("kind").and_then(Value::as_str);
        let mut extra = details.clone();
        extra.remove("kind");
        if kind == Some("turn_warning") {
            // Its text is the message that follows; both come before the step that they are about.
            let step = event.step.unwrap_or(0) + 1;
            extra.insert("step".into(), step.into());
            self.warning = Some(extra);
            return;
        }
        extra.insert("step".into(), event.step.into());
        let (level, text) = match details.get("call_cost_usd").and_then(Value::as_f64) {
            Some(usd) => ("INFO", format!("The call cost ${usd:.6}")),
            None => ("WARNING", "The cost of the call is not known".to_owned()),
        };
        self.write(event, level, kind, &text, Value::Object(extra));
    }

    fn info(&mut self, event: &Event, kind: Option<&str>, message: &str, extra: Value) {
        self.write(event, "INFO", kind, message, extra);
    }

    /// Problems of the log are told once and never end a run.
    fn write(
        &mut self,
        event: &Event,
        level: &str,
        kind: Option<&str>,
        message: &str,
        extra: Value,
    ) {
        if self.broken {
            return;
        }
        let mut all = self.context.clone();
        if let Some(kind) = kind {
            all.insert("message_type".into(), kind.into());
        }
        if let Value::Object(extra) = extra {
            all.extend(extra);
        }
        let record =
            json!({"timestamp": event.time, "level": level, "message": message, "extra": all});
        let line = format!("{record}\n");
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.broken = true;
            program::say(format_args!(
                "warning: the log file is not written any more: {error}"
            ));
        }
    }
}

/// The parts of a result, pictures by their kind only.
fn payload(content: Option<&Content>) -> Value {
    match content {
        None => Value::Null,
        Some(Content::Text(text)) => json!(text),
        Some(Content::Blocks(blocks)) => blocks
            .iter()
            .map(|block| match block {
                Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
                    let kind = image_url.url.split([';', ',']).next().unwrap_or_default();
                    json!({"type": "image_url", "image_url": {"url": format!("{kind}, left out")}})
                }
                other => json!(other),
            })
            .collect(),
    }
}
