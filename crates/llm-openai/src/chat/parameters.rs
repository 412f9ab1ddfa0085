//! Which parameters a model takes, decided before anything is sent (`spec/llm.md` §5.6).

use std::borrow::Cow;

use formats::Object;
use serde_json::{Value, json};

use super::dialect::{Dialect, Needs, is_reasoning_model, needs};
use llm_wire::extra_args::{self, Settings};
use llm_wire::repair::ToolNames;

/// What OpenAI's interface names, apart from model, messages, tools and streaming.
const KNOWN: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "temperature",
    "tool_choice",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// What reasoning models refuse while they reason, with the value that they bear.
const NOT_WHILE_REASONING: &[(&str, Option<f64>)] = &[
    ("temperature", Some(1.0)),
    ("top_p", Some(1.0)),
    ("presence_penalty", Some(0.0)),
    ("frequency_penalty", Some(0.0)),
    ("stop", None),
    ("logprobs", None),
    ("top_logprobs", None),
    ("logit_bias", None),
];

/// The parameters of a request, by name.
pub(crate) type Parameters<'a> = Vec<(&'a str, Cow<'a, Value>)>;

/// The parameters for `model` out of `extra_args`.
///
/// The error is a sentence about a parameter that the model does not take.
pub(crate) fn parameters<'a>(
    extra_args: &'a Object,
    settings: &Settings<'a>,
    dialect: Dialect,
    model: &str,
    names: &ToolNames,
    has_tools: bool,
) -> Result<Parameters<'a>, String> {
    let mut all: Parameters<'a> = extra_args::parameters(extra_args)
        .map(|(name, value)| (name, Cow::Borrowed(value)))
        .collect();
    if let Some(effort) = settings.reasoning_effort
        && !extra_args.contains_key("reasoning_effort")
    {
        all.push(("reasoning_effort", Cow::Borrowed(effort)));
    }
    if !has_tools {
        // Both are refused where there is nothing to choose from.
        all.retain(|(name, _)| !matches!(*name, "tool_choice" | "parallel_tool_calls"));
    }
    for (name, value) in &mut all {
        if *name == "tool_choice" {
            rename_choice(value, names);
        }
    }
    if dialect == Dialect::OpenAi {
        if settings.reasoning_summary.is_some() && !settings.drop_params {
            return Err("`reasoning.summary` needs the Responses interface".to_owned());
        }
        fit_to_openai(&mut all, model, has_tools, settings.drop_params)?;
    }
    for (name, value) in settings.body.into_iter().flatten() {
        all.retain(|(earlier, _)| earlier != name);
        all.push((name, Cow::Borrowed(value)));
    }
    Ok(all)
}

fn rename_choice(choice: &mut Cow<'_, Value>, names: &ToolNames) {
    let Some(name) = choice.pointer("/function/name").and_then(Value::as_str) else {
        return;
    };
    let wire = names.wire(name).into_owned();
    if wire != name
        && let Some(slot) = choice.to_mut().pointer_mut("/function/name")
    {
        *slot = json!(wire);
    }
}

fn fit_to_openai(
    all: &mut Parameters<'_>,
    model: &str,
    has_tools: bool,
    drop_params: bool,
) -> Result<(), String> {
    let reasoning = is_reasoning_model(model);
    if reasoning == Some(true) {
        let has_new = all.iter().any(|(name, _)| *name == "max_completion_tokens");
        for (name, _) in all.iter_mut().filter(|(name, _)| *name == "max_tokens") {
            if !has_new {
                *name = "max_completion_tokens";
            }
        }
    }
    let effort = all
        .iter()
        .find(|(name, _)| *name == "reasoning_effort")
        .and_then(|(_, value)| value.as_str().map(str::to_owned));
    let thinks_not = effort.as_deref() == Some("none");
    let mut problem = None;
    all.retain(|(name, value)| {
        let refusal = refusal(name, value, reasoning, thinks_not);
        match refusal {
            None => true,
            Some(reason) if drop_params => {
                tracing::warn!(model, parameter = name, "parameter dropped: {reason}");
                false
            }
            Some(reason) => {
                problem.get_or_insert_with(|| {
                    format!("parameter `{name}` for model `{model}`: {reason}; `drop_params: true` leaves such parameters out")
                });
                true
            }
        }
    });
    if let Some(problem) = problem {
        return Err(problem);
    }
    if has_tools && needs(model) != Needs::Nothing && !thinks_not {
        return Err(format!(
            "model `{model}` takes tools over chat completions only with `reasoning_effort: \"none\"`; \
             without the extra argument `api` the call goes to the Responses interface"
        ));
    }
    Ok(())
}

/// Why OpenAI refuses the parameter, if it does.
fn refusal(
    name: &str,
    value: &Value,
    reasoning: Option<bool>,
    thinks_not: bool,
) -> Option<&'static str> {
    if !KNOWN.contains(&name) {
        return Some(
            "OpenAI's chat completions do not know it; put it into `extra_body` to send it all the same",
        );
    }
    if reasoning == Some(false) && name == "reasoning_effort" {
        return Some("the model does not reason");
    }
    let (_, borne) = NOT_WHILE_REASONING
        .iter()
        .find(|(other, _)| *other == name)?;
    let harmless = borne.is_some() && value.as_f64() == *borne;
    (reasoning == Some(true) && !thinks_not && !harmless)
        .then_some("a reasoning model does not take it")
}
