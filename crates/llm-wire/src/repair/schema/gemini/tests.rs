use super::*;
use proptest::prelude::*;

const ALLOWED: &[&str] = &[
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

/// What is wrong with `schema` in the dialect.
fn wrong(schema: &Value) -> Option<String> {
    let object = schema.as_object()?;
    if let Some(key) = object.keys().find(|key| !ALLOWED.contains(&key.as_str())) {
        return Some(format!("{key} in {schema}"));
    }
    if let Some(branches) = object.get("anyOf") {
        let branches = branches.as_array().unwrap();
        if object.len() > 1 || branches.len() < 2 {
            return Some(format!("a union with neighbours or of one: {schema}"));
        }
        return branches.iter().find_map(wrong);
    }
    let kinds = ["object", "array", "string", "integer", "number", "boolean"];
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !kinds.contains(&kind) {
        return Some(format!("type {kind:?} in {schema}"));
    }
    if (kind == "array") != object.contains_key("items") {
        return Some(format!("items of {schema}"));
    }
    let texts = |key: &str| object.get(key).map(|list| list.as_array().unwrap());
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    for key in ["enum", "required"] {
        if texts(key).is_some_and(|list| list.is_empty() || !list.iter().all(is_text)) {
            return Some(format!("{key} of {schema}"));
        }
    }
    let properties = object.get("properties").map(|map| map.as_object().unwrap());
    if properties.is_some_and(Object::is_empty) {
        return Some(format!("empty properties in {schema}"));
    }
    for name in texts("required").into_iter().flatten() {
        if !properties.unwrap().contains_key(name.as_str().unwrap()) {
            return Some(format!("required {name} in {schema}"));
        }
    }
    let fits = |name: &String| NameRule::Identifier.fits(name);
    if !properties.into_iter().flatten().all(|(name, _)| fits(name)) {
        return Some(format!("a name in {schema}"));
    }
    let inner = properties.into_iter().flatten().map(|(_, inner)| inner);
    inner.chain(object.get("items")).find_map(wrong)
}

fn written(schema: &Value) -> Value {
    let written = gemini_schema(schema);
    assert_eq!(wrong(&written), None);
    written
}

/// The schema that broke several clients at once: definitions, a constant, a list of types, a map, a
/// reference to a property, recursion.
#[test]
fn a_schema_of_all_trades_keeps_what_can_be_said() {
    let (parameters, renamed) = gemini_parameters(&json!({
        "type": "object",
        "$defs": {
            "K": {"type": "string", "enum": ["aws", "k8s"]},
            "T": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}}}
        },
        "properties": {
            "kind": {"$ref": "#/$defs/K", "default": "aws", "description": "Where."},
            "n": {"type": ["integer", "null"]},
            "mode": {"const": "fast"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "rows": {"type": "array", "items": {"$ref": "#/properties/headers"}},
            "tree": {"$ref": "#/$defs/T"}
        },
        "additionalProperties": false
    }));
    let map = json!({
        "type": "object",
        "description": "Limits: each further property {\"type\":\"string\"}."
    });
    let leaf = json!({"type": "object", "description": "The same form again."});
    let node = |kids: Value| json!({"type": "object", "properties": {"kids": {"type": "array", "items": kids}}});
    assert_eq!(
        parameters.unwrap(),
        json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["aws", "k8s"], "default": "aws", "description": "Where."},
                "n": {"type": "integer", "nullable": true},
                "mode": {"type": "string", "enum": ["fast"]},
                "headers": map,
                "rows": {"type": "array", "items": map},
                "tree": node(node(leaf))
            }
        })
    );
    assert!(renamed.is_empty());
}

#[test]
fn unions_stand_alone_and_null_is_a_flag() {
    let of = |schema: Value| written(&schema);
    assert_eq!(
        of(
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "A name"})
        ),
        json!({"type": "string", "nullable": true, "default": null, "description": "A name"})
    );
    assert_eq!(
        of(
            json!({"type": ["string", "integer", "null"], "description": "Either", "maxLength": 3, "maximum": 9})
        ),
        json!({"anyOf": [
            {"type": "string", "maxLength": 3, "description": "Either", "nullable": true},
            {"type": "integer", "maximum": 9, "description": "Either", "nullable": true}
        ]})
    );
    // A union within a union, a default beside it, and the same branch twice.
    assert_eq!(
        of(json!({
            "oneOf": [{"type": "boolean"}, {"anyOf": [{"type": "number"}, {"type": "boolean"}]}],
            "default": true
        })),
        json!({"anyOf": [
            {"type": "boolean", "description": "Default: true."},
            {"type": "number", "description": "Default: true."}
        ]})
    );
    // What stands beside a union holds in each branch.
    assert_eq!(
        of(json!({
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "required": ["a"],
            "oneOf": [{"properties": {"b": {"type": "string"}}}, {"properties": {"c": {"type": "string"}}, "required": ["c"]}]
        })),
        json!({"anyOf": [
            {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"c": {"type": "string"}, "a": {"type": "string"}}, "required": ["c", "a"]}
        ]})
    );
    // Branches that only demand something are told.
    assert_eq!(
        of(json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}]
        })),
        json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "description": "At least one of these holds: `a` given; `b` given."
        })
    );
}

#[test]
fn all_of_is_merged_and_values_give_types() {
    let of = |schema: Value| written(&schema);
    assert_eq!(
        of(
            json!({"allOf": [{"type": "object", "properties": {"x": {"type": "string"}}}, {"required": ["x"]}]})
        ),
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
    );
    assert_eq!(
        of(json!({"enum": ["a", 1, null]})),
        json!({"anyOf": [
            {"type": "string", "enum": ["a"], "nullable": true},
            {"type": "integer", "nullable": true, "description": "Limits: one of 1."}
        ]})
    );
    assert_eq!(
        of(json!({"type": "integer", "enum": [1, 2]})),
        json!({"type": "integer", "description": "Limits: one of 1, 2."})
    );
    assert_eq!(
        of(json!({"type": "string", "enum": ["C", "", "F", "C"]})),
        json!({"type": "string", "enum": ["C", "F"]})
    );
    assert_eq!(
        of(json!({"const": null})),
        json!({"type": "string", "nullable": true, "description": "Always null."})
    );
    assert_eq!(
        of(json!(true)),
        json!({"type": "string", "description": "Any JSON value."})
    );
}

#[test]
fn limits_that_cannot_be_said_are_told() {
    let of = |schema: Value| written(&schema);
    assert_eq!(
        of(json!({"type": "integer", "exclusiveMinimum": 0, "multipleOf": 2, "format": "int64"})),
        json!({"type": "integer", "format": "int64", "minimum": 1, "description": "Limits: multipleOf 2."})
    );
    assert_eq!(
        of(json!({"type": "number", "exclusiveMinimum": 0, "description": "How much."})),
        json!({"type": "number", "minimum": 0, "description": "How much. Limits: above 0."})
    );
    assert_eq!(
        of(
            json!({"type": "string", "format": "date", "examples": ["2026-01-02"], "deprecated": true})
        ),
        json!({"type": "string", "example": "2026-01-02", "description": "Deprecated. Limits: format \"date\"."})
    );
    assert_eq!(
        of(json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]})),
        json!({
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "description": "Limits: items in this order [{\"type\":\"string\"},{\"type\":\"integer\"}]."
        })
    );
}

/// Keywords count at their place only, and names that are not taken are replaced.
#[test]
fn properties_may_be_called_like_keywords() {
    let (parameters, renamed) = gemini_parameters(&json!({
        "type": "object",
        "properties": {"$ref": {"type": "string"}, "strict": {"type": "boolean"}, "items": {"type": "string"}},
        "required": ["strict", "$ref", "ghost"]
    }));
    let parameters = parameters.unwrap();
    assert_eq!(wrong(&parameters), None);
    assert_eq!(renamed.len(), 1);
    let wire = &renamed["$ref"];
    assert_eq!(parameters["properties"][wire], json!({"type": "string"}));
    assert_eq!(parameters["required"], json!(["strict", wire]));
    assert_eq!(parameters["properties"]["items"], json!({"type": "string"}));
}

#[test]
fn a_root_that_is_a_reference_or_a_union_becomes_one_object() {
    let (parameters, _) = gemini_parameters(&json!({
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}
    }));
    assert_eq!(
        parameters.unwrap(),
        json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
    );
    let (parameters, _) = gemini_parameters(&json!({
        "anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
        "$defs": {
            "A": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
            "B": {"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}
        }
    }));
    assert_eq!(
        parameters.unwrap(),
        json!({
            "type": "object",
            "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
            "description": "At least one of these holds: `x` given; `y` given."
        })
    );
    for nothing in [
        json!({}),
        json!({"type": "object", "properties": {}}),
        json!(null),
    ] {
        assert_eq!(gemini_parameters(&nothing).0, None, "{nothing}");
    }
}

/// Definitions that use the next one twice would double forty times; references in a circle never end.
#[test]
fn what_grows_without_end_is_cut() {
    let mut definitions = Object::new();
    for number in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        definitions.insert(
            format!("d{number}"),
            json!({"type": "object", "properties": {"a": next, "b": next}, "allOf": [next, next]}),
        );
    }
    let bomb = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let outcome = written(&bomb);
    assert!(outcome.to_string().len() < 1_000_000);
    for circle in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}),
        json!({"properties": {"a": {"$ref": "#"}}, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"items": {"$ref": "#/items"}}),
    ] {
        written(&circle);
    }
    let mut chain = Object::new();
    for number in 0..5_000 {
        let next = format!("#/$defs/d{}", number + 1);
        chain.insert(
            format!("d{number}"),
            json!({"allOf": [{"anyOf": [{"$ref": next}]}]}),
        );
    }
    written(&json!({"$ref": "#/$defs/d0", "$defs": chain}));
}

fn any_schema() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        Just(json!("object")),
        Just(json!("array")),
        Just(json!("string")),
        Just(json!("null")),
        Just(json!(["integer", "null"])),
        Just(json!(["string", "array", "object"])),
        Just(json!("any")),
    ];
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(1)),
        Just(Value::Null),
        Just(json!("a")),
        Just(json!(["a", "b", ""])),
        Just(json!([1, null, "a"])),
        Just(json!({"$ref": "#/$defs/a"})),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "#"})),
        kind.clone(),
        kind.prop_map(|kind| json!({"type": kind})),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let key = proptest::sample::select(vec![
            "type",
            "items",
            "properties",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "const",
            "required",
            "prefixItems",
            "additionalProperties",
            "description",
            "format",
            "exclusiveMinimum",
            "minimum",
            "minItems",
            "default",
            "nullable",
            "examples",
            "not",
            "title",
            "pattern",
            "$defs",
            "a",
            "b-c",
            "$ref",
        ])
        .prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..7)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_outcome_is_of_the_dialect_and_stays_as_it_is(schema in any_schema()) {
        let once = gemini_schema(&schema);
        prop_assert_eq!(wrong(&once), None);
        prop_assert_eq!(gemini_schema(&once), once);
        let (Some(parameters), renamed) = gemini_parameters(&schema) else { return Ok(()) };
        prop_assert_eq!(wrong(&parameters), None);
        prop_assert_eq!(&parameters["type"], "object");
        let (again, none) = gemini_parameters(&parameters);
        prop_assert_eq!(again, Some(parameters));
        prop_assert!(none.is_empty() && renamed.keys().all(|name| !NameRule::Identifier.fits(name)));
    }
}
