//! What LiteLLM sends and reads in 768 cases, for the tests of the providers.
//!
//! The vectors are evidence, not law: where a test does otherwise, its table says what and why, as an
//! [`Outcome`] or as [`Edit`]s of what LiteLLM does. The checks panic where something differs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "used by tests only, which end where a check fails"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use llm_wire::{CallLabels, ChatError, ChatErrorKind, ChatRequest, failure};

/// Vectors by name.
pub type Vectors = BTreeMap<String, Value>;

/// A change of what LiteLLM does.
#[derive(Debug)]
pub enum Edit {
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
pub enum Outcome {
    /// LiteLLM's body with changes.
    Changed(Vec<Edit>),
    /// Another body.
    Whole(Value),
    /// Nothing is sent; the error contains this.
    Refused(&'static str),
}

/// The vectors of `provider`.
pub fn vectors(provider: &str) -> Vectors {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
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
pub struct Input {
    messages: Vec<Message>,
    tools: Vec<ToolDefinition>,
    extra_args: Object,
    /// The model without its provider.
    pub model: String,
}

impl Input {
    /// That of `vector`.
    pub fn of(vector: &Value) -> Self {
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

    /// The same as a request.
    pub fn request(&self) -> ChatRequest<'_> {
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
pub fn edited(mut value: Value, edits: &[Edit]) -> Value {
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

/// Checks our request for each vector, as `ours` makes it by name and vector: LiteLLM's body, unless
/// `expected` has something else.
pub fn check_requests(
    vectors: &Vectors,
    mut expected: BTreeMap<&'static str, Outcome>,
    ours: impl Fn(&str, &Value) -> Result<Value, String>,
) {
    for (name, vector) in vectors {
        let ours = ours(name, vector);
        let theirs = &vector["request"]["body"];
        match expected.remove(name.as_str()) {
            Some(Outcome::Refused(reason)) => {
                let error = ours.expect_err(name);
                assert!(error.contains(reason), "{name}: {error}");
            }
            Some(Outcome::Changed(edits)) => {
                let theirs = edited(theirs.clone(), &edits);
                assert_eq!(ours.expect(name), theirs, "{name}");
            }
            Some(Outcome::Whole(body)) => assert_eq!(ours.expect(name), body, "{name}"),
            None => assert_eq!(&ours.expect(name), theirs, "{name}"),
        }
    }
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
}

/// Checks our error for each answer that is no success: kind and retryability as in `expected`, and
/// status and message as they came. `also` looks at the body and the error.
pub fn check_errors(
    provider: &str,
    vectors: &Vectors,
    mut expected: BTreeMap<&'static str, (ChatErrorKind, bool)>,
    also: impl Fn(&str, &Value, &ChatError),
) {
    for (name, vector) in vectors {
        let response = &vector["provider_response"];
        let is_success = |status: u64| status < 300;
        if response["status"].as_u64().is_none_or(is_success) {
            continue;
        }
        let error = error(provider, response);
        let (kind, retryable) = expected.remove(name.as_str()).expect(name);
        assert_eq!(
            (error.kind, error.is_retryable()),
            (kind, retryable),
            "{name}"
        );
        assert_eq!(error.status.map(u64::from), response["status"].as_u64());
        let said = response["body"]["error"]["message"].as_str();
        assert!(
            said.is_none_or(|said| error.message.contains(said)),
            "{name}: {error}"
        );
        also(name, &response["body"], &error);
    }
    assert!(expected.is_empty(), "no such vector: {:?}", expected.keys());
}

/// The error that stands in an answer of good status.
pub fn error_in_success(provider: &str, body: &Value) -> ChatError {
    failure::inside_success(provider, &HeaderMap::new(), body).unwrap()
}

/// Checks that each vector with one of `verdicts` is in one of the `tables`.
pub fn check_verdicts<'t>(
    vectors: &Vectors,
    verdicts: &[&str],
    tables: impl IntoIterator<Item = &'t str>,
) {
    let known: Vec<&str> = tables.into_iter().collect();
    for (name, vector) in vectors {
        let verdict = vector["verdict"].as_str().unwrap();
        assert!(
            !verdicts.contains(&verdict) || known.contains(&name.as_str()),
            "{name} is {verdict}"
        );
    }
}

/// Sends each body by name to a stub, as `to` addresses it, and checks that it is taken.
pub async fn check_stub_takes(
    bodies: impl IntoIterator<Item = (String, Value)>,
    to: impl Fn(&reqwest::Client, &Value) -> reqwest::RequestBuilder,
) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (name, body) in bodies {
        let response = to(&client, &body).json(&body).send().await.unwrap();
        let status = response.status();
        let answer = response.text().await.unwrap();
        assert_eq!(status, 200, "{name}: {answer}\n{body}");
    }
}

/// The error for an answer of a vector.
pub fn error(provider: &str, response: &Value) -> ChatError {
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
