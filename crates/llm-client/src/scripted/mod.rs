//! A provider that plays a script: `scripted/<path>`.
//!
//! It is an ordinary provider with ordinary replies and errors. It keeps no state: the answer
//! follows from the conversation alone, so repetitions, concurrent trials and resumed runs get the
//! right one. First come the rules, in order; where none applies, the turn counts. The number of the
//! turn is the number of assistant messages in the request, so a reply by a rule uses up a turn as
//! any other does, and a conversation that begins with assistant messages begins that much later.

mod script;

use std::path::Path;
use std::time::Duration;

use formats::Object;
use formats::chat::{Content, Message, Role, ToolCall, Usage};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use llm_wire::{ChatError, ChatErrorKind, ChatRequest, FinishReason, Provider, Reply, tokens};

pub(crate) use script::ScriptError;
use script::{Script, Turn};

pub(crate) const NAME: &str = "scripted";

/// One script, as a model.
#[derive(Debug)]
pub(crate) struct Scripted {
    /// The path as it stands in the model's name.
    name: String,
    script: Script,
}

impl Scripted {
    /// Reads the script at `path`, which is taken from `folder` if it is relative.
    pub(crate) fn load(path: &str, folder: &Path) -> Result<Self, ScriptError> {
        Ok(Self {
            name: path.to_owned(),
            script: Script::load(&folder.join(path))?,
        })
    }

    /// The turn for the conversation, and its number.
    fn choose(&self, messages: &[Message]) -> Result<(&Turn, usize), ChatError> {
        let number = messages
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .count();
        let by_rule = self
            .script
            .rules
            .iter()
            .find(|rule| rule.when.holds(messages, number));
        if let Some(rule) = by_rule {
            return Ok((&rule.reply, number));
        }
        self.script
            .turns
            .get(number)
            .map(|turn| (turn, number))
            .ok_or_else(|| self.past_the_end(number))
    }

    fn past_the_end(&self, number: usize) -> ChatError {
        let count = self.script.turns.len();
        let message = format!(
            "script `{}` has no answer for turn {}: it has {count} turn{}, and no rule of it applies",
            self.name,
            number + 1,
            if count == 1 { "" } else { "s" },
        );
        ChatError::new(ChatErrorKind::Script, NAME, message)
    }

    fn reply(&self, request: &ChatRequest<'_>) -> Result<(Reply, Duration), ChatError> {
        let (turn, number) = self.choose(request.messages)?;
        let message = message(turn, number);
        let finish_reason = match turn.finish_reason.as_deref() {
            None if message.tool_calls.is_empty() => FinishReason::Stop,
            None => FinishReason::ToolCalls,
            Some(word) => FinishReason::from_word(word),
        };
        let usage = turn
            .usage
            .clone()
            .unwrap_or_else(|| estimate(request, &message));
        let raw = json!({
            "id": format!("scripted-{number}"),
            "object": "chat.completion",
            "model": self.name,
            "choices": [{
                "index": 0,
                "message": message,
                "finish_reason": finish_reason.as_str(),
            }],
            "usage": usage,
        });
        let reply = Reply {
            finish_reason,
            usage: Some(usage),
            raw,
            cost_usd: Some(0.0),
            ..Reply::new(self.name.as_str(), message)
        };
        Ok((reply, Duration::from_millis(turn.delay_ms)))
    }
}

fn message(turn: &Turn, number: usize) -> Message {
    let content = match (&turn.content, &turn.json) {
        (Some(content), _) => Some(content.clone()),
        (None, Some(value)) => Some(Content::Text(value.to_string())),
        (None, None) => None,
    };
    let tool_calls = turn
        .tool_calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let id = call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{number:04}_{index}"));
            let arguments = match &call.arguments {
                Value::String(raw) => raw.clone(),
                value => value.to_string(),
            };
            ToolCall::new(id, &call.name, arguments)
        })
        .collect();
    Message {
        content,
        tool_calls,
        ..Message::assistant("")
    }
}

/// The usage of a call that nobody counted, marked as an estimate.
fn estimate(request: &ChatRequest<'_>, message: &Message) -> Usage {
    let tools = match request.tools {
        [] => 0,
        tools => tokens::of_json(&tools),
    };
    let prompt_tokens = tokens::of_json(&request.messages) + tools;
    let completion_tokens = tokens::of_json(message);
    let mut extra = Object::new();
    extra.insert("estimated".to_owned(), true.into());
    Usage {
        prompt_tokens,
        completion_tokens,
        total_tokens: prompt_tokens + completion_tokens,
        extra,
    }
}

impl Provider for Scripted {
    fn name(&self) -> &str {
        NAME
    }

    fn send<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<Reply, ChatError>> {
        async move {
            let (reply, delay) = self.reply(&request)?;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            Ok(reply)
        }
        .boxed()
    }
}
