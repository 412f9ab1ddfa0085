//! What the stub answers.

use std::collections::BTreeMap;

use formats::Object;
use formats::chat::{Content, Usage};
use serde::Deserialize;
use serde_json::Value;

/// The answers of a stub, one per request.
///
/// Each accepted request takes the first turn that has not been taken yet and whose `when` is in the
/// request's text. A request beyond the last turn is refused, so that a test notices.
///
/// As a file it is an array of turns, or an object with `turns`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The answers in order.
    pub turns: Vec<Turn>,
    /// What comes before any of them: each is given to one request that is not refused, whatever it
    /// says.
    #[serde(default)]
    pub first: Vec<Turn>,
    /// Whether the last turn is given again to all further requests.
    #[serde(default)]
    pub repeat_last: bool,
    /// Whether a turn is chosen by the number of assistant messages in the request, rather than by
    /// the number of requests: then one script serves many clients, and `when` says nothing.
    #[serde(default)]
    pub by_conversation: bool,
    /// Whether requests for an answer to a JSON schema get the smallest value that
    /// satisfies it, and take no turn.
    #[serde(default)]
    pub answer_schemas: bool,
}

/// A script file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the script is wrong: {0}")]
pub struct ScriptError(#[from] serde_json::Error);

impl Script {
    /// A script of `turns`.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self {
            turns: turns.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Gives the last turn again to all further requests.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// Chooses turns by the number of assistant messages in the request.
    #[must_use]
    pub fn by_conversation(mut self) -> Self {
        self.by_conversation = true;
        self
    }

    /// Answers requests for a JSON schema with the smallest value that satisfies it.
    #[must_use]
    pub fn answer_schemas(mut self) -> Self {
        self.answer_schemas = true;
        self
    }

    /// Reads a script file's text.
    ///
    /// # Errors
    /// When it is no script; the error names line and column.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.trim_start().starts_with('[') {
            return Ok(Self::new(serde_json::from_str::<Vec<Turn>>(text)?));
        }
        Ok(serde_json::from_str(text)?)
    }
}

/// One answer, good or bad.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// What the assistant says.
    pub content: Option<Content>,
    /// What it calls.
    pub tool_calls: Vec<Call>,
    /// `stop` or `tool_calls` if unset.
    pub finish_reason: Option<String>,
    /// Reckoned from the request's length if unset.
    pub usage: Option<Usage>,
    /// Further fields of the assistant's message, such as `reasoning_content`.
    pub message: Object,
    /// Only a request that holds this text in its messages gets this turn.
    pub when: Option<String>,
    /// How long the answer takes, in milliseconds.
    pub delay_ms: u64,
    /// Headers of the answer.
    pub headers: BTreeMap<String, String>,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// One tool call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// An object, or the raw text that stands in its place.
    #[serde(default)]
    pub arguments: Value,
    /// Made up if unset.
    #[serde(default)]
    pub id: Option<String>,
}

impl Call {
    /// The arguments as text, as OpenAI has them.
    pub(crate) fn text(&self) -> String {
        match &self.arguments {
            Value::String(raw) => raw.clone(),
            Value::Null => "{}".to_owned(),
            value => value.to_string(),
        }
    }

    /// The arguments as an object, as others have them; raw text that is no JSON becomes an empty one.
    pub(crate) fn object(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|_| Value::Object(Object::new()))
    }
}

/// What goes wrong instead of a proper answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// An answer with this status and this body; a body that is no string is sent as JSON, and
    /// without one it is an error in the form of the interface.
    Status {
        /// The status.
        status: u16,
        /// The body.
        #[serde(default)]
        body: Value,
    },
    /// No answer, until the client goes away.
    Stall,
    /// The connection closes before any byte of the answer.
    Drop,
    /// The connection closes in the middle of the body.
    HalfBody,
    /// A good status, and a body that is cut-off JSON.
    MalformedJson,
    /// An error in the middle of a stream; where nothing is streamed, an error under a good status.
    Midway,
}

impl Turn {
    /// A text.
    pub fn says(text: impl Into<String>) -> Self {
        Self {
            content: Some(Content::Text(text.into())),
            ..Self::default()
        }
    }

    /// One call of the tool `name`.
    pub fn calls(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_calls(name, arguments)
    }

    /// An error in the form of the interface with the status `status`.
    #[must_use]
    pub fn fails(status: u16) -> Self {
        Self::fails_with(status, Value::Null)
    }

    /// An answer with the status `status` and `body`.
    #[must_use]
    pub fn fails_with(status: u16, body: Value) -> Self {
        Self::faulty(Fault::Status { status, body })
    }

    /// The same turn, going wrong.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// An answer that goes wrong.
    #[must_use]
    pub fn faulty(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    /// The same turn with one more call.
    #[must_use]
    pub fn and_calls(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.tool_calls.push(Call {
            name: name.into(),
            arguments,
            id: None,
        });
        self
    }

    /// The same turn with a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The same turn with one more field of the message.
    #[must_use]
    pub fn field(mut self, name: &str, value: Value) -> Self {
        self.message.insert(name.to_owned(), value);
        self
    }

    /// The same turn, only for requests whose messages hold `text`.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>) -> Self {
        self.when = Some(text.into());
        self
    }

    /// The same turn with another reason to finish.
    #[must_use]
    pub fn finish_reason(mut self, reason: impl Into<String>) -> Self {
        self.finish_reason = Some(reason.into());
        self
    }

    /// The same turn with its usage.
    #[must_use]
    pub fn usage(mut self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        self.usage = Some(Usage {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
            extra: Object::new(),
        });
        self
    }

    /// The same turn, given after `milliseconds`.
    #[must_use]
    pub fn after_ms(mut self, milliseconds: u64) -> Self {
        self.delay_ms = milliseconds;
        self
    }
}
