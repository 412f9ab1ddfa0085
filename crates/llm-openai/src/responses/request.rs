//! The body of a request.

use std::borrow::Cow;

use formats::chat::ToolDefinition;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::conversation::conversation;
use super::items::Item;
use super::parameters::{Parameters, parameters};
use llm_wire::ChatRequest;
use llm_wire::extra_args::Settings;
use llm_wire::repair::{ToolNames, openai_parameters};

/// A request, ready to be written. It borrows the conversation.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    model: &'a str,
    input: Vec<Item<'a>>,
    tools: Vec<Tool<'a>>,
    parameters: Parameters<'a>,
    /// Whether the reply is to come as a stream.
    pub(super) stream: bool,
}

impl<'a> Body<'a> {
    /// The request for `model`. The error is a sentence about a parameter that it does not take.
    pub(crate) fn new(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        names: &'a ToolNames,
        model: &'a str,
    ) -> Result<Self, String> {
        let parameters = parameters(
            request.extra_args,
            settings,
            model,
            names,
            !request.tools.is_empty(),
        )?;
        let native = parameters.native_tools.iter().map(Tool::Native);
        let tools = request
            .tools
            .iter()
            .map(|tool| function(tool, names))
            .chain(native)
            .collect();
        Ok(Self {
            model,
            input: conversation(request.messages, names),
            tools,
            parameters,
            stream: false,
        })
    }
}

/// A tool.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: Cow<'a, Value>,
        strict: bool,
    },
    /// One that the provider runs, in its own form.
    #[serde(untagged)]
    Native(&'a Value),
}

fn function<'a>(tool: &'a ToolDefinition, names: &'a ToolNames) -> Tool<'a> {
    let function = &tool.function;
    let strict = function.extra.get("strict").and_then(Value::as_bool);
    Tool::Function {
        name: names.wire(&function.name),
        description: &function.description,
        parameters: openai_parameters(&function.parameters),
        // Unlike chat completions, this interface is strict unless it is told otherwise, and few
        // schemas of tools are fit for that.
        strict: strict.unwrap_or(false),
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("input", &self.input)?;
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools)?;
        }
        for (name, value) in &self.parameters.fields {
            map.serialize_entry(name, value)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        map.end()
    }
}
