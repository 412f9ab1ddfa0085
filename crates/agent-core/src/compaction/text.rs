//! A conversation as text, for a summary.

use formats::chat::{Content, Message, Role};
use llm_client::tokens;

/// Most characters of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    message: usize,
    tool: usize,
    arguments: usize,
}

impl Allowance {
    /// For messages that are summarised.
    pub(super) const OLD: Self = Self {
        message: 2000,
        tool: 1000,
        arguments: 200,
    };
    /// For messages that stay as text: larger, since nothing else of them stays.
    pub(super) const RECENT: Self = Self {
        message: 16_000,
        tool: 8000,
        arguments: 4000,
    };

    const fn halved(self) -> Self {
        Self {
            message: self.message / 2,
            tool: self.tool / 2,
            arguments: self.arguments / 2,
        }
    }

    /// Below this, cutting further leaves nothing to read.
    const fn is_small(self) -> bool {
        self.tool < 200
    }
}

/// `messages` as text of at most `budget` tokens: each message is cut to its allowance, the
/// allowance shrinks until everything fits, and if it never does, the oldest messages are left out.
pub(super) fn of(messages: &[Message], allowance: Allowance, budget: u64) -> String {
    let mut allowance = allowance;
    loop {
        let parts: Vec<String> = messages.iter().map(|m| one(m, allowance)).collect();
        let sizes: Vec<u64> = parts.iter().map(|part| tokens::of_text(part) + 1).collect();
        if sizes.iter().sum::<u64>() <= budget {
            return parts.join("\n\n");
        }
        if allowance.is_small() {
            return newest(&parts, &sizes, budget);
        }
        allowance = allowance.halved();
    }
}

fn newest(parts: &[String], sizes: &[u64], budget: u64) -> String {
    let mut left = budget;
    let fitting = sizes
        .iter()
        .rev()
        .take_while(|size| match left.checked_sub(**size) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .count();
    let omitted = parts.len() - fitting;
    let kept = parts.get(omitted..).unwrap_or_default();
    let mut text = format!("[{omitted} earlier messages left out]");
    for part in kept {
        text.push_str("\n\n");
        text.push_str(part);
    }
    text
}

fn one(message: &Message, allowance: Allowance) -> String {
    let mut text = match (&message.role, &message.name) {
        (Role::Tool, Some(name)) => format!("**TOOL {name}**"),
        (role, _) => format!("**{}**", role.as_str().to_uppercase()),
    };
    let limit = match message.role {
        Role::Tool => allowance.tool,
        _ => allowance.message,
    };
    let said = words(message);
    if !said.is_empty() {
        text.push('\n');
        text.push_str(&cut(&said, limit));
    }
    for call in &message.tool_calls {
        let arguments = cut(&call.function.arguments, allowance.arguments);
        text.push_str(&format!("\ncalls {}({arguments})", call.function.name));
    }
    text
}

/// All texts of a message, pictures and other parts as placeholders.
fn words(message: &Message) -> String {
    match &message.content {
        None => String::new(),
        Some(Content::Text(text)) => text.clone(),
        Some(Content::Blocks(blocks)) => {
            let parts: Vec<&str> = blocks
                .iter()
                .map(|block| match (block.as_text(), block.as_image_url()) {
                    (Some(text), _) => text,
                    (None, Some(_)) => "[image]",
                    (None, None) => "[part that is no text]",
                })
                .collect();
            parts.join("\n")
        }
    }
}

/// The first `limit` characters, with a mark where something is cut off.
fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}… [cut]", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The head of `text` of at most so many tokens.
pub(super) fn cut_to_tokens(text: &str, limit: u64) -> String {
    let mut short = text.to_owned();
    while tokens::of_text(&short) > limit && !short.is_empty() {
        let characters = short.chars().count();
        short = cut(&short, characters * 3 / 4);
        if short.chars().count() >= characters {
            return String::new();
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use formats::chat::{Block, ToolCall};

    use super::*;

    fn tool(text: &str) -> Message {
        Message::tool(
            "c",
            "read",
            vec![Block::text(text), Block::image_url("data:,")],
        )
    }

    #[test]
    fn texts_of_blocks_stay_and_pictures_are_named() {
        let mut call = Message::assistant("looking");
        call.tool_calls = vec![ToolCall::new("c", "read", r#"{"path":"/a"}"#)];
        assert_eq!(
            of(
                &[Message::user("find it"), call, tool("the gorilla")],
                Allowance::OLD,
                1000
            ),
            "**USER**\nfind it\n\n**ASSISTANT**\nlooking\ncalls read({\"path\":\"/a\"})\n\n\
             **TOOL read**\nthe gorilla\n[image]"
        );
    }

    #[test]
    fn long_texts_are_cut_and_marked() {
        let text = of(&[tool(&"x".repeat(5000))], Allowance::OLD, 10_000);
        assert_eq!(text, format!("**TOOL read**\n{}… [cut]", "x".repeat(1000)));
    }

    #[test]
    fn the_text_never_exceeds_its_budget() {
        let messages: Vec<Message> = (0..400)
            .map(|n| tool(&format!("{n} {}", "x".repeat(9000))))
            .collect();
        for budget in [200, 2_000, 20_000, 200_000] {
            let text = of(&messages, Allowance::RECENT, budget);
            assert!(tokens::of_text(&text) <= budget + 20, "{budget}");
            assert!(text.contains("\n399 "), "the newest stays: {budget}");
        }
        let summary = cut_to_tokens(&"word ".repeat(10_000), 100);
        assert!(tokens::of_text(&summary) <= 100 && summary.len() > 200);
        assert_eq!(cut_to_tokens("short", 100), "short");
        assert_eq!(cut_to_tokens("much too long for it", 0), "");
    }
}
