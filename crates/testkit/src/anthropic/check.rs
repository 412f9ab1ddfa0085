//! What Anthropic refuses, as far as its interface says so (`spec/llm.md` §18, §21).

mod messages;
mod thinking;
mod tools;

use serde_json::{Map, Value};

/// Why a request is refused.
type Check = Result<(), String>;

/// The fields of the interface.
const KNOWN: &[&str] = &[
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// Most marks for the prompt cache.
const MOST_MARKS: usize = 4;

/// Checks the body of a request. `lenient` lets pass what only Anthropic itself refuses.
pub(crate) fn check(body: &Value, lenient: bool) -> Check {
    let body = body.as_object().ok_or("the body is no JSON object")?;
    if !lenient && let Some(name) = body.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return Err(format!("{name}: Extra inputs are not permitted"));
    }
    let model = text(body, "model");
    if model.is_empty() {
        return Err("model: Field required".to_owned());
    }
    let max_tokens = body
        .get("max_tokens")
        .ok_or("max_tokens: Field required")?
        .as_u64()
        .filter(|tokens| *tokens > 0)
        .ok_or("max_tokens: Input should be greater than or equal to 1")?;
    let generation = Generation::of(model);
    check_system(body)?;
    messages::check(body, generation, lenient)?;
    tools::check(body, lenient)?;
    thinking::check(body, generation, max_tokens)?;
    check_sampling(body, generation)?;
    check_marks(body)?;
    check_format(body)
}

/// What a model's version decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Generation(u32, u32);

impl Generation {
    /// From names such as `claude-sonnet-4-5-20250929`; the oldest for other names.
    fn of(model: &str) -> Self {
        let mut numbers = model
            .split(['-', '@', '.', ':'])
            .map(|part| {
                (part.len() <= 2)
                    .then(|| part.parse::<u32>().ok())
                    .flatten()
            })
            .skip_while(Option::is_none);
        let major = numbers.next().flatten().unwrap_or(0);
        Self(major, numbers.next().flatten().unwrap_or(0))
    }

    fn is_from(self, major: u32, minor: u32) -> bool {
        self >= Self(major, minor)
    }
}

fn text<'b>(object: &'b Map<String, Value>, key: &str) -> &'b str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn kind(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn check_system(body: &Map<String, Value>) -> Check {
    match body.get("system") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            let blank = blocks.iter().any(|block| {
                let text = block.get("text").and_then(Value::as_str);
                kind(block) != "text" || text.is_none_or(|text| text.trim().is_empty())
            });
            if blank {
                return Err("system: text content blocks must be non-empty".to_owned());
            }
            Ok(())
        }
        Some(_) => Err("system: Input should be a string or a list of text blocks".to_owned()),
    }
}

fn check_sampling(body: &Map<String, Value>, generation: Generation) -> Check {
    for name in ["temperature", "top_p"] {
        let Some(value) = body.get(name) else {
            continue;
        };
        let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        if number.is_none() {
            return Err(format!("{name}: range: 0..1"));
        }
    }
    let given = ["temperature", "top_p", "top_k"]
        .into_iter()
        .find(|name| body.contains_key(*name));
    if let Some(name) = given.filter(|_| generation.is_from(4, 7)) {
        return Err(format!("`{name}` is not supported by this model"));
    }
    let both = body.contains_key("temperature") && body.contains_key("top_p");
    if both && generation.is_from(4, 5) {
        return Err("`temperature` and `top_p` cannot both be specified for this model".to_owned());
    }
    let stops = body.get("stop_sequences").and_then(Value::as_array);
    let blank = |stop: &Value| stop.as_str().is_none_or(|text| text.trim().is_empty());
    if stops.is_some_and(|stops| stops.iter().any(blank)) {
        return Err("stop_sequences: each stop sequence must contain non-whitespace".to_owned());
    }
    Ok(())
}

fn check_marks(body: &Map<String, Value>) -> Check {
    let mut count = 0;
    for key in ["tools", "system", "messages"] {
        if let Some(value) = body.get(key) {
            count_marks(value, &mut count)?;
        }
    }
    if count > MOST_MARKS {
        return Err(format!(
            "A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found {count}."
        ));
    }
    Ok(())
}

fn count_marks(value: &Value, count: &mut usize) -> Check {
    match value {
        Value::Array(list) => list.iter().try_for_each(|value| count_marks(value, count)),
        Value::Object(object) => {
            if object.get("cache_control").is_some_and(Value::is_object) {
                *count += 1;
                if kind(value).ends_with("thinking") {
                    return Err("cache_control cannot be set for thinking blocks".to_owned());
                }
            }
            // What a tool is called with, and what describes that, is no content.
            object
                .iter()
                .filter(|(key, _)| !matches!(key.as_str(), "input" | "input_schema"))
                .try_for_each(|(_, value)| count_marks(value, count))
        }
        _ => Ok(()),
    }
}

fn check_format(body: &Map<String, Value>) -> Check {
    let Some(format) = body
        .get("output_config")
        .and_then(|config| config.get("format"))
    else {
        return Ok(());
    };
    if kind(format) != "json_schema" {
        return Err("output_config.format.type: Input should be 'json_schema'".to_owned());
    }
    let schema = format
        .get("schema")
        .ok_or("output_config.format.schema: Field required")?;
    check_closed(schema, 0)
}

/// Checks that every object of `schema` is closed, and that no unsupported keyword is in it.
fn check_closed(schema: &Value, depth: usize) -> Check {
    let place = "output_config.format.schema";
    let Some(object) = schema.as_object().filter(|_| depth < 64) else {
        return Err(format!("{place}: Input should be an object"));
    };
    if kind(schema) == "object" && object.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(format!(
            "{place}: For 'object' type, 'additionalProperties' must be explicitly set to false"
        ));
    }
    for word in [
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "maxItems",
        "oneOf",
    ] {
        if object.contains_key(word) {
            return Err(format!("{place}: property '{word}' is not supported"));
        }
    }
    for key in ["properties", "$defs", "definitions"] {
        for schema in object
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values)
        {
            check_closed(schema, depth + 1)?;
        }
    }
    for key in ["anyOf", "allOf"] {
        for schema in object
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            check_closed(schema, depth + 1)?;
        }
    }
    object
        .get("items")
        .map_or(Ok(()), |schema| check_closed(schema, depth + 1))
}
