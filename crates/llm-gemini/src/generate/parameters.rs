//! Which parameters a model takes, decided before anything is sent
//! (<https://ai.google.dev/api/generate-content#generationconfig>).

use formats::Object;
use serde_json::{Value, json};

use super::family::Abilities;
use super::thinking;
use super::tools::Language;
use llm_wire::Given;
use llm_wire::extra_args::Settings;
use llm_wire::repair::{ToolNames, gemini_schema};

/// Parameters that go into `generationConfig` under another name.
const RENAMED: &[(&str, &str)] = &[
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("seed", "seed"),
    ("n", "candidateCount"),
];

/// Fields of the body that are sent as they are, by both of their spellings.
const NATIVE: &[(&str, &str)] = &[
    ("safety_settings", "safetySettings"),
    ("cached_content", "cachedContent"),
    ("labels", "labels"),
];

/// Fields of the body whose own fields are set one by one by `extra_body`.
const MERGED: &[&str] = &["generationConfig", "toolConfig"];

/// Most stop sequences.
const MOST_STOPS: usize = 5;

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Parameters<'a> {
    /// Fields of the body.
    pub(super) fields: Object,
    /// How the answer's form is asked for.
    pub(super) form: Form<'a>,
    /// Only the first call of the answer counts.
    pub(super) one_call: bool,
}

/// The form of an answer, where the fields do not say it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form<'a> {
    /// Free, or told by `generationConfig`.
    Free,
    /// Any JSON object.
    Json,
    /// A call of a function of our own with this schema.
    Function(&'a Value),
}

/// What else of a request decides about its parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) abilities: Abilities,
    pub(super) names: &'a ToolNames,
    /// Whether the caller offers tools.
    pub(super) has_tools: bool,
    /// The resolution of all pictures, where the model has no other.
    pub(super) resolution: Option<&'static str>,
}

/// In which language the caller wants parameters of tools to be described.
pub(super) fn language(extra_args: &Object) -> Language {
    match extra_args.get("parameters_json_schema") {
        Some(Value::Bool(true)) => Language::JsonSchema,
        _ => Language::Dialect,
    }
}

/// The parameters out of `given`.
///
/// The error is a sentence about a parameter that the model does not take.
pub(super) fn parameters<'a>(
    extra_args: &'a Object,
    settings: &Settings<'a>,
    given: Given<'_>,
    about: Circumstances<'_>,
) -> Result<Parameters<'a>, String> {
    let mut reader = Reader {
        given,
        about,
        config: Object::new(),
        tool_config: Object::new(),
        fields: Object::new(),
    };
    let max_tokens = reader.given.max_tokens()?;
    if let Some(tokens) = max_tokens {
        reader.set("maxOutputTokens", json!(tokens));
    }
    reader.sampling()?;
    reader.stop()?;
    reader.thinking(max_tokens)?;
    let form = reader.form(extra_args)?;
    let one_call = reader.choice()?;
    reader.native()?;
    if let Some(level) = about
        .resolution
        .filter(|_| !about.abilities.part_resolution)
    {
        reader.set("mediaResolution", level.into());
    }
    reader.given.refuse_the_rest("Gemini's")?;
    Ok(Parameters {
        fields: reader.finish(settings.body),
        form,
        one_call,
    })
}

/// Takes the given parameters one after the other.
struct Reader<'g> {
    given: Given<'g>,
    about: Circumstances<'g>,
    config: Object,
    tool_config: Object,
    fields: Object,
}

impl Reader<'_> {
    fn set(&mut self, name: &str, value: Value) {
        self.config.insert(name.to_owned(), value);
    }

    fn sampling(&mut self) -> Result<(), String> {
        if let Some(value) = self.given.take("temperature") {
            if value
                .as_f64()
                .is_some_and(|number| (0.0..=2.0).contains(&number))
            {
                self.set("temperature", value);
            } else {
                let reason = format!("it must be from 0 to 2, got {value}");
                self.given.refuse("temperature", &reason)?;
            }
        }
        for (name, wire) in RENAMED {
            if let Some(value) = self
                .given
                .take(name)
                .filter(|value| *name != "n" || *value != 1)
            {
                self.set(wire, value);
            }
        }
        for (name, wire) in [
            ("presence_penalty", "presencePenalty"),
            ("frequency_penalty", "frequencyPenalty"),
        ] {
            match self.given.take(name) {
                Some(value) if self.about.abilities.penalties => self.set(wire, value),
                Some(value) if value.as_f64() != Some(0.0) => {
                    self.given.refuse(name, "the model does not take it")?;
                }
                _ => {}
            }
        }
        if self.given.take("logprobs") == Some(json!(true)) {
            self.set("responseLogprobs", json!(true));
            if let Some(count) = self.given.take("top_logprobs") {
                self.set("logprobs", count);
            }
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<(), String> {
        for name in ["stop", "stop_sequences"] {
            let all = match self.given.take(name) {
                None => continue,
                Some(Value::Array(list)) => list,
                Some(one) => vec![one],
            };
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            if let Some(wrong) = all.iter().find(|value| !is_text(value)) {
                let reason = format!("a sequence must be a text that is not empty, got {wrong}");
                self.given.refuse(name, &reason)?;
            } else if all.len() > MOST_STOPS {
                let reason = format!("it takes {MOST_STOPS} sequences, got {}", all.len());
                self.given.refuse(name, &reason)?;
            } else if !all.is_empty() {
                self.set("stopSequences", all.into());
            }
        }
        Ok(())
    }

    fn thinking(&mut self, max_tokens: Option<u64>) -> Result<(), String> {
        let thinking = self.given.take("thinking");
        let effort = self.given.take("reasoning_effort");
        let name = if thinking.is_some() {
            "thinking"
        } else {
            "reasoning_effort"
        };
        let ability = self.about.abilities.thinking;
        match thinking::config(thinking.as_ref(), effort.as_ref(), ability, max_tokens) {
            Ok(Some(config)) => self.set("thinkingConfig", config),
            Ok(None) => {}
            Err(reason) => self.given.refuse(name, &reason)?,
        }
        Ok(())
    }

    /// The form of the answer. Older models take no JSON beside functions.
    fn form<'a>(&mut self, extra_args: &'a Object) -> Result<Form<'a>, String> {
        self.given.take("response_format");
        let Some(format) = extra_args
            .get("response_format")
            .filter(|format| !format.is_null())
        else {
            return Ok(Form::Free);
        };
        let by_config = self.about.abilities.json_beside_tools || !self.about.has_tools;
        match format.get("type").and_then(Value::as_str) {
            Some("text") => self.set("responseMimeType", "text/plain".into()),
            Some("json_object") if by_config => {
                self.set("responseMimeType", "application/json".into());
            }
            Some("json_object") => return Ok(Form::Json),
            Some("json_schema") => {
                let schema = format
                    .pointer("/json_schema/schema")
                    .or_else(|| format.get("schema"))
                    .filter(|schema| schema.is_object())
                    .ok_or("parameter `response_format` has no `json_schema.schema`")?;
                if !by_config {
                    return Ok(Form::Function(schema));
                }
                self.set("responseMimeType", "application/json".into());
                if self.about.abilities.json_schema {
                    self.set("responseJsonSchema", schema.clone());
                } else {
                    self.set("responseSchema", gemini_schema(schema));
                }
            }
            _ => self.given.refuse(
                "response_format",
                &format!("its `type` must be text, json_object or json_schema, got {format}"),
            )?,
        }
        Ok(Form::Free)
    }

    /// The choice of functions, and whether only one call may come.
    fn choice(&mut self) -> Result<bool, String> {
        let choice = self.given.take("tool_choice");
        let parallel = self.given.parallel_tool_calls()?;
        let server_side = self.given.take("include_server_side_tool_invocations");
        if let Some(server_side) = server_side {
            let name = "includeServerSideToolInvocations".to_owned();
            self.tool_config.insert(name, server_side);
        }
        if !self.about.has_tools {
            // There is nothing to choose from.
            return Ok(false);
        }
        if let Some(choice) = choice {
            let config = self.native_choice(&choice)?;
            self.tool_config
                .insert("functionCallingConfig".to_owned(), config);
        }
        Ok(parallel == Some(false))
    }

    fn native_choice(&self, choice: &Value) -> Result<Value, String> {
        let wrong = || {
            format!(
                "parameter `tool_choice` must be auto, none, required, validated or name one tool, got {choice}"
            )
        };
        let kind = choice.as_str().or_else(|| choice.get("type")?.as_str());
        let name = match kind {
            Some("auto") => return Ok(json!({"mode": "AUTO"})),
            Some("none") => return Ok(json!({"mode": "NONE"})),
            Some("required" | "any") => return Ok(json!({"mode": "ANY"})),
            Some("validated") => return Ok(json!({"mode": "VALIDATED"})),
            Some("function") => choice.pointer("/function/name"),
            Some("tool") => choice.get("name"),
            _ => None,
        };
        let name = name.and_then(Value::as_str).ok_or_else(wrong)?;
        Ok(json!({"mode": "ANY", "allowedFunctionNames": [self.about.names.wire(name)]}))
    }

    fn native(&mut self) -> Result<(), String> {
        for (name, wire) in NATIVE {
            let value = self.given.take(name).or_else(|| self.given.take(wire));
            if let Some(value) = value {
                self.fields.insert((*wire).to_owned(), value);
            }
        }
        match self.given.take("parameters_json_schema") {
            None | Some(Value::Bool(_)) => {}
            Some(other) => {
                return Err(format!(
                    "parameter `parameters_json_schema` must be true or false, got {other}"
                ));
            }
        }
        if let Some(tier) = self.given.take("service_tier") {
            match tier.as_str() {
                // Google has its own default, and nothing like OpenAI's choice by itself.
                Some("auto" | "default") => {}
                Some("standard" | "flex" | "priority") => {
                    self.fields.insert("serviceTier".to_owned(), tier);
                }
                _ => {
                    let reason = format!("it must be standard, flex or priority, got {tier}");
                    self.given.refuse("service_tier", &reason)?;
                }
            }
        }
        Ok(())
    }

    fn finish(self, more: Option<&Object>) -> Object {
        let mut fields = self.fields;
        for (name, value) in [
            ("toolConfig", self.tool_config),
            ("generationConfig", self.config),
        ] {
            if !value.is_empty() {
                fields.insert(name.to_owned(), value.into());
            }
        }
        for (name, value) in more.into_iter().flatten() {
            match (fields.get_mut(name), value) {
                (Some(Value::Object(own)), Value::Object(more))
                    if MERGED.contains(&name.as_str()) =>
                {
                    own.extend(more.clone());
                }
                _ => {
                    fields.insert(name.clone(), value.clone());
                }
            }
        }
        fields
    }
}
