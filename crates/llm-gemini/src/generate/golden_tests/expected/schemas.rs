//! Schemas of tools: where we differ from LiteLLM, and why.

use serde_json::{Value, json};

use super::{Case, at, function, properties};
use llm_vectors::Edit::{Remove, Set};
use llm_vectors::Outcome::Changed;

/// What the dialect can say is said in it, the rest in words.
pub(super) fn schemas() -> Vec<Case> {
    let any = json!({"type": "string", "description": "Any JSON value."});
    let point = json!({
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
        "required": ["x", "y"],
        "nullable": true
    });
    let leaf = json!({"type": "object", "description": "The same form again."});
    let node = |kids: Value| {
        json!({"type": "object", "properties": {
            "value": {"type": "string"}, "children": {"type": "array", "items": kids}
        }})
    };
    let numbers = || {
        properties(json!({
            "n": {"type": "integer", "description": "Limits: one of 1, 2, 3."},
            "b": {"type": "boolean", "description": "Limits: one of true."},
            "x": {"type": "number", "description": "Limits: one of 0.5, 1."},
            "untyped": {"type": "string", "enum": ["a", "b"]},
            "mixed": {"anyOf": [
                {"type": "string", "enum": ["a"], "nullable": true},
                {"type": "integer", "description": "Limits: one of 1.", "nullable": true}
            ]},
            "nullable": {"type": "string", "enum": ["a"], "nullable": true},
            "k": {"type": "string", "enum": ["only"]}
        }))
    };
    let place = "/tools/0/functionDeclarations/0/parameters/properties";
    vec![
        (
            "tools_array_without_items",
            properties(json!({
                "a": {"type": "array", "items": any},
                "b": {"type": "array", "items": any},
                "t": {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                    "description": "Limits: items in this order [{\"type\":\"string\"},{\"type\":\"integer\"}]."
                }
            })),
        ),
        (
            "tools_boolean_schema",
            function(&json!({"any": any, "obj": {"type": "object"}})),
        ),
        (
            "tools_constraints",
            properties(json!({
                "day": {"type": "string", "description": "Limits: format \"date\"."},
                "at": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "minLength": 3, "maxLength": 80, "description": "Limits: format \"email\"."},
                "n": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9, "description": "Limits: multipleOf 2."},
                "x": {"type": "number", "minimum": 0, "maximum": 1, "description": "Limits: above 0, below 1."},
                "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
                "uni": {"type": "string", "pattern": "^\\p{L}+$"},
                "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "description": "Limits: uniqueItems true."}
            })),
        ),
        (
            "tools_default_title_examples",
            properties(json!({
                "n": {"type": "integer", "default": 5, "title": "N", "example": 1},
                "deprecated": {"type": "string", "description": "Deprecated."}
            })),
        ),
        ("tools_enum_nonstring", numbers()),
        ("tools_enum_nonstring__gemini-3.5-flash", numbers()),
        (
            "tools_enum_strings",
            properties(json!({"unit": {"type": "string", "enum": ["C", "F"]}})),
        ),
        (
            "tools_map_type",
            properties(json!({"labels": {
                "type": "object",
                "description": "Limits: each further property {\"type\":\"string\"}."
            }})),
        ),
        (
            "tools_missing_type",
            properties(json!({
                "a": {"type": "string"},
                "b": {"type": "string", "description": "anything. Any JSON value."}
            })),
        ),
        (
            "tools_property_named_ref",
            function(&json!({"_ref_94c3656c": {"type": "string"}, "a": {"type": "string"}})),
        ),
        (
            "tools_property_names",
            Changed(vec![
                Set(
                    "/tools/0/functionDeclarations/0/parameters/properties/strict",
                    json!({"type": "boolean"}),
                ),
                Remove("/tools/0/functionDeclarations/0/parameters/properties/user-id"),
                Remove("/tools/0/functionDeclarations/0/parameters/properties/2nd"),
                Set(
                    "/tools/0/functionDeclarations/0/parameters/properties/user_id_32cab498",
                    json!({"type": "string"}),
                ),
                Set(
                    "/tools/0/functionDeclarations/0/parameters/properties/_2nd_5b7efcdf",
                    json!({"type": "string"}),
                ),
            ]),
        ),
        (
            "tools_ref_defs",
            at(
                "/tools/0/functionDeclarations/0/parameters/properties/to",
                point,
            ),
        ),
        (
            "tools_ref_recursive",
            at(place, json!({"root": node(node(leaf))})),
        ),
        (
            "tools_required_undefined",
            at(
                "/tools/0/functionDeclarations/0/parameters/required",
                json!(["a"]),
            ),
        ),
        // Parameters have to be an object.
        (
            "tools_top_level_union",
            at(
                "/tools/0/functionDeclarations/0/parameters",
                json!({
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "description": "At least one of these holds: `a` given; `b` given."
                }),
            ),
        ),
        (
            "tools_unions",
            properties(json!({
                "a": {"type": "string", "nullable": true, "default": null, "description": "A name"},
                "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "c": {"anyOf": [
                    {"type": "string", "nullable": true, "description": "Either"},
                    {"type": "integer", "nullable": true, "description": "Either"}
                ]},
                "d": {"type": "array", "items": {"type": "string"}, "nullable": true},
                "e": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
                "g": {"type": "string"}
            })),
        ),
    ]
}
