//! The description as a page for people.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEAD: &str = "# The environment's HTTP interface

Written by `archipelago-env openapi --format markdown` from the types that serve it; a test compares. The same as
OpenAPI 3.1: `archipelago-env openapi`, or `GET /openapi.json` of a running environment.

Errors are `{\"detail\": …}` with the status. Paths that are not here are 404, other methods 405. Agents connect to `/mcp/`
(MCP over streamable HTTP).
";

/// The whole page.
pub(super) fn page(description: &Value) -> String {
    let mut page = HEAD.to_owned();
    for (path, methods) in object(&description["paths"]) {
        for (methods, operation) in together(methods) {
            self::operation(&mut page, &methods, path, operation);
        }
    }
    page += "\n# Objects\n";
    for (name, schema) in object(&description["components"]["schemas"]) {
        let _ = write!(page, "\n## {name}\n\n{}\n", text(&schema["description"]));
        self::schema(&mut page, schema);
    }
    page
}

/// The methods of a path; those that are the same but for their name stand together.
fn together(methods: &Value) -> Vec<(String, &Value)> {
    const TOLD: [&str; 4] = ["summary", "parameters", "requestBody", "responses"];
    let mut groups: Vec<(String, &Value)> = Vec::new();
    for (method, operation) in object(methods) {
        let method = method.to_uppercase();
        match groups.last_mut() {
            Some((known, first)) if TOLD.iter().all(|key| first[*key] == operation[*key]) => {
                *known += ", ";
                *known += &method;
            }
            _ => groups.push((method, operation)),
        }
    }
    groups
}

fn operation(page: &mut String, method: &str, path: &str, operation: &Value) {
    let _ = write!(
        page,
        "\n## {method} {path}\n\n{}.\n",
        text(&operation["summary"])
    );
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters {
        *page += "\n| parameter | in | type | default | |\n| --- | --- | --- | --- | --- |\n";
        for parameter in parameters {
            let schema = &parameter["schema"];
            let default = match &schema["default"] {
                Value::Null => String::new(),
                default => format!("`{}`", plain(default)),
            };
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {default} | {} |",
                text(&parameter["name"]),
                text(&parameter["in"]),
                kind(schema),
                cell(&parameter["description"]),
            );
        }
    }
    let body = &operation["requestBody"];
    for (media, content) in object(&body["content"]) {
        let needed = if body["required"] == true {
            "required"
        } else {
            "optional"
        };
        let schema = &content["schema"];
        let _ = write!(page, "\nBody ({needed}): `{media}`");
        if schema["properties"].is_object() {
            *page += "\n";
            self::schema(page, schema);
        } else {
            let _ = writeln!(page, ", {}", kind(schema));
        }
    }
    *page += "\n| status | | content |\n| --- | --- | --- |\n";
    for (status, response) in object(&operation["responses"]) {
        let content: Vec<String> = object(&response["content"])
            .map(|(media, content)| match &content["schema"] {
                Value::Null => format!("`{media}`"),
                _ if media == "text/plain" => format!("`{media}`"),
                schema => kind(schema),
            })
            .collect();
        let _ = writeln!(
            page,
            "| {status} | {} | {} |",
            cell(&response["description"]),
            content.join(", ")
        );
    }
}

/// A table of the properties of an object, or of the alternatives it has.
fn schema(page: &mut String, schema: &Value) {
    for key in ["anyOf", "oneOf"] {
        for alternative in schema[key].as_array().into_iter().flatten() {
            let value = match &alternative["const"] {
                Value::Null => String::new(),
                value => format!(" `{}`", plain(value)),
            };
            let text = cell(&alternative["description"]);
            let _ = write!(page, "\nEither{value}: {text}\n");
            self::schema(page, alternative);
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    *page += "\n| field | type | |\n| --- | --- | --- |\n";
    for (name, property) in properties {
        let mark = if required.contains(&name.as_str()) {
            ", required"
        } else {
            ""
        };
        let _ = writeln!(
            page,
            "| `{name}` | {}{mark} | {} |",
            kind(property),
            cell(&property["description"])
        );
    }
}

/// What a value is, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", plain(value)))
            .collect();
        return values.join(", ");
    }
    if schema["type"] == "array" {
        return format!("list of {}", kind(&schema["items"]));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(alternatives) = schema[key].as_array() {
            let alternatives: Vec<String> = alternatives.iter().map(kind).collect();
            return alternatives.join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<String> = kinds.iter().map(plain).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A text in a table.
fn cell(value: &Value) -> String {
    text(value)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}
