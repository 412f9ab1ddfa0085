//! What OpenAI refuses, as far as its interface says so (`spec/llm.md` §17, §21).

mod messages;

use serde_json::{Map, Value, json};

pub(super) use messages::is_picture_address;

use super::schema::{check_parameters, check_strict};

/// A request that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) param: Option<String>,
    pub(super) code: Option<String>,
}

impl Refusal {
    pub(super) fn invalid(param: &str, message: &str) -> Self {
        Self::coded(param, message, "invalid_value")
    }

    pub(super) fn coded(param: &str, message: &str, code: &str) -> Self {
        Self {
            message: format!("Invalid '{param}': {message}."),
            param: Some(param.to_owned()),
            code: Some(code.to_owned()),
        }
    }
}

/// The parameters of the interface.
const KNOWN: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
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
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Most tools of a request.
const MOST_TOOLS: usize = 128;

/// Checks the body of a request. `lenient` lets fields pass that only OpenAI itself refuses.
pub(super) fn check(body: &Value, lenient: bool) -> Result<(), Refusal> {
    let body = body
        .as_object()
        .ok_or_else(|| Refusal::invalid("body", "it is no JSON object"))?;
    if !lenient && let Some(name) = body.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(Refusal {
            message: format!("Unrecognized request argument supplied: {name}"),
            param: Some(name.clone()),
            code: Some("unknown_parameter".to_owned()),
        });
    }
    let model = body.get("model").and_then(Value::as_str);
    if model.is_none_or(str::is_empty) {
        return Err(Refusal {
            message: "you must provide a model parameter".to_owned(),
            param: None,
            code: None,
        });
    }
    if body.contains_key("stream_options") && body.get("stream") != Some(&json!(true)) {
        return Err(Refusal::invalid(
            "stream_options",
            "it is only allowed when 'stream' is enabled",
        ));
    }
    messages::check(body.get("messages"), lenient)?;
    check_tools(body)?;
    check_numbers(body)?;
    check_response_format(body)?;
    check_reasoning(body)
}

fn check_tools(body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(tools) = body.get("tools").filter(|tools| !tools.is_null()) else {
        for name in ["tool_choice", "parallel_tool_calls"] {
            if body.get(name).is_some_and(|value| !value.is_null()) {
                return Err(Refusal::invalid(
                    name,
                    &format!("'{name}' is only allowed when 'tools' are specified"),
                ));
            }
        }
        return Ok(());
    };
    let tools = tools
        .as_array()
        .ok_or_else(|| Refusal::coded("tools", "it is no array", "invalid_type"))?;
    if tools.is_empty() {
        return Err(Refusal::coded(
            "tools",
            "empty array; expected an array with minimum length 1",
            "empty_array",
        ));
    }
    if tools.len() > MOST_TOOLS {
        return Err(Refusal::coded(
            "tools",
            &format!(
                "array too long; got {}, maximum length is {MOST_TOOLS}",
                tools.len()
            ),
            "array_above_max_length",
        ));
    }
    for (index, tool) in tools.iter().enumerate() {
        check_tool(tool, &format!("tools[{index}]"))?;
    }
    check_tool_choice(body, tools)
}

fn check_tool(tool: &Value, place: &str) -> Result<(), Refusal> {
    if tool.get("type").and_then(Value::as_str) != Some("function") {
        return Err(Refusal::invalid(
            &format!("{place}.type"),
            "expected `function`",
        ));
    }
    let place = format!("{place}.function");
    let function = tool
        .get("function")
        .and_then(Value::as_object)
        .ok_or_else(|| Refusal::invalid(&place, "it is missing"))?;
    check_name(function.get("name"), &format!("{place}.name"))?;
    if function
        .get("description")
        .is_some_and(|text| !text.is_string())
    {
        return Err(Refusal::coded(
            &format!("{place}.description"),
            "it is no string",
            "invalid_type",
        ));
    }
    let place = format!("{place}.parameters");
    if let Some(parameters) = function.get("parameters") {
        check_parameters(parameters, &place)?;
        if function.get("strict") == Some(&json!(true)) {
            check_strict(parameters, &place)?;
        }
    }
    Ok(())
}

fn check_tool_choice(body: &Map<String, Value>, tools: &[Value]) -> Result<(), Refusal> {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(());
    };
    let fine = match choice {
        Value::String(word) => matches!(word.as_str(), "auto" | "none" | "required"),
        choice => {
            let name = choice.pointer("/function/name");
            name.is_some()
                && tools
                    .iter()
                    .any(|tool| tool.pointer("/function/name") == name)
        }
    };
    if fine {
        return Ok(());
    }
    Err(Refusal::invalid(
        "tool_choice",
        "expected auto, none, required or one of the tools",
    ))
}

/// Checks that `name` matches `^[a-zA-Z0-9_-]{1,64}$`.
pub(super) fn check_name(name: Option<&Value>, place: &str) -> Result<(), Refusal> {
    let fits = name.and_then(Value::as_str).is_some_and(|name| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    });
    if fits {
        return Ok(());
    }
    Err(Refusal::invalid(
        place,
        "string does not match pattern; expected a string that matches '^[a-zA-Z0-9_-]{1,64}$'",
    ))
}

/// Refuses parameters that are no numbers or not between the least and the most of `ranges`.
pub(super) fn check_ranges(
    body: &Map<String, Value>,
    ranges: &[(&str, f64, f64)],
) -> Result<(), Refusal> {
    for &(name, least, most) in ranges {
        let Some(value) = body.get(name).filter(|value| !value.is_null()) else {
            continue;
        };
        let number = value
            .as_f64()
            .ok_or_else(|| Refusal::coded(name, "expected a number", "invalid_type"))?;
        if !(least..=most).contains(&number) {
            return Err(Refusal::invalid(
                name,
                &format!("{number} is not between {least} and {most}"),
            ));
        }
    }
    Ok(())
}

fn check_numbers(body: &Map<String, Value>) -> Result<(), Refusal> {
    check_ranges(
        body,
        &[
            ("temperature", 0.0, 2.0),
            ("top_p", 0.0, 1.0),
            ("presence_penalty", -2.0, 2.0),
            ("frequency_penalty", -2.0, 2.0),
            ("n", 1.0, 128.0),
            ("max_tokens", 1.0, f64::MAX),
            ("max_completion_tokens", 1.0, f64::MAX),
            ("top_logprobs", 0.0, 20.0),
        ],
    )?;
    if body.contains_key("max_tokens") && body.contains_key("max_completion_tokens") {
        return Err(Refusal::invalid(
            "max_tokens",
            "it cannot be given beside 'max_completion_tokens'",
        ));
    }
    if let Some(stops) = body.get("stop").and_then(Value::as_array)
        && !(1..=4).contains(&stops.len())
    {
        return Err(Refusal::invalid("stop", "expected 1 to 4 sequences"));
    }
    Ok(())
}

fn check_response_format(body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(format) = body
        .get("response_format")
        .filter(|format| !format.is_null())
    else {
        return Ok(());
    };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(()),
        Some("json_object") => {
            let text = body
                .get("messages")
                .map(Value::to_string)
                .unwrap_or_default();
            if text.to_lowercase().contains("json") {
                return Ok(());
            }
            Err(Refusal::invalid(
                "messages",
                "they must contain the word 'json' in some form to use 'response_format' of type 'json_object'",
            ))
        }
        Some("json_schema") => {
            let place = "response_format.json_schema";
            let schema = format
                .get("json_schema")
                .and_then(Value::as_object)
                .ok_or_else(|| {
                    Refusal::coded(place, "it is missing", "missing_required_parameter")
                })?;
            check_name(schema.get("name"), &format!("{place}.name"))?;
            if schema.get("strict") == Some(&json!(true)) {
                let place = format!("{place}.schema");
                let schema = schema.get("schema").ok_or_else(|| {
                    Refusal::coded(&place, "it is missing", "missing_required_parameter")
                })?;
                check_strict(schema, &place)?;
            }
            Ok(())
        }
        _ => Err(Refusal::invalid(
            "response_format.type",
            "expected text, json_object or json_schema",
        )),
    }
}

/// Whether `model` is one of OpenAI's reasoning models.
pub(super) fn is_reasoning_model(model: &str) -> bool {
    ["gpt-5", "o1", "o3", "o4", "codex-mini"]
        .iter()
        .any(|prefix| model.starts_with(prefix))
        && !model.contains("-chat")
}

/// Models that are served by the Responses interface only.
const RESPONSES_ONLY: &[&str] = &[
    "gpt-5-pro",
    "gpt-5-codex",
    "gpt-5.1-codex",
    "o3-pro",
    "codex-mini",
];

/// Reasoning models take the sampling parameters only at their defaults, and the newer ones no tools
/// here while they reason.
fn check_reasoning(body: &Map<String, Value>) -> Result<(), Refusal> {
    let model = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if RESPONSES_ONLY.iter().any(|only| model.starts_with(only)) {
        return Err(Refusal {
            message: "This model is only supported in v1/responses and not in v1/chat/completions."
                .to_owned(),
            param: Some("model".to_owned()),
            code: None,
        });
    }
    if !is_reasoning_model(model) || body.get("reasoning_effort") == Some(&json!("none")) {
        return Ok(());
    }
    let minor = model.strip_prefix("gpt-5.").and_then(|rest| {
        let end = rest.find(|character: char| !character.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse::<u32>().ok()
    });
    if minor.is_some_and(|minor| minor >= 4) && body.contains_key("tools") {
        return Err(Refusal {
            message: format!(
                "Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. Please use /v1/responses instead."
            ),
            param: Some("reasoning_effort".to_owned()),
            code: None,
        });
    }
    for name in ["max_tokens", "stop", "logit_bias", "logprobs"] {
        if body.contains_key(name) {
            return Err(Refusal::coded(
                name,
                "this model does not support the parameter",
                "unsupported_parameter",
            ));
        }
    }
    for name in ["temperature", "top_p"] {
        let value = body.get(name).and_then(Value::as_f64);
        if value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON) {
            return Err(Refusal::coded(
                name,
                "this model supports only the default of 1",
                "unsupported_value",
            ));
        }
    }
    Ok(())
}
