//! The parts of a request as they are written, borrowed from the conversation
//! (<https://ai.google.dev/api/caching#Part>).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// One turn of a conversation.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    pub(super) role: Speaker,
    pub(super) parts: Vec<Part<'a>>,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Speaker {
    User,
    Model,
}

/// One part of a turn.
#[derive(Debug, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(super) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    InlineData {
        inline_data: Blob<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        media_resolution: Option<Resolution>,
    },
    FileData {
        file_data: File<'a>,
    },
    FunctionCall {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    FunctionResponse {
        function_response: Response<'a>,
    },
    /// A part in Google's own form, as it came.
    Native(&'a Value),
}

/// Content with its type.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Blob<'a> {
    pub(super) mime_type: Cow<'a, str>,
    /// Base64.
    pub(super) data: &'a str,
}

/// Content at an address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mime_type: Option<&'a str>,
    pub(super) file_uri: &'a str,
}

/// How closely a picture is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Resolution {
    pub(super) level: &'static str,
}

/// A call of a function.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Cow<'a, str>,
    /// The arguments as the model wrote them, digit for digit.
    pub(super) args: Box<RawValue>,
}

/// What a function answered.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Cow<'a, str>,
    pub(super) response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Part<'a>>,
}

/// A result or a failure, in words.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome<'a> {
    Content(Cow<'a, str>),
    Error(Cow<'a, str>),
}

impl<'a> Part<'a> {
    /// A text.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            thought_signature: None,
        }
    }

    /// Whether the part is a function's response.
    pub(super) fn is_response(&self) -> bool {
        matches!(self, Self::FunctionResponse { .. })
    }
}

/// The signature of `part` in Google's own form, if it has one.
pub(super) fn signature(part: &Value) -> Option<&str> {
    let signature = part
        .get("thoughtSignature")
        .or_else(|| part.get("thought_signature"));
    signature?.as_str().filter(|text| !text.is_empty())
}

/// The call in `part`, if it is one.
pub(super) fn call(part: &Value) -> Option<&Value> {
    part.get("functionCall")
        .or_else(|| part.get("function_call"))
}

/// Whether `part` tells a thought.
pub(super) fn is_thought(part: &Value) -> bool {
    part.get("thought") == Some(&Value::Bool(true))
}

/// The text of `part`, if it has one.
pub(super) fn text(part: &Value) -> Option<&str> {
    part.get("text")?.as_str()
}
