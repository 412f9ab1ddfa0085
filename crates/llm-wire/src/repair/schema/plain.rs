//! Single steps on one schema on the way into Google's dialect.

use formats::Object;
use serde_json::{Value, json};

use super::demand;

/// Longest text of a schema that is told in a description, in bytes.
const LONGEST_TOLD: usize = 300;

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// Nothing is said: the dialect has no word for it.
    Anything,
}

impl Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("object", Self::Object),
        ("array", Self::Array),
        ("string", Self::String),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
    ];

    fn of_word(word: &str) -> Option<Self> {
        let known = |(other, _): &&(&str, Self)| word.eq_ignore_ascii_case(other);
        Self::WORDS.iter().find(known).map(|(_, kind)| *kind)
    }

    fn of_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        })
    }

    /// The word for it; text may hold anything.
    pub(super) fn word(self) -> &'static str {
        let known = |(_, kind): &&(&'static str, Self)| *kind == self;
        let word = Self::WORDS.iter().find(known);
        word.map_or("string", |(word, _)| word)
    }

    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Anything => true,
            Self::Number => value.is_number(),
            _ => Self::of_value(value) == Some(self),
        }
    }
}

/// Keywords that say something about one kind, or two, only.
const OF_KINDS: &[(&str, &[Kind])] = &[
    ("properties", &[Kind::Object]),
    ("required", &[Kind::Object]),
    ("additionalProperties", &[Kind::Object]),
    ("patternProperties", &[Kind::Object]),
    ("propertyNames", &[Kind::Object]),
    ("propertyOrdering", &[Kind::Object]),
    ("dependentRequired", &[Kind::Object]),
    ("minProperties", &[Kind::Object]),
    ("maxProperties", &[Kind::Object]),
    ("items", &[Kind::Array]),
    ("prefixItems", &[Kind::Array]),
    ("contains", &[Kind::Array]),
    ("uniqueItems", &[Kind::Array]),
    ("minItems", &[Kind::Array]),
    ("maxItems", &[Kind::Array]),
    ("pattern", &[Kind::String]),
    ("minLength", &[Kind::String]),
    ("maxLength", &[Kind::String]),
    ("contentEncoding", &[Kind::String]),
    ("contentMediaType", &[Kind::String]),
    ("format", &[Kind::String, Kind::Integer, Kind::Number]),
    ("multipleOf", &[Kind::Number, Kind::Integer]),
    ("minimum", &[Kind::Number, Kind::Integer]),
    ("maximum", &[Kind::Number, Kind::Integer]),
    ("exclusiveMinimum", &[Kind::Number, Kind::Integer]),
    ("exclusiveMaximum", &[Kind::Number, Kind::Integer]),
];

/// Keywords that the dialect lacks, told in the description.
const TOLD: &[&str] = &[
    "multipleOf",
    "uniqueItems",
    "not",
    "patternProperties",
    "propertyNames",
    "contains",
    "dependentRequired",
    "contentEncoding",
    "contentMediaType",
];

/// Keywords that are about the schema's reader, not about what it describes.
const WORDS: &[&str] = &["title", "description", "default", "example", "examples"];

/// What `object` describes, as it says or as its keywords let guess.
pub(super) fn kind(object: &Object) -> Kind {
    if let Some(word) = object.get("type").and_then(Value::as_str) {
        return Kind::of_word(word).unwrap_or(Kind::Anything);
    }
    OF_KINDS
        .iter()
        .find(|(key, _)| object.contains_key(*key))
        .map_or(Kind::Anything, |(_, kinds)| kinds[0])
}

/// The values that `object` allows, if it lists them.
fn values(object: &Object) -> Option<&[Value]> {
    match object.get("const") {
        Some(value) => Some(std::slice::from_ref(value)),
        None => object.get("enum")?.as_array().map(Vec::as_slice),
    }
}

/// Adds the type that the listed values have, where none is said.
pub(super) fn infer_from_values(object: &mut Object) {
    if object.contains_key("type") {
        return;
    }
    let mut words: Vec<&str> = Vec::new();
    for value in values(object).into_iter().flatten() {
        let word = Kind::of_value(value).map_or("null", Kind::word);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    if words.contains(&"number") {
        words.retain(|word| *word != "integer");
    }
    if !words.is_empty() {
        object.insert("type".to_owned(), words.into());
    }
}

/// Turns a list of types into one type that may be null, or into a union.
pub(super) fn split_types(object: &mut Object) {
    let Some(Value::Array(types)) = object.get("type") else {
        return;
    };
    let nullable = types.iter().any(|word| word == "null");
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in types
        .iter()
        .filter_map(|word| Kind::of_word(word.as_str()?))
    {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    object.shift_remove("type");
    match kinds.as_slice() {
        [] if nullable => {
            object.insert("type".to_owned(), "null".into());
            return;
        }
        [] => {}
        [one] => {
            object.insert("type".to_owned(), one.word().into());
        }
        // The union that is there already decides.
        _ if object.contains_key("anyOf") || object.contains_key("oneOf") => {}
        several => {
            let branches: Vec<Value> = several.iter().map(|kind| part_of(object, *kind)).collect();
            let is_kept = |key: &String| {
                let of_kinds = OF_KINDS.iter().any(|(other, _)| *other == key.as_str());
                !of_kinds && !matches!(key.as_str(), "enum" | "const")
            };
            object.retain(|key, _| is_kept(key));
            object.insert("anyOf".to_owned(), branches.into());
        }
    }
    if nullable {
        object.insert("nullable".to_owned(), true.into());
    }
}

/// What `object` says about values of `kind`.
fn part_of(object: &Object, kind: Kind) -> Value {
    let mut part = Object::new();
    part.insert("type".to_owned(), kind.word().into());
    for (key, kinds) in OF_KINDS {
        if let Some(value) = object.get(*key).filter(|_| kinds.contains(&kind)) {
            part.insert((*key).to_owned(), value.clone());
        }
    }
    if let Some(values) = values(object) {
        let values: Vec<Value> = values
            .iter()
            .filter(|value| kind.holds(value))
            .cloned()
            .collect();
        part.insert("enum".to_owned(), values.into());
    }
    Value::Object(part)
}

/// Takes the branches of a union out.
pub(super) fn take_union(object: &mut Object) -> Option<Vec<Value>> {
    ["anyOf", "oneOf"]
        .iter()
        .find_map(|key| match object.shift_remove(*key) {
            Some(Value::Array(branches)) if !branches.is_empty() => Some(branches),
            _ => None,
        })
}

pub(super) fn take_nullable(object: &mut Object) -> bool {
    object.shift_remove("nullable") == Some(Value::Bool(true))
}

/// Whether nothing but null is allowed.
pub(super) fn is_null(object: &Object) -> bool {
    let by_type = match object.get("type") {
        Some(Value::String(word)) => word == "null",
        Some(Value::Array(words)) => words.len() == 1 && words[0] == "null",
        _ => false,
    };
    by_type || values(object).is_some_and(|values| matches!(values, [Value::Null]))
}

/// What stands for a schema that allows null only.
pub(super) fn null_only(outer: Object) -> Object {
    let (words, _) = split_words(outer);
    let mut only = words;
    add_sentence(&mut only, "Always null.");
    only.insert("type".to_owned(), "string".into());
    only.insert("nullable".to_owned(), true.into());
    only
}

/// Whether a schema says what it describes, rather than only demanding something of it.
pub(super) fn says_kind(object: &Object) -> bool {
    let keys = [
        "type",
        "enum",
        "const",
        "properties",
        "items",
        "prefixItems",
        "anyOf",
        "oneOf",
        "patternProperties",
    ];
    keys.iter().any(|key| object.contains_key(*key))
}

/// Tells in the description what the branches of a union demand.
pub(super) fn tell_demands(object: &mut Object, branches: &[Object]) {
    let demands: Vec<String> = branches
        .iter()
        .filter(|branch| !branch.is_empty())
        .map(|branch| demand(&Value::Object(branch.clone())))
        .collect();
    if !demands.is_empty() {
        let sentence = format!("At least one of these holds: {}.", demands.join("; "));
        add_sentence(object, &sentence);
    }
}

fn add_sentence(object: &mut Object, sentence: &str) {
    let description = match object.get("description").and_then(Value::as_str) {
        Some(earlier) if earlier.ends_with(['.', '!', '?', ':', ';']) => {
            format!("{earlier} {sentence}")
        }
        Some(earlier) if !earlier.trim().is_empty() => format!("{earlier}. {sentence}"),
        _ => sentence.to_owned(),
    };
    object.insert("description".to_owned(), description.into());
}

/// Parts title and description of `outer`, with its default in words, from the rest.
pub(super) fn split_words(mut outer: Object) -> (Object, Object) {
    let mut words = Object::new();
    for key in ["title", "description"] {
        let text = outer.get(key).and_then(Value::as_str);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            words.insert(key.to_owned(), text.into());
        }
    }
    if let Some(default) = outer.get("default") {
        add_sentence(&mut words, &format!("Default: {default}."));
    }
    outer.retain(|key, _| !WORDS.contains(&key.as_str()));
    (words, outer)
}

/// Adds what was said of a whole union to one of its branches.
pub(super) fn add_words(branch: &mut Value, words: &Object, nullable: bool) {
    let Some(branch) = branch.as_object_mut() else {
        return;
    };
    if let Some(title) = words.get("title") {
        branch.entry("title").or_insert_with(|| title.clone());
    }
    if let Some(said) = words.get("description").and_then(Value::as_str) {
        let own = branch.get("description").and_then(Value::as_str);
        let all = match own {
            Some(own) if own != said => format!("{said} {own}"),
            _ => said.to_owned(),
        };
        branch.insert("description".to_owned(), all.into());
    }
    if nullable {
        branch.insert("nullable".to_owned(), true.into());
    }
}

/// What `object` demands that the dialect cannot say.
pub(super) fn told(object: &Object, kind: Kind) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(format) = object.get("format").filter(|format| !keeps(kind, format)) {
        told.push(format!("format {format}"));
    }
    for (key, word, bound) in [
        ("exclusiveMinimum", "above", "minimum"),
        ("exclusiveMaximum", "below", "maximum"),
    ] {
        match object.get(key) {
            Some(Value::Number(number)) if kind == Kind::Number => {
                told.push(format!("{word} {number}"));
            }
            // Draft 4 had a switch beside the bound.
            Some(Value::Bool(true)) => {
                if let Some(number) = object.get(bound) {
                    told.push(format!("{word} {number}"));
                }
            }
            _ => {}
        }
    }
    if kind != Kind::String {
        let allowed: Vec<String> = values(object)
            .into_iter()
            .flatten()
            .filter(|value| kind.holds(value))
            .map(Value::to_string)
            .collect();
        if !allowed.is_empty() {
            told.push(format!("one of {}", allowed.join(", ")));
        }
    }
    for key in TOLD {
        let value = object.get(*key).filter(|value| **value != json!(false));
        if let Some(text) = value.map(Value::to_string) {
            let fits = text.len() <= LONGEST_TOLD;
            told.push(if fits {
                format!("{key} {text}")
            } else {
                (*key).to_owned()
            });
        }
    }
    told.retain(|limit| limit.len() <= LONGEST_TOLD * 2);
    told
}

/// Whether the dialect has `format` for `kind`.
fn keeps(kind: Kind, format: &Value) -> bool {
    matches!(
        (kind, format.as_str()),
        (Kind::String, Some("date-time" | "enum"))
            | (Kind::Integer, Some("int32" | "int64"))
            | (Kind::Number, Some("float" | "double"))
    )
}

/// Copies what needs no translation.
pub(super) fn copy(object: &Object, kind: Kind, written: &mut Object) {
    let mut keep = |key: &str, fits: &dyn Fn(&Value) -> bool| {
        if let Some(value) = object.get(key).filter(|value| fits(value)) {
            written.insert(key.to_owned(), value.clone());
        }
    };
    let keys: &[&str] = match kind {
        Kind::Object => &["minProperties", "maxProperties"],
        Kind::Array => &["minItems", "maxItems"],
        Kind::String => &["minLength", "maxLength"],
        _ => &[],
    };
    for key in keys {
        keep(key, &Value::is_u64);
    }
    keep("format", &|format| keeps(kind, format));
    if kind == Kind::String {
        keep("pattern", &Value::is_string);
    }
    if matches!(kind, Kind::Integer | Kind::Number) {
        keep("minimum", &Value::is_number);
        keep("maximum", &Value::is_number);
    }
    keep("title", &Value::is_string);
    keep("default", &|_| true);
    keep("example", &|_| true);
    keep("nullable", &|nullable| *nullable == json!(true));
    if let Some(first) = object.get("examples").and_then(|list| list.get(0)) {
        written.entry("example").or_insert_with(|| first.clone());
    }
    match kind {
        Kind::String => copy_values(object, written),
        Kind::Integer | Kind::Number => copy_bounds(object, kind, written),
        _ => {}
    }
}

/// The allowed texts; an empty one is refused.
fn copy_values(object: &Object, written: &mut Object) {
    let mut texts: Vec<&Value> = Vec::new();
    for value in values(object).into_iter().flatten() {
        let is_text = value.as_str().is_some_and(|text| !text.is_empty());
        if is_text && !texts.contains(&value) {
            texts.push(value);
        }
    }
    if !texts.is_empty() {
        let texts: Vec<Value> = texts.into_iter().cloned().collect();
        written.insert("enum".to_owned(), texts.into());
    }
}

/// Bounds that are not reached: the next whole number, or the bound itself where that is told.
fn copy_bounds(object: &Object, kind: Kind, written: &mut Object) {
    for (key, bound, step) in [
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ] {
        let Some(Value::Number(number)) = object.get(key) else {
            continue;
        };
        let next = number.as_i64().and_then(|whole| whole.checked_add(step));
        let value = match (kind, next) {
            (Kind::Integer, Some(next)) => json!(next),
            _ => Value::Number(number.clone()),
        };
        written.entry(bound).or_insert(value);
    }
}

/// Writes the description, with what the dialect cannot say.
pub(super) fn describe(written: &mut Object, object: &Object, kind: Kind, told: &[String]) {
    let said = object.get("description").and_then(Value::as_str);
    if let Some(said) = said.filter(|said| !said.is_empty()) {
        written.insert("description".to_owned(), said.into());
    }
    if kind == Kind::Anything {
        add_sentence(written, "Any JSON value.");
    }
    if object.get("deprecated") == Some(&Value::Bool(true)) {
        add_sentence(written, "Deprecated.");
    }
    if !told.is_empty() {
        add_sentence(written, &format!("Limits: {}.", told.join(", ")));
    }
}

/// A schema of anything.
pub(super) fn anything() -> Value {
    json!({"type": "string", "description": "Any JSON value."})
}

/// What stands for a schema that is nested too deeply, or comes when there is no room left.
pub(super) fn cut(object: Option<&Object>) -> Value {
    let empty = Object::new();
    let object = object.unwrap_or(&empty);
    let kind = kind(object);
    let mut stub = Object::new();
    stub.insert("type".to_owned(), kind.word().into());
    if kind == Kind::Array {
        stub.insert("items".to_owned(), json!({"type": "string"}));
    }
    if let Some(said) = object.get("description").filter(|said| said.is_string()) {
        stub.insert("description".to_owned(), said.clone());
    }
    Value::Object(stub)
}

/// What stands for a definition within itself.
pub(super) fn cut_off(target: &Object) -> Object {
    let mut stub = Object::new();
    stub.insert("type".to_owned(), kind(target).word().into());
    let said = target.get("description").and_then(Value::as_str);
    let said = said.unwrap_or("The same form again.");
    stub.insert("description".to_owned(), said.into());
    stub
}

/// `first` and `second` as one schema that demands both; where they contradict, `first` counts.
pub(super) fn both(mut first: Object, second: Object) -> Object {
    for (key, value) in second {
        if matches!(key.as_str(), "$defs" | "definitions" | "$schema" | "$id") {
            continue;
        }
        match (key.as_str(), first.get_mut(&key), value) {
            ("properties", Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    match known.get_mut(&name) {
                        Some(earlier) if *earlier != schema => {
                            *earlier = json!({"allOf": [earlier.take(), schema]});
                        }
                        Some(_) => {}
                        None => {
                            known.insert(name, schema);
                        }
                    }
                }
            }
            ("required" | "allOf", Some(Value::Array(known)), Value::Array(more)) => {
                for one in more {
                    if !known.contains(&one) {
                        known.push(one);
                    }
                }
            }
            ("enum", Some(Value::Array(known)), Value::Array(more)) => {
                let common = |value: &&Value| more.contains(value);
                let common: Vec<Value> = known.iter().filter(common).cloned().collect();
                if !common.is_empty() {
                    *known = common;
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                first.insert(key, value);
            }
        }
    }
    first
}
