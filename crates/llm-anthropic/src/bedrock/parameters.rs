//! Where the parameters of a call stand in Converse, and which ones models other than Claude take.

use std::borrow::Cow;

use formats::Object;
use serde_json::{Value, json};

use crate::messages::output::native_schema;
use llm_wire::extra_args::{self, Settings};
use llm_wire::repair::ToolNames;

/// Fields of Converse that are sent as they are given.
const NATIVE: &[&str] = &[
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "performanceConfig",
    "projectIdentifier",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
];

/// The field for what only one kind of model knows.
const MODEL_FIELDS: &str = "additionalModelRequestFields";

/// Parameters of chat completions that mean nothing at this value, and are refused otherwise.
const HARMLESS: &[(&str, &str)] = &[
    ("n", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("logprobs", "false"),
    ("store", "false"),
    ("parallel_tool_calls", "true"),
];

/// How a family of models is told how much to reason.
#[derive(Debug, Clone, Copy)]
enum Effort {
    /// A field `reasoning_effort`.
    Field,
    /// Nova's object.
    Nova,
}

/// Families that reason on demand, by a part of their names.
const EFFORTS: &[(&str, Effort)] = &[
    ("openai.gpt-oss", Effort::Field),
    ("deepseek.v3", Effort::Field),
    ("qwen.qwen3", Effort::Field),
    ("amazon.nova-2", Effort::Nova),
];

/// Extra arguments, those of Converse itself apart.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Those that depend on the model.
    pub(super) rest: Object,
    /// Fields of Converse.
    pub(super) native: Object,
    /// What goes into [`MODEL_FIELDS`].
    model_fields: Object,
}

impl Given {
    /// Takes `extra_args` apart. The error is a sentence about a value.
    pub(super) fn read(extra_args: &Object) -> Result<Self, String> {
        let mut given = Self::default();
        for (name, value) in extra_args {
            if value.is_null() {
                continue;
            }
            match name.as_str() {
                MODEL_FIELDS => {
                    let fields = value.as_object().ok_or_else(|| {
                        format!("extra argument `{MODEL_FIELDS}` must be an object, got {value}")
                    })?;
                    given.model_fields.extend(fields.clone());
                }
                "service_tier" => {
                    given
                        .native
                        .insert("serviceTier".to_owned(), json!({ "type": value }));
                }
                "metadata" => {
                    given
                        .native
                        .insert("requestMetadata".to_owned(), value.clone());
                }
                name if NATIVE.contains(&name) => {
                    given.native.insert(name.to_owned(), value.clone());
                }
                name => {
                    given.rest.insert(name.to_owned(), value.clone());
                }
            }
        }
        Ok(given)
    }
}

/// The parameters of a request in Converse's places.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Fields of the body, by name.
    pub(super) fields: Object,
    /// The choice of tools.
    pub(super) tool_choice: Option<Value>,
}

/// Puts `fields`, which have Anthropic's names, where Converse has them.
pub(super) fn placed(fields: &[(&str, Cow<'_, Value>)], given: Given, betas: &[&str]) -> Placed {
    let mut inference = Object::new();
    let mut output = Object::new();
    let mut model_fields = Object::new();
    let mut tool_choice = None;
    for (name, value) in fields {
        let value = value.as_ref().clone();
        match *name {
            "max_tokens" => drop(inference.insert("maxTokens".to_owned(), value)),
            "temperature" => drop(inference.insert("temperature".to_owned(), value)),
            "top_p" => drop(inference.insert("topP".to_owned(), value)),
            "stop_sequences" => drop(inference.insert("stopSequences".to_owned(), value)),
            "tool_choice" => match choice(&value) {
                Some(native) => tool_choice = Some(native),
                // What Converse cannot say, the model's own field can.
                None => drop(model_fields.insert("tool_choice".to_owned(), value)),
            },
            "output_config" => output = output_config(&value, &mut model_fields),
            name => drop(model_fields.insert(name.to_owned(), value)),
        }
    }
    if !betas.is_empty() {
        model_fields.insert("anthropic_beta".to_owned(), json!(betas));
    }
    model_fields.extend(given.model_fields);
    let mut all = Object::new();
    for (name, object) in [
        ("inferenceConfig", inference),
        ("outputConfig", output),
        (MODEL_FIELDS, model_fields),
    ] {
        if !object.is_empty() {
            all.insert(name.to_owned(), object.into());
        }
    }
    all.extend(given.native);
    Placed {
        fields: all,
        tool_choice,
    }
}

/// The choice as Converse says it, if it can.
fn choice(choice: &Value) -> Option<Value> {
    if choice.get("disable_parallel_tool_use") == Some(&Value::Bool(true)) {
        return None;
    }
    match choice.get("type")?.as_str()? {
        "auto" => Some(json!({"auto": {}})),
        "any" => Some(json!({"any": {}})),
        "tool" => Some(json!({"tool": {"name": choice.get("name")?}})),
        _ => None,
    }
}

fn output_config(config: &Value, model_fields: &mut Object) -> Object {
    let mut output = Object::new();
    let mut rest = Object::new();
    for (key, value) in config.as_object().into_iter().flatten() {
        match key.as_str() {
            "effort" => drop(output.insert("effort".to_owned(), value.clone())),
            "format" => {
                // The schema is a text here.
                let schema = value.get("schema").unwrap_or(&Value::Null).to_string();
                let structure = json!({"jsonSchema": {"schema": schema, "name": "answer"}});
                output.insert(
                    "textFormat".to_owned(),
                    json!({"type": "json_schema", "structure": structure}),
                );
            }
            _ => drop(rest.insert(key.clone(), value.clone())),
        }
    }
    if !rest.is_empty() {
        model_fields.insert("output_config".to_owned(), rest.into());
    }
    output
}

/// The parameters of a model that is no Claude, by Anthropic's names.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) fields: Vec<(&'static str, Cow<'static, Value>)>,
    /// The limit of the reply, if one is given.
    pub(super) max_tokens: Option<u64>,
    /// Any JSON object is asked for.
    pub(super) json_only: bool,
    /// No tool is to be called.
    pub(super) no_calls: bool,
}

/// Reads the parameters of `model`, which is no Claude. The error is a sentence about one that it does
/// not take.
pub(super) fn plain(
    rest: &Object,
    settings: &Settings<'_>,
    model: &str,
    names: &ToolNames,
    has_tools: bool,
) -> Result<Plain, String> {
    let mut plain = Plain::default();
    let refuse = |name: &str, reason: &str| {
        if settings.drop_params {
            tracing::warn!(model, parameter = name, "parameter dropped: {reason}");
            return Ok(());
        }
        Err(format!(
            "parameter `{name}` for model `{model}`: {reason}; `drop_params: true` leaves such parameters out"
        ))
    };
    let mut given: Vec<(&str, Cow<'_, Value>)> = extra_args::parameters(rest)
        .map(|(name, value)| (name, Cow::Borrowed(value)))
        .collect();
    if let Some(effort) = settings.reasoning_effort
        && !rest.contains_key("reasoning_effort")
    {
        given.push(("reasoning_effort", Cow::Borrowed(effort)));
    }
    for (name, value) in given {
        let mut set = |name, value: Value| plain.fields.push((name, Cow::Owned(value)));
        match name {
            "max_tokens" | "max_completion_tokens" => {
                let tokens = value.as_u64().filter(|tokens| *tokens > 0).ok_or_else(|| {
                    format!("parameter `{name}` must be a whole number above 0, got {value}")
                })?;
                set("max_tokens", tokens.into());
                plain.max_tokens = Some(tokens);
            }
            "temperature" => set("temperature", value.into_owned()),
            "top_p" => set("top_p", value.into_owned()),
            "stop" | "stop_sequences" => {
                let list = match value.into_owned() {
                    Value::Array(list) => list,
                    one => vec![one],
                };
                set("stop_sequences", list.into());
            }
            "tool_choice" if !has_tools => {}
            "tool_choice" => {
                let named = value
                    .pointer("/function/name")
                    .or_else(|| value.get("name"));
                let choice = match (value.as_str(), named.and_then(Value::as_str)) {
                    (Some("auto"), _) => json!({"type": "auto"}),
                    (Some("required" | "any"), _) => json!({"type": "any"}),
                    (Some("none"), _) => {
                        plain.no_calls = true;
                        continue;
                    }
                    (None, Some(name)) => json!({"type": "tool", "name": names.wire(name)}),
                    _ => {
                        return Err(format!(
                            "parameter `tool_choice` must be auto, none, required or name one tool, got {value}"
                        ));
                    }
                };
                set("tool_choice", choice);
            }
            "reasoning_effort" => match effort(model, &value) {
                Some((name, value)) => set(name, value),
                None if *value == "none" => {}
                None => refuse(
                    name,
                    "how it reasons cannot be set here; `additionalModelRequestFields` may",
                )?,
            },
            "response_format" => match value.get("type").and_then(Value::as_str) {
                Some("text") => {}
                Some("json_object") => plain.json_only = true,
                Some("json_schema") => {
                    let schema = value
                        .pointer("/json_schema/schema")
                        .filter(|schema| schema.is_object())
                        .ok_or("parameter `response_format` has no `json_schema.schema`")?;
                    let schema = native_schema(schema).unwrap_or_else(|| schema.clone());
                    set("output_config", json!({"format": {"schema": schema}}));
                }
                _ => refuse(name, "its `type` must be text, json_object or json_schema")?,
            },
            _ => {
                let text = value.to_string();
                let is_harmless = HARMLESS.iter().any(|(other, borne)| {
                    *other == name && (text == *borne || text == format!("{borne}.0"))
                });
                if !is_harmless {
                    refuse(
                        name,
                        "Converse does not have it; put it into `extra_body` to send it to the model all the same",
                    )?;
                }
            }
        }
    }
    Ok(plain)
}

/// The field that tells `model` how much to reason.
fn effort(model: &str, effort: &Value) -> Option<(&'static str, Value)> {
    let (_, way) = EFFORTS.iter().find(|(part, _)| model.contains(part))?;
    Some(match way {
        Effort::Field => ("reasoning_effort", effort.clone()),
        Effort::Nova if effort == "none" => ("reasoningConfig", json!({"type": "disabled"})),
        Effort::Nova => (
            "reasoningConfig",
            json!({"type": "enabled", "maxReasoningEffort": effort}),
        ),
    })
}
