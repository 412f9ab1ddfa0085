//! Schemas in the dialect of Google's function declarations, a subset of OpenAPI 3.0
//! (<https://ai.google.dev/api/caching#Schema>).
//!
//! References are written out, unions become `anyOf` without neighbours, constants become enums, and
//! what the dialect cannot say is told in the description, so that nothing is lost without a word.

use std::collections::BTreeMap;

use formats::Object;
use serde_json::{Value, json};

use super::plain::{self, Kind};
use super::rooted_parameters;
use crate::repair::NameRule;

/// Deepest nesting that is written.
const DEEPEST: usize = 32;
/// Most schemas that are written for one tool: definitions that use each other can double at each step.
const MOST_NODES: usize = 5_000;
/// How often a definition is written within itself.
const MOST_REPEATED: usize = 2;

/// Names of parameters that are written differently, the original first.
pub type Renamed = BTreeMap<String, String>;

/// The parameters of a tool in the dialect; `None` where it takes none.
///
/// Names of parameters that are not taken are replaced, and told in the second value.
pub fn gemini_parameters(parameters: &Value) -> (Option<Value>, Renamed) {
    let mut writer = Writer::new(parameters);
    let root = parameters.as_object().cloned().unwrap_or_default();
    let (mut root, mut entered) = writer.expanded(root);
    for key in ["anyOf", "oneOf"] {
        for branch in root
            .get_mut(key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Value::Object(object) = branch {
                let (expanded, more) = writer.expanded(std::mem::take(object));
                *branch = expanded.into();
                entered += more;
            }
        }
    }
    let root = Value::Object(root);
    let written = writer.schema(&rooted_parameters(&root));
    writer.leave(entered);
    let has_any = written.get("properties").is_some();
    (has_any.then_some(written), writer.renamed)
}

/// `schema` in the dialect.
pub fn gemini_schema(schema: &Value) -> Value {
    Writer::new(schema).schema(schema)
}

/// Writes the schemas of one document.
struct Writer<'s> {
    root: &'s Value,
    /// The references that led here.
    path: Vec<String>,
    depth: usize,
    nodes_left: usize,
    renamed: Renamed,
}

impl<'s> Writer<'s> {
    fn new(root: &'s Value) -> Self {
        Self {
            root,
            path: Vec::new(),
            depth: 0,
            nodes_left: MOST_NODES,
            renamed: Renamed::new(),
        }
    }

    fn schema(&mut self, schema: &Value) -> Value {
        if self.nodes_left == 0 {
            return plain::cut(schema.as_object());
        }
        self.nodes_left -= 1;
        let object = schema.as_object().cloned().unwrap_or_default();
        let (object, entered) = self.expanded(object);
        let written = self.alternatives(object);
        self.leave(entered);
        written
    }

    fn leave(&mut self, entered: usize) {
        self.path.truncate(self.path.len().saturating_sub(entered));
    }

    /// `object` with its reference and its `allOf` written out, and how many references were entered.
    fn expanded(&mut self, mut object: Object) -> (Object, usize) {
        let mut entered = 0;
        loop {
            if let Some(reference) = object.shift_remove("$ref") {
                let pointer = reference.as_str().unwrap_or_default();
                let Some(target) = self.target(pointer) else {
                    continue;
                };
                let times = self.path.iter().filter(|earlier| *earlier == pointer);
                if times.count() < MOST_REPEATED && self.nodes_left > 0 {
                    self.nodes_left -= 1;
                    self.path.push(pointer.to_owned());
                    entered += 1;
                    object = plain::both(object, target);
                } else {
                    object = plain::both(object, plain::cut_off(&target));
                }
            } else if let Some(Value::Array(parts)) = object.shift_remove("allOf") {
                for part in parts {
                    let Value::Object(part) = part else { continue };
                    if self.nodes_left == 0 || self.depth == DEEPEST {
                        break;
                    }
                    self.nodes_left -= 1;
                    self.depth += 1;
                    let (part, more) = self.expanded(part);
                    self.depth -= 1;
                    entered += more;
                    object = plain::both(object, part);
                }
            } else {
                return (object, entered);
            }
        }
    }

    fn target(&self, pointer: &str) -> Option<Object> {
        let path = pointer.strip_prefix('#')?;
        self.root.pointer(path)?.as_object().cloned()
    }

    /// Writes a schema that may allow several things.
    fn alternatives(&mut self, object: Object) -> Value {
        if self.depth == DEEPEST {
            return plain::cut(Some(&object));
        }
        self.depth += 1;
        let written = self.one_or_several(object);
        self.depth -= 1;
        written
    }

    fn one_or_several(&mut self, mut object: Object) -> Value {
        plain::infer_from_values(&mut object);
        plain::split_types(&mut object);
        if plain::is_null(&object) {
            return self.single(&plain::null_only(object));
        }
        let Some(branches) = plain::take_union(&mut object) else {
            return self.single(&object);
        };
        let mut nullable = plain::take_nullable(&mut object);
        let mut expanded = Vec::with_capacity(branches.len());
        let mut entered = 0;
        for branch in branches {
            // `true` allows anything, `false` nothing.
            let Value::Object(branch) = branch else {
                if branch == Value::Bool(true) {
                    expanded.push(Object::new());
                }
                continue;
            };
            let (branch, more) = self.expanded(branch);
            entered += more;
            if plain::is_null(&branch) {
                nullable = true;
            } else {
                expanded.push(branch);
            }
        }
        if plain::says_kind(&object) && !expanded.iter().any(plain::says_kind) {
            // The branches only demand more of the same thing.
            plain::tell_demands(&mut object, &expanded);
            expanded = vec![Object::new()];
        }
        let written = self.union(object, expanded, nullable);
        self.leave(entered);
        written
    }

    fn union(&mut self, outer: Object, mut branches: Vec<Object>, nullable: bool) -> Value {
        if branches.len() <= 1 {
            let mut only = match branches.pop() {
                Some(branch) => plain::both(outer, branch),
                None => plain::null_only(outer),
            };
            if nullable {
                only.insert("nullable".to_owned(), true.into());
            }
            return self.alternatives(only);
        }
        let (words, rest) = plain::split_words(outer);
        let mut written: Vec<Value> = Vec::with_capacity(branches.len());
        for branch in branches {
            let branch = plain::both(branch, rest.clone());
            let one = self.schema(&Value::Object(branch));
            let inner = match one {
                Value::Object(mut union) if union.contains_key("anyOf") => {
                    match union.shift_remove("anyOf") {
                        Some(Value::Array(inner)) => inner,
                        _ => Vec::new(),
                    }
                }
                one => vec![one],
            };
            for mut one in inner {
                plain::add_words(&mut one, &words, nullable);
                if !written.contains(&one) {
                    written.push(one);
                }
            }
        }
        match written.len() {
            1 => written.swap_remove(0),
            _ => json!({"anyOf": written}),
        }
    }

    /// Writes a schema of one kind.
    fn single(&mut self, object: &Object) -> Value {
        let kind = plain::kind(object);
        let mut written = Object::new();
        let mut told = plain::told(object, kind);
        written.insert("type".to_owned(), kind.word().into());
        plain::copy(object, kind, &mut written);
        match kind {
            Kind::Object => self.object(object, &mut written, &mut told),
            Kind::Array => self.array(object, &mut written, &mut told),
            _ => {}
        }
        plain::describe(&mut written, object, kind, &told);
        Value::Object(written)
    }

    fn object(&mut self, object: &Object, written: &mut Object, told: &mut Vec<String>) {
        let known = object.get("properties").and_then(Value::as_object);
        let mut properties = Object::new();
        for (name, schema) in known.into_iter().flatten() {
            let schema = self.schema(schema);
            properties.insert(self.parameter(name), schema);
        }
        for key in ["required", "propertyOrdering"] {
            let mut names: Vec<Value> = Vec::new();
            for name in object
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let name = name.as_str().map(|name| self.parameter(name));
                let name = name.filter(|name| properties.contains_key(name));
                if let Some(name) = name.map(Value::from).filter(|name| !names.contains(name)) {
                    names.push(name);
                }
            }
            if !names.is_empty() {
                written.insert(key.to_owned(), names.into());
            }
        }
        if !properties.is_empty() {
            written.insert("properties".to_owned(), properties.into());
        }
        if let Some(further) = object.get("additionalProperties").filter(|further| {
            further
                .as_object()
                .is_some_and(|further| !further.is_empty())
        }) {
            let further = self.schema(further);
            told.push(format!("each further property {further}"));
        }
    }

    /// The name of a parameter as it is written.
    fn parameter(&mut self, name: &str) -> String {
        let rule = NameRule::Identifier;
        if rule.fits(name) {
            return name.to_owned();
        }
        let wire = rule.mapped(name);
        self.renamed.insert(name.to_owned(), wire.clone());
        wire
    }

    fn array(&mut self, object: &Object, written: &mut Object, told: &mut Vec<String>) {
        // Before 2020-12 the list of schemas stood in `items` itself.
        let places = ["prefixItems", "items"]
            .iter()
            .find_map(|key| object.get(*key)?.as_array());
        let items = object.get("items").filter(|items| items.is_object());
        let mut kinds: Vec<Value> = Vec::new();
        if let Some(places) = places {
            let places: Vec<Value> = places.iter().map(|place| self.schema(place)).collect();
            told.push(format!(
                "items in this order {}",
                Value::from(places.clone())
            ));
            for place in places {
                if !kinds.contains(&place) {
                    kinds.push(place);
                }
            }
        }
        let items = match items {
            Some(items) => self.schema(items),
            None if kinds.len() > 1 => self.schema(&json!({"anyOf": kinds})),
            None => kinds.pop().unwrap_or_else(plain::anything),
        };
        written.insert("items".to_owned(), items);
    }
}

#[cfg(test)]
mod tests;
