//! How many tokens a text or a conversation may have: an estimate, never a count.
//!
//! No vocabulary is loaded. Text counts a token for four ASCII characters, which is about right for
//! English and code, and more for other scripts; pictures count by their size as OpenAI counts
//! them. Good for deciding when a conversation gets too long; correct it by the last call's
//! reported usage where that is known (`spec/llm.md` §11).

mod picture;

use formats::chat::{Block, Content, KnownBlock, Message, ToolDefinition};
use serde::Serialize;
use serde_json::Value;

/// Tokens around each message.
const PER_MESSAGE: u64 = 3;
/// Tokens around each request.
const PER_REQUEST: u64 = 3;

/// The estimated tokens of `text`.
///
/// ```
/// assert_eq!(llm_wire::tokens::of_text("twelve chars"), 3);
/// ```
#[must_use]
pub fn of_text(text: &str) -> u64 {
    if text.is_ascii() {
        return count(text.len()).div_ceil(4);
    }
    let quarters: u64 = text
        .chars()
        .map(|character| match character {
            '\0'..='\x7f' => 1,
            // Latin with accents, Greek, Cyrillic, Hebrew, Arabic.
            '\u{80}'..='\u{7ff}' => 2,
            _ => 4,
        })
        .sum();
    quarters.div_ceil(4)
}

/// The estimated tokens of one message: its content, calls and further text, and its frame.
#[must_use]
pub fn of_message(message: &Message) -> u64 {
    let content = match &message.content {
        None => 0,
        Some(Content::Text(text)) => of_text(text),
        Some(Content::Blocks(blocks)) => blocks.iter().map(of_block).sum(),
    };
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| of_text(&call.function.name) + of_text(&call.function.arguments) + PER_MESSAGE)
        .sum();
    let reasoning = message.reasoning_content().map_or(0, of_text);
    PER_MESSAGE + content + calls + reasoning
}

/// The estimated tokens of a conversation.
#[must_use]
pub fn of_messages(messages: &[Message]) -> u64 {
    PER_REQUEST + messages.iter().map(of_message).sum::<u64>()
}

/// Width and height in pixels of the picture in a `data:` URL, read from the head of a PNG, JPEG, GIF
/// or WebP file; `None` where that cannot be done.
#[must_use]
pub fn picture_size(url: &str) -> Option<(u32, u32)> {
    picture::size_in_url(url)
}

/// The estimated tokens of tool definitions.
#[must_use]
pub fn of_tools(tools: &[ToolDefinition]) -> u64 {
    tools.iter().map(of_json).sum()
}

/// The estimated tokens of a value when written as JSON; it is written into nothing but a counter.
pub fn of_json(value: &impl Serialize) -> u64 {
    struct Counter(u64);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += count(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0.div_ceil(4),
        Err(_) => 0,
    }
}

fn of_block(block: &Block) -> u64 {
    match block {
        Block::Known(KnownBlock::Text { text, .. }) => of_text(text),
        Block::Known(KnownBlock::ImageUrl { image_url, .. }) => {
            let detail = image_url.extra.get("detail").and_then(Value::as_str);
            picture::tokens(&image_url.url, detail)
        }
        Block::Other(Value::String(text)) => of_text(text),
        other => of_json(other),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_counts_by_its_script() {
        assert_eq!(of_text(""), 0);
        assert_eq!(of_text("a"), 1);
        assert_eq!(of_text(&"a".repeat(400)), 100);
        assert_eq!(of_text(&"я".repeat(100)), 50);
        assert_eq!(of_text(&"語".repeat(100)), 100);
    }

    #[test]
    fn a_picture_counts_by_its_size_not_by_its_text() {
        let data = format!("data:image/png;base64,{}", "A".repeat(1_000_000));
        let message = Message {
            content: Some(vec![Block::image_url(data)].into()),
            ..Message::user("")
        };
        assert!(of_message(&message) < 2000);
    }

    #[test]
    fn calls_count() {
        let mut message = Message::assistant("");
        let before = of_message(&message);
        message
            .tool_calls
            .push(formats::chat::ToolCall::new("id", "read", "{\"path\":1}"));
        assert_eq!(of_message(&message) - before, 1 + 3 + 3);
    }

    proptest! {
        #[test]
        fn more_text_never_counts_less(text in ".{0,200}", more in ".{0,20}") {
            let longer = text.clone() + &more;
            prop_assert!(of_text(&longer) >= of_text(&text));
        }
    }
}
