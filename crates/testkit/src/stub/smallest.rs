//! The smallest value of a JSON Schema.

use serde_json::{Value, json};

/// Deepest nesting that is looked into.
const DEEPEST: usize = 64;

/// The smallest value that satisfies `schema`, as far as this stub understands it.
pub(crate) fn smallest(schema: &Value) -> Value {
    smallest_in(schema, schema, 0)
}

fn smallest_in(schema: &Value, root: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let again = |schema: &Value| smallest_in(schema, root, depth + 1);
    if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(pointer.trim_start_matches('#'));
        return target.map_or(Value::Null, again);
    }
    for union in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(union).and_then(|list| list.get(0)) {
            return again(first);
        }
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(value) = schema.get("enum").and_then(|list| list.get(0)) {
        return value.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), again(schema)))
                .collect()
        }
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(json!(1.0)),
        Some("null") => Value::Null,
        _ => json!("ok"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_follows_references_and_unions() {
        let schema = json!({
            "type": "object",
            "properties": {
                "passed": {"type": "boolean"},
                "grade": {"$ref": "#/$defs/grade"},
                "why": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "score": {"type": "integer", "minimum": 3}
            },
            "$defs": {"grade": {"enum": ["low", "high"]}}
        });
        assert_eq!(
            smallest(&schema),
            json!({"passed": true, "grade": "low", "why": "ok", "score": 3})
        );
    }
}
