//! The blocks of a conversation as Converse has them, made from Anthropic's.
//!
//! Both interfaces have the same rules of turns, calls and results, so the conversation is put
//! together once, in `providers::anthropic`, and written differently here.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::messages::conversation::Conversation;
use crate::messages::wire::{Part, ResultContent, Source, Speaker};

/// The type of a block that has no counterpart in Anthropic's form; `block` holds it as it came.
pub(super) const FOREIGN: &str = "bedrock_block";

/// What stands beside a document where the user says nothing: a document alone is refused.
const SEE_DOCUMENT: &str = "(See the document.)";

/// One turn.
#[derive(Debug, Serialize)]
pub(super) struct Turn<'a> {
    role: Speaker,
    content: Vec<Block<'a>>,
}

/// A content block.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    Image {
        format: Cow<'a, str>,
        source: Bytes<'a>,
    },
    Document {
        format: &'static str,
        name: String,
        source: Bytes<'a>,
    },
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
    },
    ReasoningContent(Reasoning<'a>),
    CachePoint(CachePoint),
    /// A block of this interface, as it came.
    #[serde(untagged)]
    Foreign(Cow<'a, Value>),
}

/// Content as base64.
#[derive(Debug, Serialize)]
pub(super) struct Bytes<'a> {
    bytes: Cow<'a, str>,
}

/// What the model thought.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Reasoning<'a> {
    ReasoningText {
        text: Cow<'a, str>,
        signature: Cow<'a, str>,
    },
    RedactedContent(Cow<'a, str>),
}

/// A mark for the prompt cache behind what is to be kept.
#[derive(Debug, Serialize)]
pub(super) struct CachePoint {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// The system text and the turns of `conversation`.
pub(super) fn written(conversation: Conversation<'_>) -> (Vec<Block<'_>>, Vec<Turn<'_>>) {
    let mut writer = Writer { documents: 0 };
    let system = writer.blocks(conversation.system);
    let mut turns: Vec<Turn<'_>> = Vec::with_capacity(conversation.turns.len());
    for turn in conversation.turns {
        let mut content = writer.turn(turn.content);
        if turn.role == Speaker::System {
            // A point cannot stand in a turn of the system; behind the one before, it keeps nearly as
            // much.
            let is_point = |block: &Block<'_>| matches!(block, Block::CachePoint(_));
            let point = content.iter().position(is_point);
            let point = point.map(|place| content.remove(place));
            content.retain(|block| !is_point(block));
            if let Some(before) = turns.last_mut()
                && !before.content.last().is_some_and(is_point)
            {
                before.content.extend(point);
            }
        }
        turns.push(Turn {
            role: turn.role,
            content,
        });
    }
    (system, turns)
}

/// The point that says what `mark` says, unless it says nothing.
pub(super) fn cache_point(mark: &Value) -> CachePoint {
    let is_long = mark.get("ttl").and_then(Value::as_str) == Some("1h");
    CachePoint {
        kind: "default",
        ttl: is_long.then_some("1h"),
    }
}

struct Writer {
    /// How many documents there were; each needs a name of its own.
    documents: u32,
}

impl Writer {
    fn turn<'a>(&mut self, parts: Vec<Part<'a>>) -> Vec<Block<'a>> {
        let mut blocks = self.blocks(parts);
        let has = |wanted: fn(&Block<'_>) -> bool| blocks.iter().any(wanted);
        if has(|block| matches!(block, Block::Document { .. }))
            && !has(|block| matches!(block, Block::Text(_)))
        {
            blocks.push(Block::Text(SEE_DOCUMENT.into()));
        }
        blocks
    }

    fn blocks<'a>(&mut self, parts: Vec<Part<'a>>) -> Vec<Block<'a>> {
        let mut blocks = Vec::with_capacity(parts.len());
        for part in parts {
            let point = part.mark().map(cache_point);
            blocks.extend(self.block(part));
            blocks.extend(point.map(Block::CachePoint));
        }
        blocks
    }

    fn block<'a>(&mut self, part: Part<'a>) -> Option<Block<'a>> {
        Some(match part {
            Part::Text { text, .. } => Block::Text(text),
            Part::Image { source, .. } => picture(&source),
            Part::Document { source, .. } => self.document(source),
            Part::ToolUse {
                id, name, input, ..
            } => Block::ToolUse {
                tool_use_id: id,
                name,
                input: Cow::Owned(input),
            },
            Part::ToolResult {
                tool_use_id,
                content,
                is_error,
                ..
            } => Block::ToolResult {
                tool_use_id,
                content: self.result(content),
                status: is_error.then_some("error"),
            },
            Part::Native(block) => return native(block),
        })
    }

    fn result<'a>(&mut self, content: ResultContent<'a>) -> Vec<Block<'a>> {
        match content {
            ResultContent::Text(text) => vec![Block::Text(text)],
            // A point for the cache cannot stand within a result.
            ResultContent::Parts(parts) => parts
                .into_iter()
                .filter_map(|part| self.block(part))
                .collect(),
        }
    }

    fn document<'a>(&mut self, source: Source<'a>) -> Block<'a> {
        let (format, bytes) = match source {
            Source::Base64 { data, .. } => ("pdf", Cow::Borrowed(data)),
            Source::Text { data, .. } => ("txt", Cow::Owned(STANDARD.encode(data.as_bytes()))),
            Source::Url { url: place } | Source::File { file_id: place } => {
                return hidden("document", place);
            }
        };
        self.documents += 1;
        Block::Document {
            format,
            name: format!("document {}", self.documents),
            source: Bytes { bytes },
        }
    }
}

fn picture<'a>(source: &Source<'a>) -> Block<'a> {
    match *source {
        Source::Base64 { media_type, data } => Block::Image {
            format: media_type
                .strip_prefix("image/")
                .unwrap_or(media_type)
                .into(),
            source: Bytes {
                bytes: Cow::Borrowed(data),
            },
        },
        Source::Url { url: place } | Source::File { file_id: place } => hidden("picture", place),
        Source::Text { .. } => hidden("picture", "a text"),
    }
}

/// Bedrock fetches nothing from the web.
fn hidden(what: &str, place: &str) -> Block<'static> {
    let place: String = place.chars().take(200).collect();
    Block::Text(format!("(a {what} that cannot be shown here: `{place}`)").into())
}

/// A block in Anthropic's form: of an earlier answer, or the caller's own.
fn native(block: Cow<'_, Value>) -> Option<Block<'_>> {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("unknown");
    let text = |key: &str| match block.get(key) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    Some(match kind {
        "text" => Block::Text(text("text").into()),
        "thinking" => Block::ReasoningContent(Reasoning::ReasoningText {
            text: text("thinking").into(),
            signature: text("signature").into(),
        }),
        "redacted_thinking" => {
            Block::ReasoningContent(Reasoning::RedactedContent(text("data").into()))
        }
        "tool_use" => Block::ToolUse {
            tool_use_id: text("id").into(),
            name: text("name").into(),
            input: Cow::Owned(serde_json::value::to_raw_value(block.get("input")?).ok()?),
        },
        FOREIGN => match block {
            Cow::Borrowed(block) => Block::Foreign(Cow::Borrowed(block.get("block")?)),
            Cow::Owned(block) => Block::Foreign(Cow::Owned(block.get("block")?.clone())),
        },
        _ => Block::Text(format!("(a part of type `{kind}` that cannot be shown here)").into()),
    })
}
