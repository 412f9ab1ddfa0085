//! Token estimates. Always an estimate: what providers report goes before.

use formats::chat::{Message, ToolDefinition};

use crate::tools::image_tokens;

/// Tokens of a text, roughly: four characters each.
pub(crate) fn of_text(text: &str) -> u64 {
    let characters = text.chars().count() as u64;
    characters.div_ceil(4)
}

/// What a message costs beside its texts.
const PER_MESSAGE: u64 = 3;

/// What a picture costs whose size is not known.
const PER_UNKNOWN_IMAGE: u64 = 85;

/// Tokens of a message in a prompt, pictures included.
pub(crate) fn of_message(message: &Message, provider: &str, model: &str) -> u64 {
    let mut sum = PER_MESSAGE;
    match &message.content {
        Some(formats::chat::Content::Text(text)) => sum += of_text(text),
        Some(formats::chat::Content::Blocks(blocks)) => {
            for block in blocks {
                sum += match (block.as_text(), block.as_image_url()) {
                    (Some(text), _) => of_text(text),
                    (None, Some(url)) => image_tokens(url, provider, model).max(PER_UNKNOWN_IMAGE),
                    (None, None) => PER_UNKNOWN_IMAGE,
                };
            }
        }
        None => {}
    }
    for call in &message.tool_calls {
        sum += of_text(&call.function.name) + of_text(&call.function.arguments);
    }
    sum + of_text(&thinking(message))
}

/// Tokens of tool definitions in a prompt.
pub(crate) fn of_tools(tools: &[ToolDefinition]) -> u64 {
    tools
        .iter()
        .map(|tool| {
            let function = &tool.function;
            of_text(&function.name)
                + of_text(&function.description)
                + of_text(&function.parameters.to_string())
        })
        .sum()
}

/// The thinking of a message in words: its thinking blocks, else its reasoning content.
pub(crate) fn thinking(message: &Message) -> String {
    let blocks = message
        .extra
        .get("thinking_blocks")
        .and_then(serde_json::Value::as_array);
    let from_blocks: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("thinking")?.as_str())
        .collect();
    if from_blocks.is_empty() {
        message.reasoning_content().unwrap_or_default().to_owned()
    } else {
        from_blocks.join("\n")
    }
}
