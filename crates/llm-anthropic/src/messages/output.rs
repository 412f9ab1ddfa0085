//! Structured output: a JSON schema as Anthropic keeps to it (`output_config.format`).

use std::collections::HashSet;

use formats::Object;
use serde_json::{Value, json};

/// Keywords that the native format does not take, told to the model in the description instead.
const TOLD: &[&str] = &[
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "pattern",
    "minProperties",
    "maxProperties",
];

/// `schema` as the native format takes it: objects closed, limits moved into the descriptions,
/// `oneOf` as `anyOf`. `None` where that is impossible: the native format has no open objects and no
/// recursion.
pub(crate) fn native_schema(schema: &Value) -> Option<Value> {
    if is_recursive(schema) {
        return None;
    }
    rewritten(schema)
}

/// Whether a definition of `root` leads back to itself. A reference that leads elsewhere than to a
/// definition counts as recursion too: it may lead to what it stands in.
fn is_recursive(root: &Value) -> bool {
    Search {
        root,
        path: Vec::new(),
        done: HashSet::new(),
    }
    .leads_back(root)
}

/// A search for definitions that lead back to themselves.
struct Search<'s> {
    root: &'s Value,
    /// The references that led here.
    path: Vec<&'s str>,
    /// Those that lead nowhere back, so that each is followed once.
    done: HashSet<&'s str>,
}

impl<'s> Search<'s> {
    fn leads_back(&mut self, schema: &'s Value) -> bool {
        match schema {
            Value::Array(list) => list.iter().any(|schema| self.leads_back(schema)),
            Value::Object(object) => match object.get("$ref").and_then(Value::as_str) {
                Some(pointer) => self.follow(pointer),
                // The definitions count where they are referred to.
                None => object
                    .iter()
                    .filter(|(key, _)| !matches!(key.as_str(), "$defs" | "definitions"))
                    .any(|(_, schema)| self.leads_back(schema)),
            },
            _ => false,
        }
    }

    fn follow(&mut self, pointer: &'s str) -> bool {
        let is_definition =
            pointer.starts_with("#/$defs/") || pointer.starts_with("#/definitions/");
        if !is_definition || self.path.contains(&pointer) {
            return true;
        }
        if self.done.contains(pointer) {
            return false;
        }
        self.path.push(pointer);
        let target = self.root.pointer(pointer.trim_start_matches('#'));
        let back = target.is_some_and(|target| self.leads_back(target));
        self.path.pop();
        self.done.insert(pointer);
        back
    }
}

fn rewritten(schema: &Value) -> Option<Value> {
    let object = schema.as_object()?;
    let mut native = Object::new();
    let mut told = Vec::new();
    for (key, value) in object {
        match key.as_str() {
            "properties" | "$defs" | "definitions" => {
                let schemas = value.as_object()?.iter();
                let schemas: Option<Object> = schemas
                    .map(|(name, schema)| Some((name.clone(), rewritten(schema)?)))
                    .collect();
                native.insert(key.clone(), schemas?.into());
            }
            "items" => {
                native.insert(key.clone(), rewritten(value)?);
            }
            "anyOf" | "oneOf" | "allOf" => {
                let branches: Option<Vec<Value>> =
                    value.as_array()?.iter().map(rewritten).collect();
                let key = if key == "allOf" { "allOf" } else { "anyOf" };
                native.insert(key.to_owned(), branches?.into());
            }
            "additionalProperties" if *value != json!(false) => return None,
            _ if TOLD.contains(&key.as_str()) => told.push(format!("{key} {value}")),
            _ => {
                native.insert(key.clone(), value.clone());
            }
        }
    }
    if is_of_type(object, "object") {
        object.get("properties")?;
        native.insert("additionalProperties".to_owned(), false.into());
    }
    if is_of_type(object, "array") && !object.contains_key("items") {
        return None;
    }
    let says_something = ["type", "enum", "const", "anyOf", "allOf", "$ref"];
    if !says_something.iter().any(|key| native.contains_key(*key)) {
        return None;
    }
    if !told.is_empty() {
        let limits = format!("Limits: {}.", told.join(", "));
        let description = match native.get("description").and_then(Value::as_str) {
            Some(earlier) => format!("{earlier} {limits}"),
            None => limits,
        };
        native.insert("description".to_owned(), description.into());
    }
    Some(Value::Object(native))
}

fn is_of_type(schema: &Object, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == name,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_and_objects_are_closed() {
        let schema = json!({
            "type": "object",
            "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 10, "description": "How many."},
                "either": {"oneOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
                "deep": {"type": "object", "properties": {"minimum": {"$ref": "#/$defs/word"}}}
            },
            "$defs": {"word": {"enum": ["a", "b"]}},
            "required": ["n"]
        });
        assert_eq!(
            native_schema(&schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "n": {"type": "integer", "description": "How many. Limits: minimum 0, maximum 10."},
                    "either": {"anyOf": [
                        {"type": "string", "description": "Limits: minLength 1."},
                        {"type": "null"}
                    ]},
                    "deep": {
                        "type": "object",
                        "properties": {"minimum": {"$ref": "#/$defs/word"}},
                        "additionalProperties": false
                    }
                },
                "$defs": {"word": {"enum": ["a", "b"]}},
                "required": ["n"],
                "additionalProperties": false
            })
        );
    }

    #[test]
    fn what_is_open_cannot_be_said_natively() {
        for open in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "properties": {"any": {}}}),
            json!({"type": "object", "properties": {"any": true}}),
            json!({"type": "array"}),
            json!(true),
        ] {
            assert_eq!(native_schema(&open), None, "{open}");
        }
    }

    #[test]
    fn recursion_cannot_be_said_natively_but_a_shared_definition_can() {
        let tree = json!({"$ref": "#/$defs/tree", "$defs": {"tree": {
            "type": "object",
            "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}
        }}});
        assert_eq!(native_schema(&tree), None);
        assert_eq!(native_schema(&json!({"$ref": "#"})), None);
        let shared = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/w"}, "b": {"$ref": "#/$defs/w"}},
            "$defs": {"w": {"type": "string"}}
        });
        assert!(native_schema(&shared).is_some());
    }
}
