//! Which parameters a model takes, decided before anything is sent (`spec/llm.md` §5.4–§5.6).

use std::borrow::Cow;

use formats::Object;
use serde_json::{Value, json};

use super::family::{Abilities, Thinking, abilities, max_output};
use super::output::native_schema;
use super::thinking::{Plan, plan};
use llm_wire::Given;
use llm_wire::extra_args::Settings;
use llm_wire::repair::ToolNames;

/// Fields of Anthropic's interface that are sent as they are.
const NATIVE: &[&str] = &[
    "container",
    "context_management",
    "inference_geo",
    "mcp_servers",
];

/// Least `top_p` beside a budget for thinking.
const LEAST_TOP_P: f64 = 0.95;

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Parameters<'a> {
    /// Fields of the body, by name.
    pub(crate) fields: Vec<(&'a str, Cow<'a, Value>)>,
    /// The limit of the reply.
    pub(crate) max_tokens: u64,
    /// What the model takes.
    pub(crate) abilities: Abilities,
    /// Whether what the model thought is sent back to it.
    pub(crate) echo_thinking: bool,
    /// Whether an assistant's turn may stand at the end.
    pub(crate) prefill: bool,
    /// How the answer's form is asked for.
    pub(crate) form: Form<'a>,
}

/// The form of an answer, where the fields do not say it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form<'a> {
    /// Free, or told by `output_config`.
    Free,
    /// Any JSON object.
    Json,
    /// A call of a tool of our own with this schema.
    Tool(&'a Value),
}

/// What else of a request decides about its parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) model: &'a str,
    pub(crate) names: &'a ToolNames,
    /// Whether the caller offers tools.
    pub(crate) has_tools: bool,
    /// The name of the tool for structured answers.
    pub(crate) answer_tool: &'a str,
    /// A tool loop without signed thinking is open.
    pub(crate) unsigned_loop: bool,
}

/// The parameters out of `extra_args`.
///
/// The error is a sentence about a parameter that the model does not take.
pub(crate) fn parameters<'a>(
    extra_args: &'a Object,
    settings: &Settings<'a>,
    about: Circumstances<'a>,
) -> Result<Parameters<'a>, String> {
    let mut reader = Reader {
        given: Given::new(extra_args, settings, about.model),
        about,
        abilities: abilities(about.model),
        fields: Vec::new(),
    };
    let max_tokens = reader.given.max_tokens()?;
    let max_tokens = max_tokens.unwrap_or_else(|| max_output(about.model));
    reader.set("max_tokens", json!(max_tokens));
    let choice = reader.tool_choice()?;
    let plan = reader.plan(choice.as_ref(), max_tokens)?;
    reader.sampling(plan.has_budget())?;
    reader.simple()?;
    let (form, format) = reader.form(extra_args)?;
    reader.output_config(&plan, format);
    let choice = choice.or_else(|| reader.own_choice(form, &plan));
    if let Some(choice) = choice {
        reader.set("tool_choice", choice);
    }
    reader.given.refuse_the_rest("Anthropic's")?;
    let Reader {
        abilities,
        mut fields,
        ..
    } = reader;
    let echo_thinking = match abilities.thinking {
        Thinking::Never => false,
        Thinking::Budget => plan.has_budget(),
        Thinking::Adaptive | Thinking::AdaptiveOnly => true,
    };
    let prefill = abilities.prefill && !plan.has_budget();
    if let Some(thinking) = plan.thinking {
        fields.push(("thinking", Cow::Owned(thinking)));
    }
    for (name, value) in settings.body.into_iter().flatten() {
        fields.retain(|(earlier, _)| earlier != name);
        fields.push((name, Cow::Borrowed(value)));
    }
    Ok(Parameters {
        fields,
        max_tokens,
        abilities,
        echo_thinking,
        prefill,
        form,
    })
}

/// Takes the given parameters one after the other.
struct Reader<'a> {
    given: Given<'a>,
    about: Circumstances<'a>,
    abilities: Abilities,
    fields: Vec<(&'a str, Cow<'a, Value>)>,
}

impl<'a> Reader<'a> {
    fn set(&mut self, name: &'a str, value: Value) {
        self.fields.push((name, Cow::Owned(value)));
    }

    /// The choice of tools, with the switch for parallel calls in it.
    fn tool_choice(&mut self) -> Result<Option<Value>, String> {
        let choice = self.given.take("tool_choice");
        let parallel = self.given.parallel_tool_calls()?;
        if !self.about.has_tools {
            // There is nothing to choose from, and Anthropic refuses a choice without tools.
            return Ok(None);
        }
        let mut choice = choice
            .map(|choice| self.native_choice(&choice))
            .transpose()?;
        if let Some(parallel) = parallel {
            let choice = choice.get_or_insert_with(|| json!({"type": "auto"}));
            if choice["type"] != "none" {
                choice["disable_parallel_tool_use"] = json!(!parallel);
            }
        }
        Ok(choice)
    }

    fn native_choice(&self, choice: &Value) -> Result<Value, String> {
        let wrong = || {
            format!(
                "parameter `tool_choice` must be auto, none, required or name one tool, got {choice}"
            )
        };
        let kind = match choice {
            Value::String(word) => word.as_str(),
            object => object
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        };
        let named = |name: Option<&Value>| {
            let name = name.and_then(Value::as_str).ok_or_else(wrong)?;
            Ok(json!({"type": "tool", "name": self.about.names.wire(name)}))
        };
        let is_forced = !matches!(kind, "auto" | "none");
        if is_forced && self.abilities.always_thinks {
            self.given
                .refuse("tool_choice", "the model cannot be made to call a tool")?;
            return Ok(json!({"type": "auto"}));
        }
        match kind {
            "auto" | "none" => Ok(json!({"type": kind})),
            "required" | "any" => Ok(json!({"type": "any"})),
            "function" => named(choice.pointer("/function/name")),
            "tool" => named(choice.get("name")),
            _ => Err(wrong()),
        }
    }

    fn plan(&mut self, choice: Option<&Value>, max_tokens: u64) -> Result<Plan, String> {
        let thinking = self.given.take("thinking");
        let effort = self.given.take("reasoning_effort");
        let name = if thinking.is_some() {
            "thinking"
        } else {
            "reasoning_effort"
        };
        let planned = plan(
            thinking.as_ref(),
            effort.as_ref(),
            self.abilities,
            max_tokens,
        );
        let planned = match planned {
            Ok(planned) => planned,
            Err(reason) => {
                self.given.refuse(name, &reason)?;
                return Ok(Plan::default());
            }
        };
        let kind = choice
            .and_then(|choice| choice.get("type"))
            .and_then(Value::as_str);
        let reason = if !planned.has_budget() {
            return Ok(planned);
        } else if matches!(kind, Some("any" | "tool")) {
            "a call is demanded, which excludes thinking"
        } else if self.about.unsigned_loop {
            "the open tool loop began without thinking"
        } else {
            return Ok(planned);
        };
        self.given.leave_out(name, reason);
        Ok(Plan::default())
    }

    fn sampling(&mut self, has_budget: bool) -> Result<(), String> {
        let given = ["temperature", "top_p", "top_k"].map(|name| (name, self.given.take(name)));
        let has_temperature = given[0].1.is_some();
        for (name, value) in given {
            let Some(value) = value else { continue };
            let number = value.as_f64();
            let is_default = name != "top_k" && number == Some(1.0);
            if !self.abilities.sampling {
                if !is_default {
                    self.given.refuse(name, "the model does not take it")?;
                }
                continue;
            }
            if name != "top_k" && !number.is_some_and(|number| (0.0..=1.0).contains(&number)) {
                self.given
                    .refuse(name, &format!("it must be from 0 to 1, got {value}"))?;
                continue;
            }
            let beside_thinking = match name {
                "temperature" => is_default,
                "top_p" => number.is_some_and(|number| number >= LEAST_TOP_P),
                _ => false,
            };
            if has_budget && !beside_thinking {
                self.given
                    .leave_out(name, "it cannot stand beside thinking");
            } else if name == "top_p" && has_temperature && !self.abilities.both_samplings {
                self.given
                    .leave_out(name, "it cannot stand beside `temperature`");
            } else {
                self.set(name, value);
            }
        }
        Ok(())
    }

    /// Parameters that neither depend on others nor change them.
    fn simple(&mut self) -> Result<(), String> {
        for name in ["stop", "stop_sequences"] {
            if let Some(stop) = self.given.take(name) {
                self.stop(name, stop)?;
            }
        }
        if let Some(tier) = self.given.take("service_tier") {
            match tier.as_str() {
                Some("auto" | "standard_only") => self.set("service_tier", tier),
                _ => self.given.refuse(
                    "service_tier",
                    &format!("it must be auto or standard_only, got {tier}"),
                )?,
            }
        }
        if let Some(metadata) = self.given.take("metadata") {
            let fits = metadata
                .as_object()
                .is_some_and(|fields| fields.keys().all(|key| key == "user_id"));
            if fits {
                self.set("metadata", metadata);
            } else {
                self.given
                    .refuse("metadata", "Anthropic takes nothing but `user_id` in it")?;
            }
        }
        if let Some(user) = self.given.take("user") {
            match user.as_str() {
                Some(id) if is_personal(id) => {
                    self.given
                        .leave_out("user", "Anthropic wants no address or number of a person");
                }
                _ => self.set("metadata", json!({"user_id": user})),
            }
        }
        for name in NATIVE {
            if let Some(value) = self.given.take(name) {
                self.set(name, value);
            }
        }
        Ok(())
    }

    fn stop(&mut self, name: &'static str, stop: Value) -> Result<(), String> {
        let all = match stop {
            Value::Array(list) => list,
            one => vec![one],
        };
        let mut sequences = Vec::with_capacity(all.len());
        for sequence in all {
            match sequence.as_str() {
                Some(text) if !text.trim().is_empty() => sequences.push(sequence),
                _ => self.given.refuse(
                    name,
                    &format!("a sequence must be a text that is not blank, got {sequence}"),
                )?,
            }
        }
        if !sequences.is_empty() {
            self.set("stop_sequences", sequences.into());
        }
        Ok(())
    }

    /// The form of the answer, and the native format that says it.
    fn form(&mut self, extra_args: &'a Object) -> Result<(Form<'a>, Option<Value>), String> {
        self.given.take("response_format");
        let Some(format) = extra_args
            .get("response_format")
            .filter(|format| !format.is_null())
        else {
            return Ok((Form::Free, None));
        };
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok((Form::Free, None)),
            Some("json_object") => Ok((Form::Json, None)),
            Some("json_schema") => {
                let schema = format
                    .pointer("/json_schema/schema")
                    .or_else(|| format.get("schema"))
                    .filter(|schema| schema.is_object())
                    .ok_or("parameter `response_format` has no `json_schema.schema`")?;
                let native = native_schema(schema).filter(|_| self.abilities.output_format);
                Ok(match native {
                    Some(native) => (
                        Form::Free,
                        Some(json!({"type": "json_schema", "schema": native})),
                    ),
                    None => (Form::Tool(schema), None),
                })
            }
            _ => {
                self.given.refuse(
                    "response_format",
                    &format!("its `type` must be text, json_object or json_schema, got {format}"),
                )?;
                Ok((Form::Free, None))
            }
        }
    }

    fn output_config(&mut self, plan: &Plan, format: Option<Value>) {
        let given = match self.given.take("output_config") {
            Some(Value::Object(given)) => given,
            _ => Object::new(),
        };
        let mut config = Object::new();
        if let Some(effort) = plan.effort {
            config.insert("effort".to_owned(), effort.into());
        }
        if let Some(format) = format {
            config.insert("format".to_owned(), format);
        }
        config.extend(given);
        if !config.is_empty() {
            self.set("output_config", config.into());
        }
    }

    /// The choice that makes the model give its answer by the tool for it, where nothing stands
    /// against that.
    fn own_choice(&self, form: Form<'_>, plan: &Plan) -> Option<Value> {
        let is_off = match &plan.thinking {
            Some(thinking) => thinking["type"] == "disabled",
            None => !self.abilities.thinks_unasked,
        };
        let forced = matches!(form, Form::Tool(_)) && is_off && !self.about.has_tools;
        forced.then(|| json!({"type": "tool", "name": self.about.answer_tool}))
    }
}

/// Whether `id` looks like an e-mail address or a telephone number.
fn is_personal(id: &str) -> bool {
    let digits = id.bytes().filter(u8::is_ascii_digit).count();
    let number = digits >= 7
        && id
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-. ()/".contains(&byte));
    id.contains('@') || number
}
