//! What Gemini refuses, as far as its interface says so (<https://ai.google.dev/api/generate-content>).

mod config;
mod contents;
mod functions;
mod schema;

use serde_json::{Map, Value};

/// Why a request is refused.
type Check = Result<(), String>;

/// The fields of the interface.
const KNOWN: &[&str] = &[
    "contents",
    "tools",
    "toolConfig",
    "safetySettings",
    "systemInstruction",
    "generationConfig",
    "cachedContent",
    "serviceTier",
    "labels",
    "model",
];

/// Checks the body of a request. `lenient` lets pass what only Google itself refuses.
pub(super) fn check(body: &Value, model: &str, lenient: bool) -> Check {
    let body = body.as_object().ok_or("the body is no JSON object")?;
    if !lenient {
        only(body, KNOWN, "")?;
    }
    let generation = Generation::of(model);
    if let Some(instruction) = field(body, "systemInstruction") {
        contents::check_instruction(instruction)?;
    }
    contents::check(body, generation, lenient)?;
    let names = functions::check(body, lenient)?;
    config::check(body, generation, !names.is_empty())
}

/// What a model's version decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u32, u32);

impl Generation {
    /// From names such as `gemini-2.5-flash`; the newest for other names.
    pub(super) fn of(model: &str) -> Self {
        let version = model
            .strip_prefix("gemini-")
            .and_then(|name| name.split('-').next())
            .and_then(|number| {
                let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
                Some(Self(major.parse().ok()?, minor.parse().ok()?))
            });
        version.unwrap_or(Self(u32::MAX, 0))
    }

    /// Whether calls have ids and signatures.
    pub(super) fn signs(self) -> bool {
        self >= Self(3, 0)
    }

    fn thinks(self) -> bool {
        self >= Self(2, 5)
    }
}

/// The field `name` of `object`, in either spelling.
fn field<'b>(object: &'b Map<String, Value>, name: &str) -> Option<&'b Value> {
    object.get(name).or_else(|| object.get(&snake(name)))
}

fn field_of<'b>(value: &'b Value, name: &str) -> Option<&'b Value> {
    field(value.as_object()?, name)
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Refuses fields other than `known`.
fn only(object: &Map<String, Value>, known: &[&str], place: &str) -> Check {
    let is_known = |key: &String| {
        known
            .iter()
            .any(|known| known == key || snake(known) == *key)
    };
    match object.keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) if place.is_empty() => Err(format!(
            "Invalid JSON payload received. Unknown name \"{key}\": Cannot find field."
        )),
        Some(key) => Err(format!(
            "Invalid JSON payload received. Unknown name \"{key}\" at '{place}': Cannot find field."
        )),
    }
}

fn list<'b>(object: &'b Map<String, Value>, name: &str) -> &'b [Value] {
    field(object, name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Whether `name` fits functions: `[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}`.
fn fits_function(name: &str) -> bool {
    let begins = |first: char| first.is_ascii_alphabetic() || first == '_';
    (1..=64).contains(&name.len())
        && name.starts_with(begins)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}
