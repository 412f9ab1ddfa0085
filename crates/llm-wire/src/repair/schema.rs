//! Schemas of tool parameters as OpenAI and Anthropic want them; `gemini` has those of Google.

use std::borrow::Cow;

use formats::Object;
use serde_json::{Value, json};

mod gemini;
mod plain;

pub use gemini::{Renamed, gemini_parameters, gemini_schema};

/// `parameters` completed: type `object` with `properties` at the root, `items` for every array.
/// Everything else stays as it is.
///
/// OpenAI refuses a tool whose schema lacks these, although JSON Schema does not ask for them.
pub fn complete_parameters(parameters: &Value) -> Cow<'_, Value> {
    if root_is_complete(parameters) && is_complete(parameters) {
        return Cow::Borrowed(parameters);
    }
    let mut schema = parameters.clone();
    complete_root(&mut schema);
    complete(&mut schema);
    Cow::Owned(schema)
}

/// `parameters` as OpenAI itself takes them: completed, without a union at the root, without patterns
/// that it cannot read.
pub fn openai_parameters(parameters: &Value) -> Cow<'_, Value> {
    if is_fine_root(parameters) && is_fine(parameters) {
        return Cow::Borrowed(parameters);
    }
    let mut schema = flattened(parameters);
    if any_schema(&schema, &mut |object| odd_pattern(object)) {
        each_schema(schema.to_mut(), &mut |object| {
            if odd_pattern(object) {
                object.remove("pattern");
            }
        });
    }
    schema
}

/// Whether the root is an object with `properties` and no union. Tools are looked at with every call:
/// their keywords are passed once, and nothing is looked up.
fn is_fine_root(schema: &Value) -> bool {
    let (mut is_object, mut has_properties) = (false, false);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "type" => is_object = value == "object",
            "properties" => has_properties = value.is_object(),
            other if UNIONS.contains(&other) => return false,
            _ => {}
        }
    }
    is_object && has_properties
}

/// Whether OpenAI takes `schema` and all schemas within it as they are.
fn is_fine(schema: &Value) -> bool {
    let (mut is_array, mut has_items) = (false, false);
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let is_fine = match (place_of(keyword), value) {
            (Place::Schema, value) => {
                has_items |= keyword == "items" && is_schema(value);
                is_fine(value)
            }
            (Place::List, Value::Array(list)) => list.iter().all(is_fine),
            (Place::Map, Value::Object(map)) => map.values().all(is_fine),
            (_, value) if keyword == "type" => {
                is_array = names_array(value);
                true
            }
            (_, Value::String(pattern)) if keyword == "pattern" => !is_odd(pattern),
            _ => true,
        };
        if !is_fine {
            return false;
        }
    }
    has_items || !is_array
}

/// Whether a schema has a pattern in a dialect other than Python's, which OpenAI checks with:
/// classes of Unicode properties, and groups named as in other languages.
fn odd_pattern(schema: &Object) -> bool {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    pattern.is_some_and(is_odd)
}

fn is_odd(pattern: &str) -> bool {
    let named_group = pattern
        .match_indices("(?<")
        .any(|(at, found)| !pattern[at + found.len()..].starts_with(['=', '!']));
    pattern.contains("\\p{") || pattern.contains("\\P{") || named_group
}

/// `parameters` with a root of type `object` that has `properties` and no union, as Anthropic takes
/// them. Everything else stays as it is.
pub fn rooted_parameters(parameters: &Value) -> Cow<'_, Value> {
    match without_root_union(parameters) {
        Cow::Borrowed(same) if root_is_complete(same) => Cow::Borrowed(same),
        schema => {
            let mut schema = schema.into_owned();
            complete_root(&mut schema);
            Cow::Owned(schema)
        }
    }
}

/// `parameters` completed, and a union at the root flattened into one object, which is the only root
/// that OpenAI takes.
fn flattened(parameters: &Value) -> Cow<'_, Value> {
    match without_root_union(parameters) {
        Cow::Borrowed(same) => complete_parameters(same),
        Cow::Owned(schema) => Cow::Owned(complete_parameters(&schema).into_owned()),
    }
}

/// `parameters` with a union at the root flattened into one object. What the union demanded is said
/// in the description instead.
fn without_root_union(parameters: &Value) -> Cow<'_, Value> {
    let is_union = |object: &Object| UNIONS.iter().any(|key| object.contains_key(*key));
    let Some(root) = parameters.as_object().filter(|root| is_union(root)) else {
        return Cow::Borrowed(parameters);
    };
    let mut root = root.clone();
    let mut properties = take_object(&mut root, "properties");
    let mut notes = Vec::new();
    for key in UNIONS {
        let Some(Value::Array(branches)) = root.remove(*key) else {
            continue;
        };
        for (name, schema) in properties_of(&branches, *key != "allOf") {
            properties.entry(name).or_insert(schema);
        }
        let demands: Vec<String> = branches.iter().map(demand).collect();
        notes.push(match *key {
            "allOf" => format!("All of these hold: {}.", demands.join("; ")),
            "oneOf" => format!("Exactly one of these holds: {}.", demands.join("; ")),
            _ => format!("At least one of these holds: {}.", demands.join("; ")),
        });
    }
    root.insert("properties".to_owned(), Value::Object(properties));
    let earlier = root.get("description").and_then(Value::as_str);
    let description: Vec<&str> = earlier
        .into_iter()
        .chain(notes.iter().map(String::as_str))
        .collect();
    let description = description.join(" ");
    root.insert("description".to_owned(), description.into());
    Cow::Owned(Value::Object(root))
}

/// The properties of the branches of a union. One that they see differently may be any of what they
/// say, or, where all branches hold, is what the first one says.
fn properties_of(branches: &[Value], any: bool) -> Object {
    let mut seen: Vec<(&String, Vec<&Value>)> = Vec::new();
    for branch in branches {
        let known = branch.get("properties").and_then(Value::as_object);
        for (name, schema) in known.into_iter().flatten() {
            match seen.iter_mut().find(|(other, _)| *other == name) {
                None => seen.push((name, vec![schema])),
                Some((_, schemas)) if any && !schemas.contains(&schema) => schemas.push(schema),
                Some(_) => {}
            }
        }
    }
    let one = |(name, schemas): (&String, Vec<&Value>)| {
        let schema = match schemas.as_slice() {
            [schema] => (*schema).clone(),
            several => json!({ "anyOf": several }),
        };
        (name.clone(), schema)
    };
    seen.into_iter().map(one).collect()
}

/// Keywords that OpenAI does not take at the root.
const UNIONS: &[&str] = &["allOf", "anyOf", "oneOf"];

fn take_object(root: &mut Object, key: &str) -> Object {
    match root.remove(key) {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

/// What one branch of a union demands, in words.
fn demand(branch: &Value) -> String {
    let required: Vec<String> = branch
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| Some(format!("`{}`", name.as_str()?)))
        .collect();
    if required.is_empty() {
        branch.to_string()
    } else {
        format!("{} given", required.join(" and "))
    }
}

fn root_is_complete(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("properties").is_some_and(Value::is_object)
}

fn complete_root(schema: &mut Value) {
    if !schema.is_object() {
        // `true`, `null` and the like promise nothing about the arguments.
        *schema = json!({});
    }
    if let Some(root) = schema.as_object_mut() {
        root.insert("type".to_owned(), "object".into());
        if !root.get("properties").is_some_and(Value::is_object) {
            root.insert("properties".to_owned(), json!({}));
        }
    }
}

/// Whether `schema` may describe an array.
fn is_array(schema: &Object) -> bool {
    schema.get("type").is_some_and(names_array)
}

fn names_array(kind: &Value) -> bool {
    match kind {
        Value::String(name) => name == "array",
        Value::Array(names) => names.iter().any(|name| name == "array"),
        _ => false,
    }
}

fn is_complete(schema: &Value) -> bool {
    !any_schema(schema, &mut |object| is_array(object) && !has_items(object))
}

fn complete(schema: &mut Value) {
    each_schema(schema, &mut |object| {
        if is_array(object) && !has_items(object) {
            object.insert("items".to_owned(), json!({}));
        }
    });
}

/// Whether `test` holds of `schema` or a schema within it.
fn any_schema(schema: &Value, test: &mut dyn FnMut(&Object) -> bool) -> bool {
    let Some(object) = schema.as_object() else {
        return false;
    };
    test(object)
        || object
            .iter()
            .any(|(keyword, value)| match (place_of(keyword), value) {
                (Place::Schema, value) => any_schema(value, test),
                (Place::List, Value::Array(list)) => {
                    list.iter().any(|schema| any_schema(schema, test))
                }
                (Place::Map, Value::Object(map)) => {
                    map.values().any(|schema| any_schema(schema, test))
                }
                _ => false,
            })
}

/// Does `change` to `schema` and all schemas within it.
fn each_schema(schema: &mut Value, change: &mut dyn FnMut(&mut Object)) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    change(object);
    for (keyword, value) in object.iter_mut() {
        match (place_of(keyword), value) {
            (Place::Schema, value) => each_schema(value, change),
            (Place::List, Value::Array(list)) => {
                for schema in list {
                    each_schema(schema, change);
                }
            }
            (Place::Map, Value::Object(map)) => {
                for schema in map.values_mut() {
                    each_schema(schema, change);
                }
            }
            _ => {}
        }
    }
}

/// `items` has to be a schema; drafts before 2020-12 allowed a list of them.
fn has_items(schema: &Object) -> bool {
    schema.get("items").is_some_and(is_schema)
}

fn is_schema(value: &Value) -> bool {
    matches!(value, Value::Object(_) | Value::Bool(_))
}

/// Where a keyword of JSON Schema holds further schemas.
enum Place {
    Schema,
    List,
    Map,
    Other,
}

fn place_of(keyword: &str) -> Place {
    match keyword {
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Place::Schema,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Place::List,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
            Place::Map
        }
        _ => Place::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_complete_schema_is_not_copied() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}});
        assert!(matches!(complete_parameters(&schema), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_missing_is_added_where_it_is_missing() {
        let schema = json!({
            "properties": {
                // A property that is called like a keyword is no keyword.
                "items": {"type": ["array", "null"]},
                "deep": {"anyOf": [{"type": "array", "prefixItems": [{"type": "array"}]}]}
            },
            "$defs": {"list": {"type": "array"}},
            "default": {"type": "array"}
        });
        assert_eq!(
            *complete_parameters(&schema),
            json!({
                "properties": {
                    "items": {"type": ["array", "null"], "items": {}},
                    "deep": {"anyOf": [{
                        "type": "array",
                        "prefixItems": [{"type": "array", "items": {}}],
                        "items": {}
                    }]}
                },
                "$defs": {"list": {"type": "array", "items": {}}},
                "default": {"type": "array"},
                "type": "object"
            })
        );
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(*complete_parameters(&json!({})), empty);
        assert_eq!(*complete_parameters(&json!(true)), empty);
        assert_eq!(*complete_parameters(&json!({"type": "object"})), empty);
    }

    #[test]
    fn a_union_at_the_root_becomes_one_object_with_a_note() {
        let schema = json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "array"}}, "required": ["b", "c"]}
        ]});
        assert_eq!(
            *openai_parameters(&schema),
            json!({
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}},
                "description": "At least one of these holds: `a` given; `b` and `c` given."
            })
        );
    }

    #[test]
    fn a_property_that_the_branches_see_differently_may_be_either() {
        let branch =
            |kind: &str| json!({"properties": {"a": {"type": kind}, "b": {"type": "null"}}});
        let schema = json!({"oneOf": [branch("string"), branch("integer"), branch("string")]});
        let properties = openai_parameters(&schema)["properties"].clone();
        assert_eq!(
            properties,
            json!({"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "b": {"type": "null"}})
        );
        // All of them hold: the first one does.
        let schema = json!({"allOf": [branch("string"), branch("integer")]});
        let properties = openai_parameters(&schema)["properties"].clone();
        assert_eq!(properties["a"], json!({"type": "string"}));
    }

    #[test]
    fn patterns_that_python_cannot_read_are_dropped() {
        let pattern = |pattern: &str| {
            let schema = json!({"type": "object", "properties": {"a": {"pattern": pattern}}});
            openai_parameters(&schema)
                .pointer("/properties/a/pattern")
                .is_some()
        };
        assert!(pattern("^[A-Z]{3}$") && pattern("(?<=a)b") && pattern("(?P<year>x)"));
        assert!(!pattern("^\\p{L}+$") && !pattern("(?<year>x)"));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!("array")),
            Just(json!("object")),
            Just(json!("(?<a>b)")),
            Just(json!(1)),
            Just(Value::Null),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let key = prop_oneof![
                Just("type"),
                Just("items"),
                Just("properties"),
                Just("anyOf"),
                Just("pattern"),
                Just("a"),
            ]
            .prop_map(str::to_owned);
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                proptest::collection::vec((key, inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    /// Schemas as tools have them, without a union at the root.
    fn tool_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string", "pattern": "^a"})),
            Just(json!({"type": "string", "pattern": "^\\p{L}+$"})),
            Just(json!({"type": ["integer", "null"]})),
            Just(json!({"type": "array"})),
            Just(json!({"enum": ["a", 1, null]})),
            Just(json!({"const": "a"})),
            Just(json!(true)),
            Just(json!({"$ref": "#/$defs/d"})),
        ];
        let inner =
            leaf.prop_recursive(3, 20, 3, |inner| {
                let list = proptest::collection::vec(inner.clone(), 1..3);
                prop_oneof![
                inner.clone().prop_map(|schema| json!({"type": "array", "items": schema})),
                list.clone().prop_map(|list| json!({"anyOf": list})),
                list.prop_map(|list| json!({"type": "array", "prefixItems": list})),
                (inner.clone(), inner).prop_map(|(a, b)| json!({
                    "type": "object", "properties": {"a": a, "b": b}, "additionalProperties": false
                })),
            ]
            });
        let required = proptest::collection::vec(proptest::sample::select(vec!["a", "b"]), 0..2);
        (inner.clone(), inner.clone(), inner, required).prop_map(|(a, b, d, required)| {
            json!({
                "$defs": {"d": d}, "properties": {"a": a, "b": b}, "required": required
            })
        })
    }

    fn arguments() -> impl Strategy<Value = Value> {
        let leaf = proptest::sample::select(vec![
            json!("a"),
            json!("ab"),
            json!("é"),
            json!(1),
            Value::Null,
            json!([]),
            json!({}),
        ]);
        let inner = leaf.prop_recursive(2, 8, 2, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                (inner.clone(), inner).prop_map(|(a, b)| json!({"a": a, "b": b})),
            ]
        });
        let key = proptest::sample::select(vec!["a".to_owned(), "b".to_owned()]);
        proptest::collection::btree_map(key, inner, 0..3)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    }

    proptest! {
        /// What a tool takes stays sayable: a schema is loosened where it is rewritten, never narrowed.
        #[test]
        fn what_was_valid_stays_valid(schema in tool_schema(), arguments in arguments()) {
            // Definitions that lead to themselves and nowhere else are no schemas.
            let Ok(before) = jsonschema::validator_for(&schema) else { return Ok(()) };
            prop_assume!(schema["$defs"]["d"] != json!({"$ref": "#/$defs/d"}));
            if before.is_valid(&arguments) {
                for after in [openai_parameters(&schema), rooted_parameters(&schema)] {
                    let validator = jsonschema::validator_for(&after).unwrap();
                    prop_assert!(validator.is_valid(&arguments), "{after}");
                }
            }
        }

        #[test]
        fn the_outcome_is_complete_and_stays_so(schema in any_json()) {
            let once = complete_parameters(&schema).into_owned();
            prop_assert!(root_is_complete(&once) && is_complete(&once));
            prop_assert!(matches!(complete_parameters(&once), Cow::Borrowed(_)));
            let is_odd = any_schema(&schema, &mut |object| odd_pattern(object));
            prop_assert_eq!(is_fine(&schema), is_complete(&schema) && !is_odd);
            let ours = openai_parameters(&schema).into_owned();
            prop_assert!(is_fine_root(&ours) && is_fine(&ours), "{}", ours);
        }
    }
}
