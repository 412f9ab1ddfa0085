//! The body of a request.

use std::borrow::Cow;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use serde::Serialize;
use serde_json::Value;

use super::blocks::{Block, CachePoint, Turn, cache_point, written};
use super::parameters::{Given, placed, plain};
use crate::messages::conversation::{Rules, conversation};
use crate::messages::request::{Body, LONGEST_AT_ONCE, Style};
use crate::messages::tools::{Tool, of_history, tools};
use crate::messages::wire::Part;
use crate::messages::{cache, family};
use llm_wire::answer_tool::JSON_ONLY;
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;
use llm_wire::{ChatErrorKind, ChatRequest};

/// A request, ready to be written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Converse<'a> {
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(flatten)]
    fields: Object,
    /// Whether the reply is to come as a stream.
    #[serde(skip)]
    pub(super) stream: bool,
    /// The tool by which the answer is given, if it is given so.
    #[serde(skip)]
    pub(super) answer_tool: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<ToolEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum ToolEntry<'a> {
    ToolSpec(ToolSpec<'a>),
    CachePoint(CachePoint),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSpec<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Schema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Schema<'a> {
    json: Cow<'a, Value>,
}

/// What the prompt cache of a model takes marks on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// There is none.
    None,
    /// The system text and messages.
    Texts,
    /// Tools too.
    All,
}

fn cache_of(model: &str) -> Cache {
    if is_claude(model) {
        // The first generation with a prompt cache at Bedrock.
        if family::thinks(model) || model.contains("claude-3-5-haiku") {
            Cache::All
        } else {
            Cache::None
        }
    } else if model.contains("amazon.nova") {
        Cache::Texts
    } else {
        Cache::None
    }
}

/// Whether `model` is one of Anthropic's.
fn is_claude(model: &str) -> bool {
    model.contains("claude")
}

impl<'a> Converse<'a> {
    /// The request for `model`, whose extra arguments are `given`. The error is a sentence about what
    /// the model does not take.
    pub(super) fn new(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        given: Given,
        names: &'a ToolNames,
        model: &'a str,
    ) -> Result<Self, (ChatErrorKind, String)> {
        if is_claude(model) {
            Self::claude(request, settings, given, names, model)
        } else {
            Self::other(request, settings, given, names, model)
        }
    }

    fn claude(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        given: Given,
        names: &'a ToolNames,
        model: &'a str,
    ) -> Result<Self, (ChatErrorKind, String)> {
        let style = Style {
            marks: cache_of(model) == Cache::All,
            names_model: false,
            version: None,
        };
        let body = Body::new(request, settings, names, model, style)?;
        let placed = placed(&body.parameters.fields, given, &settings.betas);
        let (system, messages) = written(body.conversation);
        Ok(Self {
            messages,
            system,
            tool_config: tool_config(body.tools, placed.tool_choice),
            fields: placed.fields,
            stream: body.stream,
            answer_tool: body.answer_tool,
        })
    }

    fn other(
        request: &ChatRequest<'a>,
        settings: &Settings<'a>,
        given: Given,
        names: &'a ToolNames,
        model: &'a str,
    ) -> Result<Self, (ChatErrorKind, String)> {
        let plain = plain(
            request.extra_args,
            settings,
            model,
            names,
            !request.tools.is_empty(),
        )
        .map_err(|reason| (ChatErrorKind::UnsupportedParameter, reason))?;
        let rules = Rules {
            // Nobody else signs what it thought, and what is not signed is not taken back.
            echo_thinking: false,
            system_turns: false,
            prefill: false,
        };
        let mut conversation = conversation(request.messages, names, rules);
        if plain.json_only {
            conversation.system.push(Part::text(JSON_ONLY));
        }
        let mut tools = offered(request.tools, request.messages, names, plain.no_calls)
            .map_err(|reason| (ChatErrorKind::BadRequest, reason))?;
        match cache_of(model) {
            Cache::None => cache::clear(&mut tools, &mut conversation),
            Cache::Texts | Cache::All => {
                for tool in &mut tools {
                    tool.set_mark(None);
                }
                cache::mark(&mut [], &mut conversation, settings.marks_last_message());
                cache::cap(&mut [], &mut conversation);
            }
        }
        let mut fields = plain.fields;
        for (name, value) in settings.body.into_iter().flatten() {
            fields.push((name, Cow::Borrowed(value)));
        }
        let placed = placed(&fields, given, &[]);
        let (system, messages) = written(conversation);
        Ok(Self {
            messages,
            system,
            tool_config: tool_config(tools, placed.tool_choice),
            fields: placed.fields,
            stream: plain
                .max_tokens
                .is_some_and(|tokens| tokens > LONGEST_AT_ONCE),
            answer_tool: None,
        })
    }
}

/// The tools that are offered: those of the history too, where calls in it need them.
fn offered<'a>(
    given: &'a [ToolDefinition],
    messages: &'a [Message],
    names: &'a ToolNames,
    no_calls: bool,
) -> Result<Vec<Tool<'a>>, String> {
    let has_calls = messages
        .iter()
        .any(|message| !message.tool_calls.is_empty());
    match (given.is_empty(), no_calls) {
        (false, false) => tools(given, names),
        _ if !has_calls => Ok(Vec::new()),
        (true, _) => Ok(of_history(messages, names)),
        (false, true) => {
            tracing::warn!("`tool_choice: none` is left out: there are calls in the history");
            tools(given, names)
        }
    }
}

fn tool_config<'a>(tools: Vec<Tool<'a>>, tool_choice: Option<Value>) -> Option<ToolConfig<'a>> {
    if tools.is_empty() {
        return None;
    }
    let mut entries = Vec::with_capacity(tools.len() + 1);
    for tool in tools {
        let point = tool.cache_control.as_deref().map(cache_point);
        entries.push(ToolEntry::ToolSpec(ToolSpec {
            name: tool.name,
            description: tool.description,
            input_schema: Schema {
                json: tool.input_schema,
            },
            strict: tool.strict,
        }));
        entries.extend(point.map(ToolEntry::CachePoint));
    }
    Some(ToolConfig {
        tools: entries,
        tool_choice,
    })
}
