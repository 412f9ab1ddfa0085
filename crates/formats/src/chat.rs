//! Chat messages in the OpenAI chat-completions shape, the one message language of the workspace.
//!
//! Trajectories of the reference hold this shape, and so do ours. Providers with another wire
//! format are translated to and from it by `llm-client`. Nothing is lost on the way: unknown keys
//! of a message, a tool call or a content block are kept in `extra` and written back, unknown
//! block types are kept whole.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// Instructions by the operator.
    System,
    /// Instructions by the operator, as newer OpenAI models call them.
    Developer,
    /// The task, later messages of the user, and what agents inject.
    User,
    /// The model.
    Assistant,
    /// The result of one tool call.
    Tool,
    /// The result of a call in the format that preceded tool calls.
    Function,
    /// A role that this version does not know; kept as it came.
    #[serde(untagged)]
    Other(String),
}

impl Role {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Function => "function",
            Self::Other(role) => role,
        }
    }
}

/// One message of a conversation.
///
/// `content` is always written, as `null` where it is absent; the other optional keys are left
/// out when unset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; absent in an assistant turn that only calls tools.
    #[serde(default)]
    pub content: Option<Content>,
    /// The tool calls of an assistant turn, in the model's order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a message of role `tool` answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool that answered, or the name of a participant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Everything else, as it came: `reasoning_content`, `thinking_blocks`,
    /// `provider_specific_fields`, `cache_control`, …
    #[serde(flatten)]
    pub extra: Object,
}

impl Message {
    fn with_text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Some(Content::Text(text.into())),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
            extra: Object::new(),
        }
    }

    /// A system message.
    pub fn system(text: impl Into<String>) -> Self {
        Self::with_text(Role::System, text)
    }

    /// A user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::with_text(Role::User, text)
    }

    /// An assistant message without tool calls.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::with_text(Role::Assistant, text)
    }

    /// The answer to the call `tool_call_id` of the tool `name`.
    pub fn tool(
        tool_call_id: impl Into<String>,
        name: impl Into<String>,
        content: impl Into<Content>,
    ) -> Self {
        Self {
            role: Role::Tool,
            content: Some(content.into()),
            tool_calls: Vec::new(),
            tool_call_id: Some(tool_call_id.into()),
            name: Some(name.into()),
            extra: Object::new(),
        }
    }

    /// The text of the message: text blocks joined by newlines, other blocks left out.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        self.content
            .as_ref()
            .map_or(Cow::Borrowed(""), Content::text)
    }

    /// What the model thought before it spoke, where the provider tells it in words.
    #[must_use]
    pub fn reasoning_content(&self) -> Option<&str> {
        self.extra.get("reasoning_content")?.as_str()
    }
}

/// The content of a message: a plain string, or a list of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Texts, pictures and other parts in order.
    Blocks(Vec<Block>),
}

impl Content {
    /// All text, blocks joined by newlines.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
                match texts.as_slice() {
                    [] => Cow::Borrowed(""),
                    [one] => Cow::Borrowed(one),
                    many => Cow::Owned(many.join("\n")),
                }
            }
        }
    }

    /// Whether there is nothing but blank text in it.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => blocks
                .iter()
                .all(|block| block.as_text().is_some_and(|text| text.trim().is_empty())),
        }
    }

    /// The blocks, where the content is a list.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<Block>> for Content {
    fn from(blocks: Vec<Block>) -> Self {
        Self::Blocks(blocks)
    }
}

/// One part of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Block {
    /// A part of a type that we read.
    Known(KnownBlock),
    /// Any other part, kept as it came.
    Other(Value),
}

/// The content parts that agents, translators and reports look into.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum KnownBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
        /// Other keys, such as `cache_control`.
        #[serde(flatten)]
        extra: Object,
    },
    /// A picture.
    ImageUrl {
        /// Where it is.
        image_url: ImageUrl,
        /// Other keys.
        #[serde(flatten)]
        extra: Object,
    },
}

/// Where a picture is: an `https:` address or a `data:` URI.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageUrl {
    /// The address.
    pub url: String,
    /// Other keys, such as `detail`.
    #[serde(flatten)]
    pub extra: Object,
}

impl Block {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Known(KnownBlock::Text {
            text: text.into(),
            extra: Object::new(),
        })
    }

    /// A picture.
    pub fn image_url(url: impl Into<String>) -> Self {
        Self::Known(KnownBlock::ImageUrl {
            image_url: ImageUrl {
                url: url.into(),
                extra: Object::new(),
            },
            extra: Object::new(),
        })
    }

    /// The text, if this is a text part (or a bare string in a list, which some writers use).
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Known(KnownBlock::Text { text, .. }) => Some(text),
            Self::Other(Value::String(text)) => Some(text),
            Self::Known(_) | Self::Other(_) => None,
        }
    }

    /// The address of the picture, if this is one.
    #[must_use]
    pub fn as_image_url(&self) -> Option<&str> {
        match self {
            Self::Known(KnownBlock::ImageUrl { image_url, .. }) => Some(&image_url.url),
            Self::Known(_) | Self::Other(_) => None,
        }
    }
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The id by which the result refers to the call; some providers leave it out.
    #[serde(default, deserialize_with = "null_is_default")]
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Which tool, with which arguments.
    pub function: FunctionCall,
    /// Everything else, as it came: `index`, `provider_specific_fields`, `extra_content`, …
    #[serde(flatten)]
    pub extra: Object,
}

impl ToolCall {
    /// A call of the tool `name` with `arguments` as raw JSON text.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            kind: function(),
            function: FunctionCall {
                name: name.into(),
                arguments: arguments.into(),
                extra: Object::new(),
            },
            extra: Object::new(),
        }
    }
}

/// The name and the raw arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCall {
    /// The tool's name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// The arguments as the model wrote them, neither parsed nor repaired. An object in its place
    /// (some servers send one) is read as its JSON text.
    #[serde(default, deserialize_with = "text_of_arguments")]
    pub arguments: String,
    /// Everything else, as it came.
    #[serde(flatten)]
    pub extra: Object,
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDefinition {
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// The tool.
    pub function: FunctionDefinition,
    /// Other keys, such as `cache_control`.
    #[serde(flatten)]
    pub extra: Object,
}

/// Name, description and parameters of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionDefinition {
    /// The name by which the model calls it.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, deserialize_with = "null_is_default")]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default = "empty_object")]
    pub parameters: Value,
    /// Other keys, such as `strict`.
    #[serde(flatten)]
    pub extra: Object,
}

impl ToolDefinition {
    /// A tool with the JSON Schema `parameters`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            kind: function(),
            function: FunctionDefinition {
                name: name.into(),
                description: description.into(),
                parameters,
                extra: Object::new(),
            },
            extra: Object::new(),
        }
    }
}

/// What a call used, in the provider's own terms, normalised to chat-completions names.
///
/// Missing is not zero: a provider that reports nothing gives no `Usage` at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens of the request, those read from and written to a cache included.
    #[serde(default, deserialize_with = "lenient_count")]
    pub prompt_tokens: u64,
    /// Tokens of the reply, reasoning included.
    #[serde(default, deserialize_with = "lenient_count")]
    pub completion_tokens: u64,
    /// Their sum.
    #[serde(default, deserialize_with = "lenient_count")]
    pub total_tokens: u64,
    /// Everything else, as it came: `prompt_tokens_details`, `completion_tokens_details`, …
    #[serde(flatten)]
    pub extra: Object,
}

impl Usage {
    fn detail(&self, group: &str, key: &str) -> Option<u64> {
        self.extra.get(group)?.get(key)?.as_u64()
    }

    /// Tokens that the model used to think; part of `completion_tokens`.
    #[must_use]
    pub fn reasoning_tokens(&self) -> u64 {
        self.detail("completion_tokens_details", "reasoning_tokens")
            .unwrap_or(0)
    }

    /// Tokens read from the provider's prompt cache; part of `prompt_tokens`.
    #[must_use]
    pub fn cached_tokens(&self) -> u64 {
        self.detail("prompt_tokens_details", "cached_tokens")
            .or_else(|| self.extra.get("cache_read_input_tokens")?.as_u64())
            .unwrap_or(0)
    }

    /// Tokens written to the provider's prompt cache; part of `prompt_tokens`.
    #[must_use]
    pub fn cache_creation_tokens(&self) -> u64 {
        self.detail("prompt_tokens_details", "cache_creation_tokens")
            .or_else(|| self.extra.get("cache_creation_input_tokens")?.as_u64())
            .unwrap_or(0)
    }

    /// Tokens of sound in the request, where the provider tells them apart; part of `prompt_tokens`.
    #[must_use]
    pub fn audio_tokens(&self) -> u64 {
        self.detail("prompt_tokens_details", "audio_tokens")
            .unwrap_or(0)
    }

    /// Tokens of sound in the reply, where the provider tells them apart; part of `completion_tokens`.
    #[must_use]
    pub fn audio_output_tokens(&self) -> u64 {
        self.detail("completion_tokens_details", "audio_tokens")
            .unwrap_or(0)
    }

    /// Tokens of pictures in the request, where the provider tells them apart.
    #[must_use]
    pub fn image_tokens(&self) -> u64 {
        self.detail("prompt_tokens_details", "image_tokens")
            .unwrap_or(0)
    }
}

fn function() -> String {
    "function".to_owned()
}

fn empty_object() -> Value {
    Value::Object(Object::new())
}

/// `null` in the place of a value means the value's default.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn text_of_arguments<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// A count that is missing, negative or no number counts as 0 (`spec/agents.md` §15.1).
fn lenient_count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(match value.as_u64() {
        Some(count) => count,
        // Some servers write counts as floats.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "negative numbers are excluded, token counts are far below 2^53"
        )]
        None => value.as_f64().filter(|n| *n > 0.0).map_or(0, |n| n as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unknown_keys_blocks_and_roles_survive() {
        let written = json!([
            {"role": "critic", "content": "x", "weight": 2},
            {"role": "assistant", "content": null, "reasoning_content": "hm",
             "thinking_blocks": [{"type": "thinking", "signature": "s"}],
             "tool_calls": [{"id": "a", "type": "function",
                             "function": {"name": "f", "arguments": "{\"x\": 1"},
                             "extra_content": {"google": {"thought_signature": "t"}}}]},
            {"role": "tool", "content": [
                {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                {"type": "image_url", "image_url": "https://example.invalid/x.png"},
                {"type": "video", "frames": [1, 2]}
             ], "tool_call_id": "a", "name": "f"}
        ]);
        let messages: Vec<Message> = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(messages[0].role, Role::Other("critic".into()));
        assert_eq!(messages[1].reasoning_content(), Some("hm"));
        assert_eq!(messages[2].text(), "t");
        assert_eq!(serde_json::to_value(&messages).unwrap(), written);
    }

    #[test]
    fn nulls_of_the_reference_are_read() {
        let message: Message = serde_json::from_value(json!({
            "content": null, "role": "assistant", "tool_calls": null, "function_call": null,
            "provider_specific_fields": null
        }))
        .unwrap();
        assert!(message.tool_calls.is_empty());
        assert_eq!(message.content, None);
    }

    #[test]
    fn arguments_given_as_an_object_become_their_text() {
        let call: ToolCall =
            serde_json::from_value(json!({"function": {"name": "f", "arguments": {"a": 1}}}))
                .unwrap();
        assert_eq!(call.function.arguments, "{\"a\":1}");
        assert_eq!((call.id.as_str(), call.kind.as_str()), ("", "function"));
    }

    #[test]
    fn usage_reads_both_spellings_of_cache_counts() {
        let usage: Usage = serde_json::from_value(json!({
            "prompt_tokens": 10.0, "completion_tokens": -3, "total_tokens": null,
            "cache_read_input_tokens": 4,
            "completion_tokens_details": {"reasoning_tokens": 2}
        }))
        .unwrap();
        assert_eq!(
            (
                usage.prompt_tokens,
                usage.completion_tokens,
                usage.total_tokens
            ),
            (10, 0, 0)
        );
        assert_eq!((usage.cached_tokens(), usage.reasoning_tokens()), (4, 2));
    }

    #[test]
    fn blank_content_is_recognised() {
        assert!(Content::from(" \n").is_blank());
        assert!(Content::Blocks(vec![Block::text("")]).is_blank());
        assert!(!Content::Blocks(vec![Block::image_url("data:,")]).is_blank());
    }
}
