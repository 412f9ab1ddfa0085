//! The body of a request.

use formats::Object;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::blocks::finest_resolution;
use super::conversation::{Conversation, Rules, Signatures, conversation};
use super::family::Abilities;
use super::parameters::{Circumstances, Form, Parameters, parameters};
use super::tools::{Declaration, Functions};
use super::wire::Part;
use llm_wire::extra_args::Settings;
use llm_wire::repair::{Renamed, gemini_parameters};
use llm_wire::{ChatErrorKind, ChatRequest, Given, answer_tool};

/// A request, ready to be written. It borrows the conversation.
#[derive(Debug)]
pub(super) struct Body<'a> {
    conversation: Conversation<'a>,
    declarations: Vec<Declaration<'a>>,
    fields: Object,
    /// The function by which the answer is given, if it is given so.
    pub(super) answer: Option<AnswerFunction>,
    /// Only the first call of the answer counts.
    pub(super) one_call: bool,
}

/// The function by which a model gives its answer.
#[derive(Debug)]
pub(super) struct AnswerFunction {
    pub(super) name: &'static str,
    /// Names in the answer that are written differently.
    pub(super) renamed: Renamed,
}

impl<'a> Body<'a> {
    /// The request for `model`. The error is a sentence about what the model does not take.
    pub(super) fn new(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        functions: &'a Functions,
        model: &str,
        abilities: Abilities,
        signatures: Signatures,
    ) -> Result<Self, (ChatErrorKind, String)> {
        let Parameters {
            fields,
            form,
            one_call,
        } = parameters(
            request.extra_args,
            settings,
            Given::new(request.extra_args, settings, model),
            Circumstances {
                abilities,
                names: &functions.names,
                has_tools: !request.tools.is_empty(),
                resolution: finest_resolution(request.messages),
            },
        )
        .map_err(|reason| (ChatErrorKind::UnsupportedParameter, reason))?;
        let rules = Rules {
            abilities,
            signatures,
        };
        let mut body = Self {
            conversation: conversation(request.messages, functions, rules),
            declarations: functions.declarations(request.tools),
            fields,
            answer: None,
            one_call,
        };
        match form {
            Form::Free => {}
            Form::Json => body
                .conversation
                .system
                .push(Part::text(answer_tool::JSON_ONLY)),
            Form::Function(schema) => {
                let name = answer_tool::name(request.tools);
                let (parameters, renamed) = gemini_parameters(schema);
                let own = Functions::own(name, answer_tool::USE, parameters);
                body.declarations.push(own);
                body.answer = Some(AnswerFunction { name, renamed });
            }
        }
        Ok(body)
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // What stays the same from step to step comes first: prompt caches know beginnings.
        if !self.conversation.system.is_empty() {
            let instruction = json!({"parts": &self.conversation.system});
            map.serialize_entry("systemInstruction", &instruction)?;
        }
        // A list without declarations is refused.
        if !self.declarations.is_empty() {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Tool<'d> {
                function_declarations: &'d [Declaration<'d>],
            }
            let tool = Tool {
                function_declarations: &self.declarations,
            };
            map.serialize_entry("tools", &[tool])?;
        }
        map.serialize_entry("contents", &self.conversation.turns)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
