//! Calls of models, as the tests of all providers make them.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Mutex;
use std::time::Duration;

use formats::Object;
use formats::chat::{Message, ToolDefinition};
use llm_client::{
    CallLabels, ChatError, ChatErrorKind, ChatRequest, ChatResponse, Delta, Model, RetryPolicy,
};
use serde_json::Value;

/// How long a test waits for what takes a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A picture of one grey point.
pub(crate) const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";

pub(crate) fn object(value: &Value) -> Object {
    value.as_object().unwrap().clone()
}

/// Quick retries, so that a test does not wait.
pub(crate) fn quick() -> RetryPolicy {
    RetryPolicy {
        attempts: 4,
        first_wait: Duration::from_millis(1),
        longest_wait: Duration::from_millis(20),
        total: PATIENCE,
    }
}

/// A call without tools.
pub(crate) fn request<'a>(messages: &'a [Message], extra_args: &'a Object) -> ChatRequest<'a> {
    ChatRequest {
        messages,
        tools: &[],
        extra_args,
        timeout: PATIENCE,
        labels: CallLabels::default(),
    }
}

/// Asks, and tells the kinds of the failures that were repeated.
pub(crate) async fn ask(
    model: &Model,
    extra_args: Value,
) -> (Result<ChatResponse, ChatError>, Vec<ChatErrorKind>) {
    let repeated = Mutex::new(Vec::new());
    let messages = [Message::user("hi")];
    let answer = model
        .chat(request(&messages, &object(&extra_args)), &|notice| {
            repeated.lock().unwrap().push(notice.error.kind);
        })
        .await;
    (answer, repeated.into_inner().unwrap())
}

/// Asks with tools; a failure that would be repeated fails the test.
pub(crate) async fn ask_with(
    model: &Model,
    messages: &[Message],
    tools: &[ToolDefinition],
    extra_args: &Object,
) -> Result<ChatResponse, ChatError> {
    let request = ChatRequest {
        tools,
        ..request(messages, extra_args)
    };
    model
        .chat(request, &|notice| panic!("{}", notice.error))
        .await
}

/// The pieces of a reply, as they were told.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Names of the tools that are called.
    pub(crate) calls: Vec<String>,
    /// Their arguments.
    pub(crate) arguments: Vec<String>,
    pub(crate) pieces: usize,
}

impl Heard {
    fn hear(&mut self, delta: Delta<'_>) {
        self.pieces += 1;
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Reasoning(text) => self.reasoning.push_str(text),
            Delta::Call { index, name } => {
                assert_eq!(index, self.calls.len());
                self.calls.push(name.to_owned());
                self.arguments.push(String::new());
            }
            Delta::Arguments { index, text } => self.arguments[index].push_str(text),
            other => panic!("{other:?}"),
        }
    }
}

/// Asks for a stream, and tells what was heard.
pub(crate) async fn listen(
    model: &Model,
    tools: &[ToolDefinition],
    extra_args: Value,
) -> (Result<ChatResponse, ChatError>, Heard) {
    let heard = Mutex::new(Heard::default());
    let messages = [Message::user("hi")];
    let extra_args = object(&extra_args);
    let request = ChatRequest {
        tools,
        ..request(&messages, &extra_args)
    };
    let answer = model
        .chat_streaming(request, &|_| {}, &|delta| heard.lock().unwrap().hear(delta))
        .await;
    (answer, heard.into_inner().unwrap())
}
