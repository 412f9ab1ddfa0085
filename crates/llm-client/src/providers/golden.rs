//! The vectors of `tests/golden`: what LiteLLM sends and reads in many cases, for the tests of the
//! providers. They are evidence, not law: where a test does otherwise, its table says what and why.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::failure;
use crate::call::{CallLabels, ChatRequest};
use crate::error::ChatError;

/// Vectors by name.
pub(crate) type Vectors = BTreeMap<String, Value>;

/// A change of what LiteLLM does.
#[derive(Debug)]
pub(crate) enum Edit {
    /// A key gets a value; the key may be new.
    Set(&'static str, Value),
    /// The value at an existing place is replaced.
    At(&'static str, Value),
    /// A value goes.
    Remove(&'static str),
    /// An element comes into a list.
    Insert(&'static str, usize, Value),
}

/// What we do with a request instead.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// LiteLLM's body with changes.
    Changed(Vec<Edit>),
    /// Another body.
    Whole(Value),
    /// Nothing is sent; the error contains this.
    Refused(&'static str),
}

/// The vectors of `provider`.
pub(crate) fn vectors(provider: &str) -> Vectors {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(provider);
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect()
}

/// The call of a vector.
pub(crate) struct Input {
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
    extra_args: Object,
    /// The model without its provider.
    pub(crate) model: String,
}

impl Input {
    pub(crate) fn of(vector: &Value) -> Self {
        let input = &vector["input"];
        let tools: Option<_> = serde_json::from_value(input["tools"].clone()).unwrap();
        let mut extra_args: Object = serde_json::from_value(input["extra_args"].clone()).unwrap();
        if input["litellm_settings"]["drop_params"] == json!(true) {
            extra_args.insert("drop_params".to_owned(), true.into());
        }
        let (_, model) = input["model"].as_str().unwrap().split_once('/').unwrap();
        Self {
            messages: serde_json::from_value(input["messages"].clone()).unwrap(),
            tools: tools.unwrap_or_default(),
            extra_args,
            model: model.to_owned(),
        }
    }

    pub(crate) fn request(&self) -> ChatRequest<'_> {
        ChatRequest {
            messages: &self.messages,
            tools: &self.tools,
            extra_args: &self.extra_args,
            timeout: Duration::from_secs(1),
            labels: CallLabels::default(),
        }
    }
}

/// `value` with `edits` made one after the other.
pub(crate) fn edited(mut value: Value, edits: &[Edit]) -> Value {
    let parent_of = |pointer: &str| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        (parent.to_owned(), key.to_owned())
    };
    for edit in edits {
        match edit {
            Edit::Set(pointer, new) => {
                let (parent, key) = parent_of(pointer);
                value.pointer_mut(&parent).unwrap()[key.as_str()] = new.clone();
            }
            Edit::At(pointer, new) => *value.pointer_mut(pointer).unwrap() = new.clone(),
            Edit::Remove(pointer) => {
                let (parent, key) = parent_of(pointer);
                match value.pointer_mut(&parent).unwrap() {
                    Value::Array(list) => drop(list.remove(key.parse().unwrap())),
                    Value::Object(map) => drop(map.remove(&key).unwrap()),
                    other => panic!("{pointer} is in {other}"),
                }
            }
            Edit::Insert(pointer, index, new) => {
                let list = value.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
                list.insert(*index, new.clone());
            }
        }
    }
    value
}

/// The error for an answer of a vector.
pub(crate) fn error(provider: &str, response: &Value) -> ChatError {
    let headers: HeaderMap = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let value = value.as_str().unwrap();
            (
                HeaderName::try_from(name).unwrap(),
                HeaderValue::try_from(value).unwrap(),
            )
        })
        .collect();
    let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    let body = match &response["raw_body"] {
        Value::String(text) => text.clone(),
        _ => response["body"].to_string(),
    };
    failure::from_answer(
        provider,
        StatusCode::from_u16(status).unwrap(),
        &headers,
        body.as_bytes(),
    )
}
