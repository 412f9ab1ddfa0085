//! From MCP results to tool outputs, without losing what this version does not know.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};
use serde::Deserialize;
use serde_json::Value;

use super::CallError;
use crate::tools::output::{ToolContent, ToolOutput};

pub(super) fn output(result: ServerResult) -> Result<ToolOutput, CallError> {
    match result {
        ServerResult::CallToolResult(result) => Ok(of_result(result)),
        ServerResult::EmptyResult(_) => Ok(ToolOutput::default()),
        // One part of an unknown kind makes the whole result unknown to the protocol library.
        ServerResult::CustomResult(custom) => Ok(of_value(custom.0)),
        ServerResult::InputRequiredResult(_) => Err(CallError::Rejected(
            "the tool asks for further input, which this client cannot give".to_owned(),
        )),
        other => Err(CallError::Rejected(format!(
            "the server answered with something that is no tool result: {}",
            serde_json::to_string(&other).unwrap_or_default()
        ))),
    }
}

fn of_result(result: CallToolResult) -> ToolOutput {
    ToolOutput {
        content: result.content.into_iter().map(of_block).collect(),
        structured: result.structured_content,
        is_error: result.is_error.unwrap_or(false),
    }
}

fn of_block(block: ContentBlock) -> ToolContent {
    match block {
        ContentBlock::Text(text) => ToolContent::Text(text.text),
        ContentBlock::Image(image) => ToolContent::Image {
            data: image.data,
            media_type: image.mime_type,
        },
        ContentBlock::Audio(audio) => ToolContent::Audio {
            data: audio.data,
            media_type: audio.mime_type,
        },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                ToolContent::TextResource { uri, text }
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => ToolContent::BlobResource {
                uri,
                data: blob,
                media_type: mime_type,
            },
            other => ToolContent::Other(serde_json::to_value(other).unwrap_or_default()),
        },
        ContentBlock::ResourceLink(link) => ToolContent::Link {
            uri: link.uri,
            name: link.name,
            description: link.description,
            media_type: link.mime_type,
            size: link.size,
        },
        other => ToolContent::Other(serde_json::to_value(other).unwrap_or_default()),
    }
}

/// A result as raw JSON: the known parts as usual, the others as they came.
fn of_value(mut value: Value) -> ToolOutput {
    let Some(Value::Array(parts)) = value.get_mut("content").map(Value::take) else {
        return ToolOutput {
            structured: Some(value),
            ..ToolOutput::default()
        };
    };
    ToolOutput {
        content: parts
            .into_iter()
            .map(|part| match ContentBlock::deserialize(&part) {
                Ok(block) => of_block(block),
                Err(_) => ToolContent::Other(part),
            })
            .collect(),
        structured: value.get("structuredContent").cloned(),
        is_error: value.get("isError") == Some(&Value::Bool(true)),
    }
}
