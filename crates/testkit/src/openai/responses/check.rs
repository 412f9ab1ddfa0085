//! The parameters of a request.

use serde_json::{Map, Value, json};

use super::super::check::{Refusal, check_name, check_ranges, is_reasoning_model};
use super::super::schema::{check_parameters, check_strict};
use super::items;

/// The parameters of the interface.
const KNOWN: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// Parameters of chat completions that have another place here.
const MOVED: &[(&str, &str)] = &[
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
    ("reasoning_effort", "reasoning.effort"),
    ("verbosity", "text.verbosity"),
];

/// What may be included.
const INCLUDABLE: &[&str] = &[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// Checks the body of a request.
pub(super) fn check(body: &Value, lenient: bool) -> Result<(), Refusal> {
    let body = body
        .as_object()
        .ok_or_else(|| Refusal::invalid("body", "it is no JSON object"))?;
    for (old, new) in MOVED {
        if body.contains_key(*old) {
            return Err(Refusal {
                message: format!(
                    "Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'."
                ),
                param: Some((*old).to_owned()),
                code: Some("unsupported_parameter".to_owned()),
            });
        }
    }
    if !lenient && let Some(name) = body.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(Refusal {
            message: format!("Unknown parameter: '{name}'."),
            param: Some(name.clone()),
            code: Some("unknown_parameter".to_owned()),
        });
    }
    let model = body
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if model.is_empty() {
        return Err(missing("model"));
    }
    match body.get("input") {
        Some(Value::String(_)) => {}
        Some(Value::Array(list)) => {
            items::check(list, body.get("store") != Some(&json!(false)), lenient)?;
        }
        _ => return Err(missing("input")),
    }
    check_tools(body)?;
    check_form(body)?;
    check_ranges(
        body,
        &[
            ("temperature", 0.0, 2.0),
            ("top_p", 0.0, 1.0),
            ("max_output_tokens", 16.0, f64::MAX),
            ("max_tool_calls", 1.0, f64::MAX),
            ("top_logprobs", 0.0, 20.0),
        ],
    )?;
    check_reasoning(body, model)
}

fn missing(name: &str) -> Refusal {
    Refusal::coded(name, "it is missing", "missing_required_parameter")
}

fn check_tools(body: &Map<String, Value>) -> Result<(), Refusal> {
    let tools = match body.get("tools") {
        None => &[][..],
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Refusal::coded("tools", "it is no array", "invalid_type")),
    };
    for (index, tool) in tools.iter().enumerate() {
        let place = format!("tools[{index}]");
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            if tool.get("type").is_none() {
                return Err(missing(&format!("{place}.type")));
            }
            continue;
        }
        check_name(tool.get("name"), &format!("{place}.name"))?;
        let place = format!("{place}.parameters");
        if let Some(parameters) = tool.get("parameters") {
            check_parameters(parameters, &place)?;
            if tool.get("strict") == Some(&json!(true)) {
                check_strict(parameters, &place)?;
            }
        }
    }
    let fits = match body.get("tool_choice") {
        None => true,
        Some(Value::String(word)) => match word.as_str() {
            "auto" | "none" => true,
            "required" => !tools.is_empty(),
            _ => false,
        },
        Some(choice) => match choice.get("type").and_then(Value::as_str) {
            Some("function") => {
                let name = choice.get("name");
                name.is_some() && tools.iter().any(|tool| tool.get("name") == name)
            }
            Some(kind) => tools
                .iter()
                .any(|tool| tool.get("type").and_then(Value::as_str) == Some(kind)),
            None => false,
        },
    };
    if fits {
        return Ok(());
    }
    Err(Refusal::invalid(
        "tool_choice",
        "expected auto, none, required or one of the tools",
    ))
}

fn check_form(body: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(format) = body.get("text").and_then(|text| text.get("format")) else {
        return Ok(());
    };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(()),
        Some("json_object") => {
            let text = body.get("input").map(Value::to_string).unwrap_or_default();
            if text.to_lowercase().contains("json") {
                return Ok(());
            }
            Err(Refusal::invalid(
                "input",
                "it must contain the word 'json' in some form to use 'text.format' of type 'json_object'",
            ))
        }
        Some("json_schema") => {
            check_name(format.get("name"), "text.format.name")?;
            let schema = format
                .get("schema")
                .ok_or_else(|| missing("text.format.schema"))?;
            if format.get("strict") == Some(&json!(true)) {
                check_strict(schema, "text.format.schema")?;
            }
            Ok(())
        }
        _ => Err(Refusal::invalid(
            "text.format.type",
            "expected text, json_object or json_schema",
        )),
    }
}

fn check_reasoning(body: &Map<String, Value>, model: &str) -> Result<(), Refusal> {
    let reasons = is_reasoning_model(model);
    let include = body.get("include").and_then(Value::as_array);
    for name in include.into_iter().flatten() {
        if !INCLUDABLE.iter().any(|known| name == known) {
            return Err(Refusal::invalid(
                "include",
                &format!("{name} cannot be included"),
            ));
        }
        if name == "reasoning.encrypted_content" && !reasons {
            return Err(Refusal::invalid(
                "include",
                "encrypted content is not supported with this model",
            ));
        }
    }
    let reasoning = body
        .get("reasoning")
        .filter(|reasoning| !reasoning.is_null());
    let told = |key: &str| reasoning.and_then(|reasoning| reasoning.get(key)?.as_str());
    if reasoning.is_some() && !reasons {
        return Err(Refusal::coded(
            "reasoning",
            "it is not supported with this model",
            "unsupported_parameter",
        ));
    }
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    let summaries = ["auto", "concise", "detailed"];
    for (key, words) in [("effort", &efforts[..]), ("summary", &summaries[..])] {
        if told(key).is_some_and(|word| !words.contains(&word)) {
            return Err(Refusal::invalid(
                &format!("reasoning.{key}"),
                &format!("expected one of {}", words.join(", ")),
            ));
        }
    }
    if !reasons || told("effort") == Some("none") {
        return Ok(());
    }
    for name in ["temperature", "top_p"] {
        let value = body.get(name).and_then(Value::as_f64);
        if value.is_some_and(|value| (value - 1.0).abs() > f64::EPSILON) {
            return Err(Refusal::coded(
                name,
                "it is not supported with this model",
                "unsupported_parameter",
            ));
        }
    }
    Ok(())
}
