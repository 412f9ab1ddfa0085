//! JSON Schemas in requests: what OpenAI demands of them.

use serde_json::{Map, Value, json};

use super::check::Refusal;

/// Deepest nesting that is looked into.
const DEEPEST: usize = 64;

/// Checks the `parameters` of a tool at `place`.
pub(super) fn check_parameters(schema: &Value, place: &str) -> Result<(), Refusal> {
    let object = schema
        .as_object()
        .ok_or_else(|| Refusal::invalid(place, "the parameters are no JSON Schema object"))?;
    if object.is_empty() {
        return Ok(());
    }
    if object.get("type").and_then(Value::as_str) != Some("object") {
        return Err(Refusal::coded(
            place,
            "the schema must have type `object`",
            "invalid_function_parameters",
        ));
    }
    for union in ["anyOf", "oneOf", "allOf", "enum", "not"] {
        if object.contains_key(union) {
            return Err(Refusal::coded(
                place,
                &format!("`{union}` is not allowed at the top level of the schema"),
                "invalid_function_parameters",
            ));
        }
    }
    if !object.get("properties").is_some_and(Value::is_object) {
        return Err(Refusal::coded(
            place,
            "object schema missing properties",
            "invalid_function_parameters",
        ));
    }
    check_arrays(schema, place, 0)
}

fn check_arrays(schema: &Value, place: &str, depth: usize) -> Result<(), Refusal> {
    if depth > DEEPEST {
        return Err(Refusal::invalid(place, "the schema is nested too deeply"));
    }
    let Some(object) = schema.as_object() else {
        return Ok(());
    };
    let is_array = match object.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.contains(&json!("array")),
        _ => false,
    };
    if is_array && !object.contains_key("items") {
        return Err(Refusal::coded(
            place,
            "array schema missing items",
            "invalid_function_parameters",
        ));
    }
    for schema in inner_schemas(object) {
        check_arrays(schema, place, depth + 1)?;
    }
    Ok(())
}

/// Checks a schema that is to be followed strictly: closed objects with all properties required.
pub(super) fn check_strict(schema: &Value, place: &str) -> Result<(), Refusal> {
    check_closed(schema, place, 0)
}

fn check_closed(schema: &Value, place: &str, depth: usize) -> Result<(), Refusal> {
    if depth > DEEPEST {
        return Err(Refusal::invalid(place, "the schema is nested too deeply"));
    }
    let Some(object) = schema.as_object() else {
        return Ok(());
    };
    if object.get("type").and_then(Value::as_str) == Some("object") {
        if object.get("additionalProperties") != Some(&json!(false)) {
            return Err(Refusal::invalid(
                place,
                "a strict schema needs `additionalProperties: false` in every object",
            ));
        }
        let required = object.get("required").and_then(Value::as_array);
        let properties = object.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            if !required.is_some_and(|required| required.contains(&json!(name))) {
                return Err(Refusal::invalid(
                    place,
                    &format!("a strict schema needs every property in `required`; `{name}` is not"),
                ));
            }
        }
    }
    for schema in inner_schemas(object) {
        check_closed(schema, place, depth + 1)?;
    }
    Ok(())
}

fn inner_schemas(object: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let maps = ["properties", "$defs", "definitions"]
        .into_iter()
        .filter_map(|key| object.get(key)?.as_object())
        .flat_map(Map::values);
    let lists = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|key| object.get(key)?.as_array())
        .flatten();
    let single = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|key| object.get(key));
    maps.chain(lists).chain(single)
}
