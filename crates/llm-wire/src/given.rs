//! The parameters of a call, taken one after the other by a provider that knows which ones it has.

use formats::Object;
use serde_json::{Value, json};

use crate::extra_args::{self, Settings};

/// Parameters of chat completions that mean nothing at this value.
const HARMLESS: &[(&str, f64)] = &[
    ("n", 1.0),
    ("presence_penalty", 0.0),
    ("frequency_penalty", 0.0),
    ("top_logprobs", 0.0),
];

/// What was given and is not read yet.
#[derive(Debug)]
pub struct Given<'a> {
    values: Object,
    model: &'a str,
    drop_params: bool,
}

impl<'a> Given<'a> {
    /// The parameters of a call of `model`.
    pub fn new(extra_args: &Object, settings: &Settings<'_>, model: &'a str) -> Self {
        let mut values: Object = extra_args::parameters(extra_args)
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect();
        if let Some(effort) = settings.reasoning_effort {
            values.entry("reasoning_effort").or_insert(effort.clone());
        }
        Self {
            values,
            model,
            drop_params: settings.drop_params,
        }
    }

    /// Takes a parameter out.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.values.shift_remove(name)
    }

    /// Takes the limit of the reply out, in tokens.
    ///
    /// # Errors
    /// A sentence about the value.
    pub fn max_tokens(&mut self) -> Result<Option<u64>, String> {
        let newer = self.take("max_completion_tokens");
        let older = self.take("max_tokens");
        let Some(value) = newer.or(older) else {
            return Ok(None);
        };
        let tokens = value.as_u64().filter(|tokens| *tokens > 0);
        tokens.map(Some).ok_or_else(|| {
            format!("parameter `max_tokens` must be a whole number above 0, got {value}")
        })
    }

    /// Takes the switch for parallel calls out.
    ///
    /// # Errors
    /// A sentence about the value.
    pub fn parallel_tool_calls(&mut self) -> Result<Option<bool>, String> {
        let Some(value) = self.take("parallel_tool_calls") else {
            return Ok(None);
        };
        value.as_bool().map(Some).ok_or_else(|| {
            format!("parameter `parallel_tool_calls` must be true or false, got {value}")
        })
    }

    /// Refuses a parameter, or leaves it out where the caller allowed that.
    ///
    /// # Errors
    /// The refusal, unless the caller allowed that parameters are left out.
    pub fn refuse(&self, name: &str, reason: &str) -> Result<(), String> {
        let model = self.model;
        if self.drop_params {
            tracing::warn!(model, parameter = name, "parameter dropped: {reason}");
            return Ok(());
        }
        Err(format!(
            "parameter `{name}` for model `{model}`: {reason}; `drop_params: true` leaves such parameters out"
        ))
    }

    /// Leaves a parameter out that cannot stand beside another one.
    pub fn leave_out(&self, name: &str, reason: &str) {
        let model = self.model;
        tracing::warn!(model, parameter = name, "parameter left out: {reason}");
    }

    /// Refuses what was not taken, because the interface `interface` does not have it.
    ///
    /// # Errors
    /// As [`Given::refuse`], about the first of them.
    pub fn refuse_the_rest(&mut self, interface: &str) -> Result<(), String> {
        for (name, value) in std::mem::take(&mut self.values) {
            let harmless = HARMLESS
                .iter()
                .any(|(other, borne)| *other == name && value.as_f64() == Some(*borne));
            let is_off = matches!(name.as_str(), "logprobs" | "store") && value == json!(false);
            if !harmless && !is_off {
                self.refuse(
                    &name,
                    &format!("{interface} interface does not have it; put it into `extra_body` to send it all the same"),
                )?;
            }
        }
        Ok(())
    }
}
