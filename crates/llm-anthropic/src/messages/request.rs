//! The body of a request.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::cache;
use super::conversation::{Conversation, Rules, conversation, is_in_unsigned_loop};
use super::parameters::{Circumstances, Form, Parameters, parameters};
use super::tools::{Tool, of_history, tools};
use super::wire::Part;
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{ChatErrorKind, ChatRequest, answer_tool};

/// Most tokens of a reply that is asked for at once: longer ones may take more than the ten minutes
/// after which idle connections are cut, and are streamed.
pub(crate) const LONGEST_AT_ONCE: u64 = 21_333;

/// How requests are written for one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// The prompt cache gets marks where the caller set none.
    pub(crate) marks: bool,
    /// The model is named in the body.
    pub(crate) names_model: bool,
    /// The version of the interface, where it stands in the body.
    pub(crate) version: Option<&'static str>,
}

/// A request, ready to be written. It borrows the conversation.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    model: &'a str,
    style: Style,
    pub(crate) conversation: Conversation<'a>,
    pub(crate) tools: Vec<Tool<'a>>,
    pub(crate) parameters: Parameters<'a>,
    /// Whether the reply is to come as a stream.
    pub(crate) stream: bool,
    /// The tool by which the answer is given, if it is given so.
    pub(crate) answer_tool: Option<&'static str>,
}

impl<'a> Body<'a> {
    /// The request for `model`. The error is a sentence about what the model does not take.
    pub(crate) fn new(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        names: &'a ToolNames,
        model: &'a str,
        style: Style,
    ) -> Result<Self, (ChatErrorKind, String)> {
        let answer_tool = answer_tool::name(request.tools);
        let parameters = parameters(
            request.extra_args,
            settings,
            Circumstances {
                model,
                names,
                has_tools: !request.tools.is_empty(),
                answer_tool,
                unsigned_loop: is_in_unsigned_loop(request.messages),
            },
        )
        .map_err(|reason| (ChatErrorKind::UnsupportedParameter, reason))?;
        let rules = Rules {
            echo_thinking: parameters.echo_thinking,
            system_turns: parameters.abilities.system_turns,
            prefill: parameters.prefill,
        };
        let tools =
            tools(request.tools, names).map_err(|reason| (ChatErrorKind::BadRequest, reason))?;
        let mut body = Self {
            model,
            style,
            conversation: conversation(request.messages, names, rules),
            tools,
            stream: parameters.max_tokens > LONGEST_AT_ONCE,
            answer_tool: None,
            parameters,
        };
        body.ask_for_form(answer_tool);
        if body.tools.is_empty() {
            body.tools = of_history(request.messages, names);
            if !body.tools.is_empty() {
                let none = Cow::Owned(json!({"type": "none"}));
                body.parameters.fields.push(("tool_choice", none));
            }
        }
        if style.marks {
            cache::mark(
                &mut body.tools,
                &mut body.conversation,
                settings.marks_last_message(),
            );
        }
        cache::cap(&mut body.tools, &mut body.conversation);
        Ok(body)
    }

    fn ask_for_form(&mut self, answer_tool: &'static str) {
        match self.parameters.form {
            Form::Free => {}
            Form::Json => self
                .conversation
                .system
                .push(Part::text(answer_tool::JSON_ONLY)),
            Form::Tool(schema) => {
                self.tools.push(Tool::own(
                    answer_tool,
                    answer_tool::USE,
                    llm_wire::repair::rooted_parameters(schema),
                ));
                self.answer_tool = Some(answer_tool);
            }
        }
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(version) = self.style.version {
            map.serialize_entry("anthropic_version", version)?;
        }
        if self.style.names_model {
            map.serialize_entry("model", self.model)?;
        }
        // The order of the cached beginning: tools, system, messages.
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools)?;
        }
        if !self.conversation.system.is_empty() {
            map.serialize_entry("system", &self.conversation.system)?;
        }
        map.serialize_entry("messages", &self.conversation.turns)?;
        for (name, value) in &self.parameters.fields {
            map.serialize_entry(name, value)?;
        }
        if self.stream {
            map.serialize_entry("stream", &true)?;
        }
        map.end()
    }
}
