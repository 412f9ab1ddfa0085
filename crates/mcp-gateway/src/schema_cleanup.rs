//! The rewriting of tool schemas that the Python reference does for clients with a narrow idea of
//! JSON Schema (`spec/environment.md` §5.6). Off unless it is asked for.

use serde_json::{Map, Value};

use crate::jsonrpc::{self, RawObject};

/// How many values a schema may have after its references were replaced; one that would grow
/// further stays as it is.
const MAX_VALUES: usize = 50_000;

/// Rewrites the schemas of one entry of `tools/list`.
pub(crate) fn clean_tool(tool: &mut RawObject) {
    for (key, is_input) in [("inputSchema", true), ("outputSchema", false)] {
        let Some(mut schema) = tool.read::<Value>(key) else {
            continue;
        };
        if is_input {
            remove_mixed_enums(&mut schema);
        }
        let mut inliner = Inliner {
            root: &schema,
            open: Vec::new(),
            values: 0,
            kept: false,
        };
        if let Some(Value::Object(mut inlined)) = inliner.inline(&schema) {
            if !inliner.kept {
                inlined.remove("$defs");
                inlined.remove("definitions");
            }
            schema = Value::Object(inlined);
        }
        tool.set(key, jsonrpc::raw(&schema));
    }
}

/// Removes each `enum` with a value that is no string.
fn remove_mixed_enums(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let mixed = object
                .get("enum")
                .and_then(Value::as_array)
                .is_some_and(|values| values.iter().any(|value| !value.is_string()));
            if mixed {
                object.shift_remove("enum");
            }
            object.values_mut().for_each(remove_mixed_enums);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_mixed_enums),
        _ => {}
    }
}

struct Inliner<'s> {
    root: &'s Value,
    /// References that are being replaced, to find those that contain themselves.
    open: Vec<String>,
    values: usize,
    /// Whether a reference had to stay.
    kept: bool,
}

impl Inliner<'_> {
    /// The value with its local references replaced; `None` when it grows too large.
    fn inline(&mut self, value: &Value) -> Option<Value> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return None;
        }
        match value {
            Value::Object(object) => self.inline_object(object),
            Value::Array(items) => items
                .iter()
                .map(|item| self.inline(item))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array),
            other => Some(other.clone()),
        }
    }

    fn inline_object(&mut self, object: &Map<String, Value>) -> Option<Value> {
        let target = object
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| {
                Some((reference, self.root.pointer(reference.strip_prefix('#')?)?))
            });
        let Some((reference, target)) = target else {
            return self.inline_entries(object, None).map(Value::Object);
        };
        if self.open.iter().any(|open| open == reference) {
            self.kept = true;
            return Some(Value::Object(object.clone()));
        }
        self.open.push(reference.to_owned());
        let inlined = self.inline(target);
        self.open.pop();
        // What stands beside a reference adds to its target and wins over it.
        let mut merged = match inlined? {
            Value::Object(merged) => merged,
            other => return Some(other),
        };
        merged.extend(self.inline_entries(object, Some("$ref"))?);
        Some(Value::Object(merged))
    }

    fn inline_entries(
        &mut self,
        object: &Map<String, Value>,
        without: Option<&str>,
    ) -> Option<Map<String, Value>> {
        object
            .iter()
            .filter(|(key, _)| Some(key.as_str()) != without)
            .map(|(key, value)| Some((key.clone(), self.inline(value)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cleaned(schema: &Value) -> Value {
        let tool = json!({"name": "t", "inputSchema": schema});
        let mut tool: RawObject = serde_json::from_value(tool).unwrap();
        clean_tool(&mut tool);
        tool.read("inputSchema").unwrap()
    }

    #[test]
    fn enums_with_other_values_than_strings_go() {
        assert_eq!(
            cleaned(
                &json!({"properties": {"a": {"enum": ["x", null]}, "b": {"enum": ["x"]}, "enum": {"type": "string"}}})
            ),
            json!({"properties": {"a": {}, "b": {"enum": ["x"]}, "enum": {"type": "string"}}})
        );
    }

    #[test]
    fn references_are_replaced_and_what_stands_beside_them_wins() {
        assert_eq!(
            cleaned(&json!({
                "$defs": {"K": {"type": "string", "description": "d"}},
                "properties": {"k": {"$ref": "#/$defs/K", "default": "a", "description": "own"}},
            })),
            json!({"properties": {"k": {"type": "string", "description": "own", "default": "a"}}})
        );
    }

    #[test]
    fn a_schema_that_contains_itself_is_cut_at_the_second_time() {
        let tree = json!({
            "$defs": {"T": {"properties": {"kids": {"items": {"$ref": "#/$defs/T"}}}}},
            "properties": {"tree": {"$ref": "#/$defs/T"}},
        });
        let cleaned = cleaned(&tree);
        assert_eq!(
            cleaned["properties"]["tree"]["properties"]["kids"]["items"],
            json!({"$ref": "#/$defs/T"})
        );
        assert!(cleaned["$defs"]["T"].is_object());
    }

    #[test]
    fn a_schema_that_would_explode_stays_as_it_is() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
            defs.insert(format!("L{level}"), json!({"allOf": [next, next]}));
        }
        defs.insert("L40".to_owned(), json!({"type": "string"}));
        let schema = json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/L0"}}});
        assert_eq!(cleaned(&schema), schema);
    }
}
