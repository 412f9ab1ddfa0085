//! The parts of a request as they are written, borrowed from the conversation (`spec/llm.md` §18.1).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A mark for the prompt cache.
pub(crate) type Mark<'a> = Option<Cow<'a, Value>>;

/// One turn of a conversation.
#[derive(Debug, Serialize)]
pub(crate) struct Turn<'a> {
    pub(crate) role: Speaker,
    pub(crate) content: Vec<Part<'a>>,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Speaker {
    User,
    Assistant,
    System,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark<'a>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// The arguments as the model wrote them, digit for digit.
        input: Box<RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark<'a>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Mark<'a>,
    },
    /// A block in Anthropic's own form, as it came.
    #[serde(untagged)]
    Native(Cow<'a, Value>),
}

/// Where a picture or a document is.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Source<'a> {
    Base64 {
        media_type: &'a str,
        data: &'a str,
    },
    Url {
        url: &'a str,
    },
    Text {
        media_type: &'a str,
        data: Cow<'a, str>,
    },
    File {
        file_id: &'a str,
    },
}

/// The content of a tool result.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> Part<'a> {
    /// A text without a mark.
    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }

    /// The mark of the block.
    pub(crate) fn mark(&self) -> Option<&Value> {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::Document { cache_control, .. }
            | Self::ToolUse { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => cache_control.as_deref(),
            Self::Native(block) => block.get("cache_control").filter(|mark| !mark.is_null()),
        }
    }

    /// Whether the block can have a mark: thinking cannot.
    pub(crate) fn takes_mark(&self) -> bool {
        match self {
            Self::Native(block) => !is_thinking(block),
            _ => true,
        }
    }

    /// Sets the mark of the block, or takes it away.
    pub(crate) fn set_mark(&mut self, mark: Mark<'a>) {
        match self {
            Self::Text { cache_control, .. }
            | Self::Image { cache_control, .. }
            | Self::Document { cache_control, .. }
            | Self::ToolUse { cache_control, .. }
            | Self::ToolResult { cache_control, .. } => *cache_control = mark,
            Self::Native(block) => {
                if let Some(block) = block.to_mut().as_object_mut() {
                    match mark {
                        Some(mark) => {
                            block.insert("cache_control".to_owned(), mark.into_owned());
                        }
                        None => {
                            block.shift_remove("cache_control");
                        }
                    }
                }
            }
        }
    }
}

/// Whether `block` is what the model thought, in words or sealed.
pub(crate) fn is_thinking(block: &Value) -> bool {
    matches!(
        block.get("type").and_then(Value::as_str),
        Some("thinking" | "redacted_thinking")
    )
}

/// Whether `block` is thinking that its provider will know again.
pub(crate) fn is_signed_thinking(block: &Value) -> bool {
    let has = |key: &str| {
        block
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    match block.get("type").and_then(Value::as_str) {
        Some("thinking") => has("signature") && block.get("thinking").is_some_and(Value::is_string),
        Some("redacted_thinking") => has("data"),
        _ => false,
    }
}
