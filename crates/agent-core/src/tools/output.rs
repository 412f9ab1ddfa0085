//! What a tool gives back, before it becomes messages.

use serde_json::Value;

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    /// Texts, pictures and other parts, in order.
    pub content: Vec<ToolContent>,
    /// The result as data; shown to the model where `content` says nothing or the call failed.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::Text(text.into())],
            ..Self::default()
        }
    }

    /// A failure, told to the model as `text`.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// A picture: base64 data and its media type, such as `image/png`.
    pub fn image(data: impl Into<String>, media_type: impl Into<String>) -> Self {
        Self {
            content: vec![ToolContent::Image {
                data: data.into(),
                media_type: media_type.into(),
            }],
            ..Self::default()
        }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// One part of a tool's result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolContent {
    /// Text.
    Text(String),
    /// A picture, base64.
    Image {
        /// The data.
        data: String,
        /// What the tool says it is.
        media_type: String,
    },
    /// A sound, base64.
    Audio {
        /// The data.
        data: String,
        /// What the tool says it is.
        media_type: String,
    },
    /// A text document inside the result.
    TextResource {
        /// Its address.
        uri: String,
        /// The text.
        text: String,
    },
    /// A binary document inside the result, base64.
    BlobResource {
        /// Its address.
        uri: String,
        /// The data.
        data: String,
        /// What the tool says it is.
        media_type: Option<String>,
    },
    /// A reference to a document.
    Link {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
        /// What it is about.
        description: Option<String>,
        /// What the tool says it is.
        media_type: Option<String>,
        /// Bytes.
        size: Option<u64>,
    },
    /// A part of a kind that this version does not know, as it came.
    Other(Value),
}
