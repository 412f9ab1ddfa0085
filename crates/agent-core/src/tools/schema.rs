//! JSON Schemas of tool arguments (`spec/agents.md` §8 and §12.4).

use formats::Object;
use serde_json::{Value, json};

/// The `parameters` of a chat tool for the input schema of an MCP tool: an object schema with
/// `type`, `properties` and `additionalProperties`, otherwise as it came.
pub(crate) fn normalised(input: &Object) -> Value {
    if input.is_empty() {
        return json!({"type": "object", "properties": {}, "additionalProperties": false});
    }
    let mut schema = input.clone();
    for (key, value) in [
        ("type", json!("object")),
        ("properties", json!({})),
        ("additionalProperties", json!(false)),
    ] {
        schema.entry(key).or_insert(value);
    }
    Value::Object(schema)
}

/// How deep schemas are followed; deeper parts are cut to `{"type": "object"}`.
const MAX_DEPTH: usize = 64;

/// How many values an inlined schema may have; references beyond are cut like recursive ones, so
/// that definitions that multiply each other stay bounded.
const MAX_VALUES: usize = 20_000;

/// The schema without `$defs`: every `#/$defs/X` is replaced by its definition, keys beside the
/// `$ref` win over those of the definition, and recursion ends in `{"type": "object"}`.
pub(crate) fn flatten(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let definitions = match schema
        .as_object_mut()
        .and_then(|top| top.shift_remove("$defs"))
    {
        Some(Value::Object(definitions)) => definitions,
        _ => Object::new(),
    };
    Inliner {
        definitions: &definitions,
        values: 0,
    }
    .inline(&schema, &mut Vec::new())
}

struct Inliner<'a> {
    definitions: &'a Object,
    values: usize,
}

impl<'a> Inliner<'a> {
    fn inline(&mut self, value: &Value, open: &mut Vec<&'a str>) -> Value {
        self.values += 1;
        match value {
            Value::Object(object) => match object.get("$ref").and_then(Value::as_str) {
                Some(reference) if reference.starts_with("#/$defs/") => {
                    self.resolve(reference, object, open)
                }
                _ => Value::Object(
                    object
                        .iter()
                        .map(|(key, value)| (key.clone(), self.inline(value, open)))
                        .collect(),
                ),
            },
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.inline(item, open)).collect())
            }
            other => other.clone(),
        }
    }

    fn resolve(&mut self, reference: &str, beside: &Object, open: &mut Vec<&'a str>) -> Value {
        let name = reference.trim_start_matches("#/$defs/");
        let found = self.definitions.get_key_value(name);
        let mut resolved = match found {
            Some((name, definition))
                if !open.contains(&name.as_str())
                    && open.len() < MAX_DEPTH
                    && self.values < MAX_VALUES =>
            {
                open.push(name);
                let inlined = match definition {
                    Value::Bool(true) => json!({}),
                    Value::Bool(false) => json!({"not": {}}),
                    other => self.inline(other, open),
                };
                open.pop();
                inlined
            }
            _ => json!({"type": "object"}),
        };
        if let Value::Object(object) = &mut resolved {
            for (key, value) in beside.iter().filter(|(key, _)| *key != "$ref") {
                object.insert(key.clone(), self.inline(value, open));
            }
        }
        resolved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn missing_keys_are_added_and_nothing_else_changes() {
        assert_eq!(
            normalised(&Object::new()),
            json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
        let full = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}},
            "additionalProperties": true, "$defs": {"A": {"type": "string"}}, "x-own": 1});
        assert_eq!(normalised(&object(full.clone())), full);
        assert_eq!(
            normalised(&object(json!({"required": ["a"]}))),
            json!({"required": ["a"], "type": "object", "properties": {}, "additionalProperties": false})
        );
    }

    #[test]
    fn references_are_inlined_and_their_neighbours_win() {
        let schema = json!({
            "type": "object",
            "$defs": {"K": {"type": "string", "description": "inner", "enum": ["a", "b"]},
                      "L": {"type": "array", "items": {"$ref": "#/$defs/K"}},
                      "yes": true, "no": false},
            "properties": {"k": {"$ref": "#/$defs/K", "description": "outer"},
                           "l": {"$ref": "#/$defs/L"},
                           "y": {"$ref": "#/$defs/yes"}, "n": {"$ref": "#/$defs/no"},
                           "gone": {"$ref": "#/$defs/missing", "title": "kept"}}
        });
        assert_eq!(
            flatten(&schema),
            json!({"type": "object", "properties": {
                "k": {"type": "string", "description": "outer", "enum": ["a", "b"]},
                "l": {"type": "array", "items":
                    {"type": "string", "description": "inner", "enum": ["a", "b"]}},
                "y": {}, "n": {"not": {}},
                "gone": {"type": "object", "title": "kept"}}})
        );
    }

    #[test]
    fn recursion_ends() {
        let schema = json!({
            "$defs": {"T": {"type": "object", "properties":
                {"kids": {"type": "array", "items": {"$ref": "#/$defs/T", "title": "kid"}}}}},
            "properties": {"tree": {"$ref": "#/$defs/T"}}
        });
        assert_eq!(
            flatten(&schema),
            json!({"properties": {"tree": {"type": "object", "properties":
                {"kids": {"type": "array", "items": {"type": "object", "title": "kid"}}}}}})
        );
    }

    #[test]
    fn definitions_that_multiply_each_other_stay_bounded() {
        let mut definitions = Object::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/D{}", level + 1)});
            definitions.insert(
                format!("D{level}"),
                json!({"properties": {"a": next, "b": next, "c": next}}),
            );
        }
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/D0"});
        let flat = flatten(&schema).to_string();
        assert!(flat.len() < 10_000_000, "{} bytes", flat.len());
    }
}
