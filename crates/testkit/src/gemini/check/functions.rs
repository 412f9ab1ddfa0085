//! Functions and the choice of them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Check, field, field_of, fits_function, list, only, schema};

/// Most functions.
const MOST: usize = 128;

/// Checks the functions, and gives their names.
pub(super) fn check(body: &Map<String, Value>, lenient: bool) -> Result<HashSet<&str>, String> {
    let mut names = HashSet::new();
    for tool in list(body, "tools") {
        let Some(declarations) = field_of(tool, "functionDeclarations") else {
            continue;
        };
        let declarations = declarations.as_array().filter(|list| !list.is_empty());
        let declarations =
            declarations.ok_or("tools[0].function_declarations: must not be empty")?;
        for (index, declaration) in declarations.iter().enumerate() {
            let place = format!("tools[0].function_declarations[{index}]");
            let name = check_declaration(declaration, &place, lenient)?;
            if !names.insert(name) {
                return Err(format!("Duplicate function declaration found: {name}"));
            }
        }
    }
    if names.len() > MOST {
        return Err(format!("at most {MOST} function declarations are allowed"));
    }
    check_choice(body, &names)?;
    Ok(names)
}

fn check_declaration<'b>(
    declaration: &'b Value,
    place: &str,
    lenient: bool,
) -> Result<&'b str, String> {
    let object = declaration
        .as_object()
        .ok_or_else(|| format!("{place}: must be an object"))?;
    if !lenient {
        let known = [
            "name",
            "description",
            "parameters",
            "parametersJsonSchema",
            "response",
            "behavior",
        ];
        only(object, &known, place)?;
    }
    let name = object.get("name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if !fits_function(name) {
        return Err(format!(
            "{place}.name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
        ));
    }
    let json_schema = field(object, "parametersJsonSchema");
    match (object.get("parameters"), json_schema) {
        (Some(_), Some(_)) => Err(format!(
            "{place}: parameters and parameters_json_schema are mutually exclusive"
        )),
        (Some(parameters), None) => {
            let place = format!("{place}.parameters");
            schema::check(parameters, &place, 0)?;
            let kind = parameters.get("type").and_then(Value::as_str);
            if kind.is_none_or(|kind| !kind.eq_ignore_ascii_case("object")) {
                return Err(format!("{place}: schema should be of type OBJECT"));
            }
            Ok(name)
        }
        (None, Some(schema)) if schema.get("type") != Some(&Value::from("object")) => Err(format!(
            "{place}.parameters_json_schema: must be of type object"
        )),
        _ => Ok(name),
    }
}

fn check_choice(body: &Map<String, Value>, names: &HashSet<&str>) -> Check {
    let config = field(body, "toolConfig")
        .and_then(|config| field_of(config, "functionCallingConfig"))
        .and_then(Value::as_object);
    let Some(config) = config else {
        return Ok(());
    };
    if names.is_empty() {
        return Err("Function calling config is set without function_declarations.".to_owned());
    }
    let mode = config.get("mode").and_then(Value::as_str);
    let allowed = list(config, "allowedFunctionNames");
    match mode {
        Some("AUTO" | "NONE") if !allowed.is_empty() => Err(
            "allowed_function_names should only be set when the function calling mode is ANY."
                .to_owned(),
        ),
        Some("AUTO" | "NONE" | "ANY" | "VALIDATED") | None => {
            let unknown = allowed
                .iter()
                .find(|name| !name.as_str().is_some_and(|name| names.contains(name)));
            match unknown {
                Some(name) => Err(format!(
                    "allowed_function_names: {name} is not a declared function"
                )),
                None => Ok(()),
            }
        }
        Some(other) => Err(format!(
            "Invalid value at 'tool_config.function_calling_config.mode': \"{other}\""
        )),
    }
}
