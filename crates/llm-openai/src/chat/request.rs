//! The body of a request.

use formats::chat::{Content, Message, Role, ToolDefinition};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::dialect::Dialect;
use super::parameters::{Parameters, parameters};
use super::wire::{Messages, Style, Tools};
use llm_wire::ChatRequest;
use llm_wire::extra_args::Settings;
use llm_wire::repair::{Entry, ToolNames, mended};

/// A request, ready to be written. It borrows the conversation.
pub(crate) struct Body<'a> {
    model: &'a str,
    entries: Vec<Entry<'a>>,
    tools: &'a [ToolDefinition],
    parameters: Parameters<'a>,
    dialect: Dialect,
    marks_last: bool,
    /// Whether the reply is to come as a stream.
    pub(super) stream: bool,
    /// Tool names of this request, to map back those of the answer.
    pub(crate) names: ToolNames,
}

impl<'a> Body<'a> {
    /// The request for `model`. The error is a sentence about a parameter that it does not take.
    pub(crate) fn new(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        dialect: Dialect,
        model: &'a str,
    ) -> Result<Self, String> {
        let names = ToolNames::new(request.tools, request.messages);
        let parameters = parameters(
            request.extra_args,
            settings,
            dialect,
            model,
            &names,
            !request.tools.is_empty(),
        )?;
        Ok(Self {
            model,
            entries: mended(request.messages),
            tools: request.tools,
            parameters,
            dialect,
            marks_last: settings.marks_last_message(),
            stream: false,
            names,
        }
        .without_blank_turns())
    }

    /// Whether a proxy translates the request for a provider.
    fn is_for(&self, provider: &str) -> bool {
        self.dialect == Dialect::Proxy && self.model.starts_with(provider)
    }

    /// Anthropic refuses blank texts, and takes an assistant's turn at the end for the beginning of the
    /// reply; so an assistant's turn of nothing goes (`spec/llm.md` §6.1, §18.2).
    fn without_blank_turns(mut self) -> Self {
        if self.is_for("anthropic/") {
            self.entries.retain(|entry| match entry {
                Entry::Message(message) => !is_blank_turn(message),
                Entry::Calls { .. } | Entry::Result { .. } => true,
            });
        }
        self
    }
}

fn is_blank_turn(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.content.as_ref().is_none_or(Content::is_blank)
        && !message.extra.contains_key("thinking_blocks")
        && message.reasoning_content().is_none()
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let style = Style {
            dialect: self.dialect,
            names: &self.names,
            anthropic: self.is_for("anthropic/"),
            marks: self.is_for("anthropic/") || self.is_for("bedrock/"),
            marks_last: self.marks_last,
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry(
            "messages",
            &Messages {
                entries: &self.entries,
                style,
            },
        )?;
        if !self.tools.is_empty() {
            map.serialize_entry(
                "tools",
                &Tools {
                    tools: self.tools,
                    style,
                },
            )?;
        }
        for (name, value) in &self.parameters {
            map.serialize_entry(name, value)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
            map.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
