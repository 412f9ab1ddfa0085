//! Tools as they are written into a request.

use std::borrow::Cow;
use std::collections::HashSet;

use formats::chat::{Message, ToolDefinition};
use serde::Serialize;
use serde_json::{Value, json};

use super::blocks::mark_in;
use super::wire::Mark;
use llm_wire::repair::{ToolNames, rooted_parameters};

/// A tool.
#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    pub(crate) name: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) description: &'a str,
    pub(crate) input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_control: Mark<'a>,
}

impl<'a> Tool<'a> {
    /// A tool of our own.
    pub(crate) fn own(name: &'a str, description: &'a str, input_schema: Cow<'a, Value>) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind: "custom",
            description,
            input_schema,
            strict: None,
            cache_control: None,
        }
    }

    /// Whether the tool has a mark for the prompt cache.
    pub(crate) fn has_mark(&self) -> bool {
        self.cache_control.is_some()
    }

    /// Sets the mark, or takes it away.
    pub(crate) fn set_mark(&mut self, mark: Mark<'a>) {
        self.cache_control = mark;
    }
}

/// The tools of a request. The error is a sentence about a name that two of them have.
pub(crate) fn tools<'a>(
    tools: &'a [ToolDefinition],
    names: &'a ToolNames,
) -> Result<Vec<Tool<'a>>, String> {
    let mut seen = HashSet::new();
    tools
        .iter()
        .map(|tool| {
            let function = &tool.function;
            if !seen.insert(function.name.as_str()) {
                return Err(format!("two tools have the name `{}`", function.name));
            }
            Ok(Tool {
                description: &function.description,
                strict: function.extra.get("strict").and_then(Value::as_bool),
                cache_control: mark_in(&tool.extra),
                ..Tool::own("", "", rooted_parameters(&function.parameters))
            }
            .named(names.wire(&function.name)))
        })
        .collect()
}

impl<'a> Tool<'a> {
    fn named(mut self, name: Cow<'a, str>) -> Self {
        self.name = name;
        self
    }
}

/// The tools that the history calls, for a request that offers none: Anthropic refuses calls where
/// there are no tools.
pub(crate) fn of_history<'a>(messages: &'a [Message], names: &'a ToolNames) -> Vec<Tool<'a>> {
    let mut seen = HashSet::new();
    messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| call.function.name.as_str())
        .filter(|name| seen.insert(*name))
        .map(|name| {
            let schema = json!({"type": "object", "properties": {}});
            Tool::own("", "", Cow::Owned(schema)).named(names.wire(name))
        })
        .collect()
}
