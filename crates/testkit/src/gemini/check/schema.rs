//! Schemas in Google's dialect of OpenAPI.

use serde_json::{Map, Value};

use super::{Check, only};

/// Keywords of the dialect.
const KNOWN: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "default",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "properties",
    "required",
    "propertyOrdering",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
];

/// Deepest nesting.
const DEEPEST: usize = 64;

pub(super) fn check(schema: &Value, place: &str, depth: usize) -> Check {
    let object = schema
        .as_object()
        .filter(|_| depth < DEEPEST)
        .ok_or_else(|| format!("{place}: a schema must be an object, not nested too deeply"))?;
    only(object, KNOWN, place)?;
    if let Some(branches) = object.get("anyOf").or_else(|| object.get("any_of")) {
        let branches = branches.as_array().filter(|list| !list.is_empty());
        let branches = branches.ok_or_else(|| format!("{place}.any_of: must be a list"))?;
        if object.len() > 1 {
            return Err(format!(
                "{place}: When using any_of, it must be the only field set."
            ));
        }
        return branches
            .iter()
            .try_for_each(|branch| check(branch, &format!("{place}.any_of"), depth + 1));
    }
    let kind = object.get("type").and_then(Value::as_str);
    match kind.map(str::to_uppercase).as_deref() {
        Some("OBJECT") => check_object(object, place, depth),
        Some("ARRAY") => match object.get("items") {
            Some(items) => check(items, &format!("{place}.items"), depth + 1),
            None => Err(format!("{place}.items: missing field.")),
        },
        Some("STRING") => check_string(object, place),
        Some("INTEGER" | "NUMBER" | "BOOLEAN") => match object.get("enum") {
            Some(_) => Err(format!("{place}.enum: only allowed for STRING type")),
            None => Ok(()),
        },
        _ => Err(format!("{place}.type: must be specified")),
    }
}

fn check_object(object: &Map<String, Value>, place: &str, depth: usize) -> Check {
    let properties = object.get("properties").map(Value::as_object);
    if properties.is_some_and(|properties| properties.is_none_or(Map::is_empty)) {
        return Err(format!(
            "{place}.properties: should be non-empty for OBJECT type"
        ));
    }
    let properties = properties.flatten();
    for (name, schema) in properties.into_iter().flatten() {
        let begins = |first: char| first.is_ascii_alphabetic() || first == '_';
        let fits = (1..=64).contains(&name.len())
            && name.starts_with(begins)
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !fits {
            return Err(format!("{place}.properties[{name}]: invalid property name"));
        }
        check(schema, &format!("{place}.properties[{name}]"), depth + 1)?;
    }
    let required = object.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten() {
        let known = name
            .as_str()
            .is_some_and(|name| properties.is_some_and(|known| known.contains_key(name)));
        if !known {
            return Err(format!("{place}.required: property is not defined: {name}"));
        }
    }
    Ok(())
}

fn check_string(object: &Map<String, Value>, place: &str) -> Check {
    let format = object.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !matches!(format, "enum" | "date-time")) {
        return Err(format!(
            "{place}.format: only 'enum' and 'date-time' are supported for STRING type"
        ));
    }
    let Some(values) = object.get("enum") else {
        return Ok(());
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let values = values.as_array().filter(|values| !values.is_empty());
    if values.is_some_and(|values| values.iter().all(is_text)) {
        return Ok(());
    }
    Err(format!("{place}.enum: cannot be empty"))
}
