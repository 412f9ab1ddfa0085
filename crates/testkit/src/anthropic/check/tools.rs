//! Tools and the choice of them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Check, kind, text};

pub(super) fn check(body: &Map<String, Value>, lenient: bool) -> Check {
    let tools = body.get("tools").and_then(Value::as_array);
    let tools = tools.map(Vec::as_slice).unwrap_or_default();
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        // Tools of the provider itself have another shape.
        if !matches!(kind(tool), "" | "custom") {
            continue;
        }
        let object = tool.as_object();
        let name = object.map(|tool| text(tool, "name")).unwrap_or_default();
        check_tool(tool, name, lenient).map_err(|reason| format!("tools.{index}.{reason}"))?;
        if !names.insert(name) {
            return Err("tools: Tool names must be unique.".to_owned());
        }
    }
    check_choice(body, tools.is_empty(), &names)
}

fn check_tool(tool: &Value, name: &str, lenient: bool) -> Check {
    let fits = (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !fits {
        return Err(format!(
            "name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$', got {name}"
        ));
    }
    let schema = tool
        .get("input_schema")
        .and_then(Value::as_object)
        .ok_or("input_schema: Field required")?;
    if text(schema, "type") != "object" {
        return Err("input_schema.type: Input should be 'object'".to_owned());
    }
    for union in ["oneOf", "allOf", "anyOf"] {
        if schema.contains_key(union) {
            return Err(format!(
                "input_schema: input_schema does not support {union} at the top level"
            ));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let odd = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
        .find(|name| {
            let fits = (1..=64).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
            !fits
        });
    match odd.filter(|_| !lenient) {
        Some(odd) => Err(format!(
            "input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$', got {odd}"
        )),
        None => Ok(()),
    }
}

fn check_choice(body: &Map<String, Value>, no_tools: bool, names: &HashSet<&str>) -> Check {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(());
    };
    if no_tools {
        return Err("tool_choice may only be specified while providing tools".to_owned());
    }
    match kind(choice) {
        "auto" | "any" | "none" => Ok(()),
        "tool" => {
            let name = choice
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if names.contains(name) {
                return Ok(());
            }
            Err(format!("Tool '{name}' not found in provided tools"))
        }
        other => Err(format!("tool_choice.type: unexpected value '{other}'")),
    }
}
