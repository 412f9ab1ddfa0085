//! Which parameters a call has, in the words of this interface, decided before anything is sent.

use std::borrow::Cow;

use formats::Object;
use serde_json::{Value, json};

use crate::chat::is_reasoning_model;
use llm_wire::extra_args::{self, Settings};
use llm_wire::repair::ToolNames;

/// Parameters that both interfaces have under the same name and with the same meaning, and those
/// that only this one has.
const SAME: &[&str] = &[
    "context_management",
    "instructions",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "temperature",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Parameters of chat completions that this interface lacks, with the value at which they mean nothing.
const HARMLESS: &[(&str, &str)] = &[
    ("n", "1"),
    ("presence_penalty", "0"),
    ("frequency_penalty", "0"),
    ("logprobs", "false"),
    ("background", "false"),
];

/// What reasoning models refuse while they reason, unless it has this value.
const NOT_WHILE_REASONING: &[(&str, f64)] = &[("temperature", 1.0), ("top_p", 1.0)];

/// Least limit of a reply that OpenAI takes.
const LEAST_OUTPUT: u64 = 16;

/// What makes reasoning come in a form that can be sent back without anything being stored.
const SEALED_REASONING: &str = "reasoning.encrypted_content";

/// The parameters of a request.
#[derive(Debug)]
pub(super) struct Parameters<'a> {
    /// Fields of the body, by name.
    pub(super) fields: Vec<(&'a str, Cow<'a, Value>)>,
    /// Tools that the provider runs itself, in its own form.
    pub(super) native_tools: &'a [Value],
}

/// The parameters out of `extra_args`. The error is a sentence about one that cannot be honoured.
pub(super) fn parameters<'a>(
    extra_args: &'a Object,
    settings: &Settings<'a>,
    model: &str,
    names: &ToolNames,
    has_tools: bool,
) -> Result<Parameters<'a>, String> {
    let given: Vec<(&'a str, &'a Value)> = extra_args::parameters(extra_args).collect();
    let mut reader = Reader {
        given,
        model,
        drop_params: settings.drop_params,
        fields: Vec::new(),
    };
    let native_tools = reader.native_tools()?;
    let effort = reader
        .take("reasoning_effort")
        .or(settings.reasoning_effort);
    let reasons = match effort.and_then(Value::as_str) {
        Some("none") => Some(false),
        Some(_) => Some(true),
        None => is_reasoning_model(model),
    };
    reader.reasoning(effort, settings.reasoning_summary, reasons)?;
    reader.limit()?;
    reader.text()?;
    let choice = reader.take("tool_choice");
    if let Some(choice) = choice.filter(|_| has_tools || !native_tools.is_empty()) {
        let choice = native_choice(choice, names)?;
        reader.set("tool_choice", choice);
    }
    if !has_tools && native_tools.is_empty() {
        reader.take("parallel_tool_calls");
    }
    reader.stateless(reasons)?;
    reader.same(reasons)?;
    reader.refuse_the_rest()?;
    let mut fields = reader.fields;
    for (name, value) in settings.body.into_iter().flatten() {
        fields.retain(|(earlier, _)| earlier != name);
        fields.push((name, Cow::Borrowed(value)));
    }
    Ok(Parameters {
        fields,
        native_tools,
    })
}

/// Takes the given parameters one after the other.
struct Reader<'a, 'm> {
    given: Vec<(&'a str, &'a Value)>,
    model: &'m str,
    drop_params: bool,
    fields: Vec<(&'a str, Cow<'a, Value>)>,
}

impl<'a> Reader<'a, '_> {
    fn take(&mut self, name: &str) -> Option<&'a Value> {
        let place = self.given.iter().position(|(given, _)| *given == name)?;
        Some(self.given.remove(place).1)
    }

    fn set(&mut self, name: &'a str, value: Value) {
        self.fields.push((name, Cow::Owned(value)));
    }

    /// Refuses a parameter, or leaves it out where the caller allowed that.
    fn refuse(&self, name: &str, reason: &str) -> Result<(), String> {
        let model = self.model;
        if self.drop_params {
            tracing::warn!(model, parameter = name, "parameter dropped: {reason}");
            return Ok(());
        }
        Err(format!(
            "parameter `{name}` for model `{model}`: {reason}; `drop_params: true` leaves such parameters out"
        ))
    }

    fn native_tools(&mut self) -> Result<&'a [Value], String> {
        match self.take("native_tools") {
            None => Ok(&[]),
            Some(Value::Array(tools)) if tools.iter().all(Value::is_object) => Ok(tools),
            Some(other) => Err(format!(
                "parameter `native_tools` must be a list of objects such as {{\"type\": \"web_search\"}}, got {other}"
            )),
        }
    }

    fn reasoning(
        &mut self,
        effort: Option<&Value>,
        summary: Option<&Value>,
        reasons: Option<bool>,
    ) -> Result<(), String> {
        if effort.is_none() && summary.is_none() {
            return Ok(());
        }
        if is_reasoning_model(self.model) == Some(false) {
            return self.refuse("reasoning_effort", "the model does not reason");
        }
        let mut reasoning = Object::new();
        if let Some(effort) = effort {
            reasoning.insert("effort".to_owned(), effort.clone());
        }
        if let Some(summary) = summary.filter(|_| reasons != Some(false)) {
            reasoning.insert("summary".to_owned(), summary.clone());
        }
        self.set("reasoning", reasoning.into());
        Ok(())
    }

    /// The limit of the reply, reasoning included.
    fn limit(&mut self) -> Result<(), String> {
        let names = ["max_output_tokens", "max_completion_tokens", "max_tokens"];
        let given = names.map(|name| self.take(name).map(|value| (name, value)));
        let Some((name, value)) = given.into_iter().flatten().next() else {
            return Ok(());
        };
        if value.as_u64().is_none_or(|tokens| tokens < LEAST_OUTPUT) {
            return Err(format!(
                "parameter `{name}` must be a whole number from {LEAST_OUTPUT} on for this interface, got {value}"
            ));
        }
        self.set("max_output_tokens", value.clone());
        Ok(())
    }

    /// Form and length of the text.
    fn text(&mut self) -> Result<(), String> {
        let mut text = match self.take("text") {
            None => Object::new(),
            Some(Value::Object(text)) => text.clone(),
            Some(other) => return Err(format!("parameter `text` must be an object, got {other}")),
        };
        if let Some(verbosity) = self.take("verbosity") {
            text.insert("verbosity".to_owned(), verbosity.clone());
        }
        if let Some(format) = self.take("response_format") {
            text.insert("format".to_owned(), native_format(format)?);
        }
        if !text.is_empty() {
            self.set("text", text.into());
        }
        Ok(())
    }

    /// Nothing is kept at the provider unless the caller wants it, so reasoning has to come along.
    fn stateless(&mut self, reasons: Option<bool>) -> Result<(), String> {
        let store = self.take("store").cloned().unwrap_or(json!(false));
        self.set("store", store);
        let mut include = match self.take("include") {
            None => Vec::new(),
            Some(Value::Array(include)) => include.clone(),
            Some(other) => return Err(format!("parameter `include` must be a list, got {other}")),
        };
        let sealed = json!(SEALED_REASONING);
        if reasons == Some(true) && !include.contains(&sealed) {
            include.push(sealed);
        }
        if !include.is_empty() {
            self.set("include", include.into());
        }
        Ok(())
    }

    fn same(&mut self, reasons: Option<bool>) -> Result<(), String> {
        for name in SAME {
            let Some(value) = self.take(name) else {
                continue;
            };
            let borne = NOT_WHILE_REASONING.iter().find(|(other, _)| other == name);
            if reasons == Some(true)
                && borne.is_some_and(|(_, borne)| value.as_f64() != Some(*borne))
            {
                self.refuse(name, "a reasoning model does not take it")?;
                continue;
            }
            self.fields.push((name, Cow::Borrowed(value)));
        }
        Ok(())
    }

    fn refuse_the_rest(&mut self) -> Result<(), String> {
        for (name, value) in std::mem::take(&mut self.given) {
            let text = value.to_string();
            let is_harmless = |(other, borne): &(&str, &str)| {
                *other == name && (text == *borne || text == format!("{borne}.0"))
            };
            if !HARMLESS.iter().any(is_harmless) {
                self.refuse(
                    name,
                    "OpenAI's Responses interface does not have it; put it into `extra_body` to send it all the same",
                )?;
            }
        }
        Ok(())
    }
}

/// The choice of tools in this interface's form.
fn native_choice(choice: &Value, names: &ToolNames) -> Result<Value, String> {
    let function = choice.pointer("/function/name").or_else(|| {
        choice
            .get("name")
            .filter(|_| choice.get("type").and_then(Value::as_str) == Some("function"))
    });
    match (choice, function.and_then(Value::as_str)) {
        (_, Some(name)) => Ok(json!({"type": "function", "name": names.wire(name)})),
        (Value::String(word), _) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(choice.clone())
        }
        // A choice of the provider's own tools.
        (Value::Object(object), _) if object.get("type").is_some_and(|kind| kind != "function") => {
            Ok(choice.clone())
        }
        _ => Err(format!(
            "parameter `tool_choice` must be auto, none, required or name one tool, got {choice}"
        )),
    }
}

/// The form of the answer, flat as this interface has it.
fn native_format(format: &Value) -> Result<Value, String> {
    let kind = format.get("type").and_then(Value::as_str);
    match kind {
        Some("text" | "json_object") => Ok(json!({ "type": kind })),
        Some("json_schema") => {
            let mut native = Object::new();
            native.insert("type".to_owned(), "json_schema".into());
            let inner = format.get("json_schema").unwrap_or(format);
            for (key, value) in inner.as_object().into_iter().flatten() {
                native.insert(key.clone(), value.clone());
            }
            if !native.get("schema").is_some_and(Value::is_object) {
                return Err("parameter `response_format` has no `json_schema.schema`".to_owned());
            }
            native
                .entry("name")
                .or_insert_with(|| Value::from("answer"));
            Ok(native.into())
        }
        _ => Err(format!(
            "parameter `response_format`: its `type` must be text, json_object or json_schema, got {format}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(model: &str, extra_args: &Value) -> Result<Value, String> {
        let extra_args = extra_args.as_object().unwrap().clone();
        let settings = Settings::read(&extra_args).unwrap();
        let read = parameters(&extra_args, &settings, model, &ToolNames::default(), true)?;
        let fields = read.fields.into_iter();
        Ok(fields
            .map(|(name, value)| (name.to_owned(), value.into_owned()))
            .collect())
    }

    #[test]
    fn parameters_of_chats_get_the_names_of_this_interface() {
        let extra_args = json!({
            "reasoning": {"effort": "high", "summary": "auto"},
            "max_tokens": 1000,
            "verbosity": "low",
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "a", "strict": true, "schema": {"type": "object"}}},
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "parallel_tool_calls": false,
            "n": 1,
            "temperature": 1,
            "extra_body": {"truncation": "auto"}
        });
        assert_eq!(
            sent("gpt-5.5", &extra_args).unwrap(),
            json!({
                "reasoning": {"effort": "high", "summary": "auto"},
                "max_output_tokens": 1000,
                "text": {
                    "verbosity": "low",
                    "format": {"type": "json_schema", "name": "a", "strict": true, "schema": {"type": "object"}}
                },
                "tool_choice": {"type": "function", "name": "f"},
                "store": false,
                "include": ["reasoning.encrypted_content"],
                "parallel_tool_calls": false,
                "temperature": 1,
                "truncation": "auto"
            })
        );
    }

    #[test]
    fn a_model_that_does_not_reason_is_not_asked_for_its_reasoning() {
        assert_eq!(
            sent("gpt-4.1", &json!({"temperature": 0.5})).unwrap(),
            json!({"store": false, "temperature": 0.5})
        );
        let off = sent(
            "gpt-5.5",
            &json!({"reasoning_effort": "none", "temperature": 0}),
        );
        assert_eq!(
            off.unwrap(),
            json!({"reasoning": {"effort": "none"}, "store": false, "temperature": 0})
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_or_dropped() {
        for (extra_args, name) in [
            (json!({"stop": ["x"]}), "`stop`"),
            (json!({"seed": 1}), "`seed`"),
            (json!({"n": 2}), "`n`"),
            (json!({"temperature": 0.2}), "`temperature`"),
            (
                json!({"previous_response_id": "resp_1"}),
                "`previous_response_id`",
            ),
            (json!({"max_tokens": 15}), "from 16 on"),
            (json!({"tool_choice": "any"}), "`tool_choice`"),
            (json!({"native_tools": "web_search"}), "`native_tools`"),
            (
                json!({"response_format": {"type": "xml"}}),
                "`response_format`",
            ),
        ] {
            let error = sent("gpt-5.5", &extra_args).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
        let dropped = json!({"stop": ["x"], "drop_params": true});
        assert!(sent("gpt-5.5", &dropped).unwrap().get("stop").is_none());
        assert!(sent("gpt-4.1", &json!({"reasoning_effort": "low"})).is_err());
    }
}
