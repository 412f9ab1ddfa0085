//! `generationConfig`.

use serde_json::{Map, Value};

use super::{Check, Generation, field, list, only, schema};

/// Fields of `generationConfig`.
const KNOWN: &[&str] = &[
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "mediaResolution",
    "enableEnhancedCivicAnswers",
];

pub(super) fn check(
    body: &Map<String, Value>,
    generation: Generation,
    has_functions: bool,
) -> Check {
    let Some(config) = field(body, "generationConfig") else {
        return Ok(());
    };
    let config = config
        .as_object()
        .ok_or("generation_config: must be an object")?;
    only(config, KNOWN, "generation_config")?;
    let number = |name: &str| field(config, name).and_then(Value::as_f64);
    if number("temperature").is_some_and(|number| !(0.0..=2.0).contains(&number)) {
        return Err("temperature must be in the range [0.0, 2.0]".to_owned());
    }
    if number("maxOutputTokens").is_some_and(|number| number < 1.0) {
        return Err("max_output_tokens must be positive".to_owned());
    }
    if number("candidateCount").is_some_and(|number| !(1.0..=8.0).contains(&number)) {
        return Err("candidate_count must be in the range [1, 8]".to_owned());
    }
    let stops = list(config, "stopSequences");
    let is_text = |stop: &Value| stop.as_str().is_some_and(|text| !text.is_empty());
    if stops.len() > 5 || !stops.iter().all(is_text) {
        return Err("stop_sequences: at most 5 non-empty sequences".to_owned());
    }
    for name in ["presencePenalty", "frequencyPenalty"] {
        if generation.signs() && number(name).is_some_and(|number| number.abs() > 0.0) {
            return Err("Penalty is not enabled for this model".to_owned());
        }
    }
    check_form(config, generation, has_functions)?;
    field(config, "thinkingConfig").map_or(Ok(()), |thinking| check_thinking(thinking, generation))
}

fn check_form(config: &Map<String, Value>, generation: Generation, has_functions: bool) -> Check {
    let kind = field(config, "responseMimeType").and_then(Value::as_str);
    let kind = kind.unwrap_or("text/plain");
    if !matches!(kind, "text/plain" | "application/json" | "text/x.enum") {
        return Err(format!("response_mime_type: {kind} is not supported"));
    }
    let dialect = field(config, "responseSchema");
    let json_schema = field(config, "responseJsonSchema");
    let has_schema = dialect.is_some() || json_schema.is_some();
    if has_schema && kind == "text/plain" {
        return Err(
            "response_schema only applies to response mime type application/json".to_owned(),
        );
    }
    if dialect.is_some() && json_schema.is_some() {
        return Err("only one of response_schema and response_json_schema may be set".to_owned());
    }
    if kind == "application/json" && has_functions && !generation.signs() {
        return Err(format!(
            "Function calling with a response mime type: '{kind}' is unsupported"
        ));
    }
    dialect.map_or(Ok(()), |dialect| {
        schema::check(dialect, "generation_config.response_schema", 0)
    })
}

fn check_thinking(thinking: &Value, generation: Generation) -> Check {
    let thinking = thinking
        .as_object()
        .ok_or("thinking_config: must be an object")?;
    let known = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    only(thinking, &known, "generation_config.thinking_config")?;
    let budget = field(thinking, "thinkingBudget").map(Value::as_i64);
    let level = field(thinking, "thinkingLevel").map(Value::as_str);
    if !generation.thinks() {
        return Err("Thinking is not enabled for this model".to_owned());
    }
    if budget.is_some() && level.is_some() {
        return Err("You can only set one of thinking_budget and thinking_level.".to_owned());
    }
    if let Some(level) = level {
        if !generation.signs() {
            return Err("Thinking level is not supported for this model.".to_owned());
        }
        let known = ["minimal", "low", "medium", "high"];
        if !level.is_some_and(|level| known.contains(&level.to_lowercase().as_str())) {
            return Err(
                "Invalid value at 'generation_config.thinking_config.thinking_level'".to_owned(),
            );
        }
    }
    match budget {
        Some(None) => Err("thinking_budget: must be an integer".to_owned()),
        Some(Some(budget)) if !(-1..=32_768).contains(&budget) => Err(format!(
            "The thinking budget {budget} is invalid. Please choose a value between 0 and 32768."
        )),
        _ => Ok(()),
    }
}
