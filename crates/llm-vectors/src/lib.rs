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
use std::sync::LazyLock;
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

/// A request of nothing but `messages`.
pub fn plain_request(messages: &[Message]) -> ChatRequest<'_> {
    static NOTHING: LazyLock<Object> = LazyLock::new(Object::new);
    ChatRequest {
        messages,
        tools: &[],
        extra_args: &NOTHING,
        timeout: Duration::from_secs(1),
        labels: CallLabels::default(),
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

/// The calls of all vectors, by provider and name: conversations, tools and arguments of every kind, for
/// interfaces that LiteLLM was not asked about.
pub fn all_inputs() -> BTreeMap<String, Input> {
    ["openai", "anthropic", "gemini"]
        .into_iter()
        .flat_map(|provider| {
            vectors(provider)
                .into_iter()
                .map(move |(name, vector)| (format!("{provider}/{name}"), Input::of(&vector)))
        })
        .collect()
}

/// Cases with results that belong to no call, or to one that has another; such results are dropped.
const SURPLUS_RESULTS: [&str; 2] = ["result_duplicate_id", "result_orphan"];

/// Checks that `body` holds every text that is said in the conversation of `input`.
pub fn check_all_is_said(name: &str, input: &Input, body: &Value) {
    let is_surplus = |case: &&str| name.contains(*case);
    if SURPLUS_RESULTS.iter().any(is_surplus) {
        return;
    }
    let written = body.to_string();
    for message in &input.messages {
        let text = message.text();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let quoted = Value::from(line).to_string();
            let is_said = written.contains(&quoted[1..quoted.len() - 1]);
            assert!(is_said, "{name}: {line:?} is not in {written}");
        }
    }
}

/// What stands in the place of a value that is spoiled.
const ODD: [&str; 9] = [
    "null", "true", "0", "-1", "1.5", "\"\"", "\"odd\"", "[]", "{}",
];

/// `value` with one thing in it replaced by something odd, for each thing and each odd thing.
pub fn spoiled(value: &Value) -> impl Iterator<Item = Value> + '_ {
    let mut places = Vec::new();
    collect_places(value, String::new(), &mut places);
    places.into_iter().flat_map(move |place| {
        ODD.iter().map(move |odd| {
            let mut spoiled = value.clone();
            let thing = spoiled.pointer_mut(&place).unwrap();
            *thing = serde_json::from_str(odd).unwrap();
            spoiled
        })
    })
}

fn collect_places(value: &Value, place: String, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_places(inner, format!("{place}/{key}"), places);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                collect_places(inner, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}

/// Reads every spoiled form of every answer that has a `translated` message, by `read`, which gives the
/// assistant's message where it can make one. None may panic, and none may be lost for a history.
pub fn check_spoiled_answers(
    vectors: &Vectors,
    read: impl Fn(&Value, Value) -> Option<Message>,
    resend: impl Fn(&[Message]) -> Result<Value, String>,
) {
    let mut seen = std::collections::BTreeSet::new();
    let mut kept = 0;
    for (name, vector) in vectors {
        let body = &vector["provider_response"]["body"];
        if vector["translated"].is_null() || !seen.insert(body.to_string()) {
            continue;
        }
        for answer in spoiled(body) {
            let Some(message) = read(vector, answer) else {
                continue;
            };
            kept += 1;
            let history = [Message::user("go"), message, Message::user("on")];
            let written = serde_json::to_string(&history).unwrap();
            let history: Vec<Message> = serde_json::from_str(&written).unwrap();
            if let Err(reason) = resend(&history) {
                panic!("{name}: {reason}: {written}");
            }
        }
    }
    assert!(kept > 1000, "{kept} answers were read");
}

/// Pushes `events` into what `new` makes, once for every spoiled form of every event. None may panic;
/// what `push` says is its own business.
pub fn check_spoiled_events<G>(events: &[Value], new: impl Fn() -> G, push: impl Fn(&mut G, &str)) {
    for (index, event) in events.iter().enumerate() {
        for odd in spoiled(event) {
            let mut growing = new();
            for (place, event) in events.iter().enumerate() {
                let event = if place == index { &odd } else { event };
                push(&mut growing, &event.to_string());
            }
        }
    }
}
