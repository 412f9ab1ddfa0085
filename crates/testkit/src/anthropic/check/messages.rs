//! Turns, blocks, calls and their results.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Check, Generation, kind};
use crate::anthropic::reply::signature;

/// Largest picture, in characters of base64.
const LARGEST_PICTURE: usize = 5 * 1024 * 1024;
/// Most pictures of a request.
const MOST_PICTURES: usize = 600;

pub(super) fn check(body: &Map<String, Value>, generation: Generation, lenient: bool) -> Check {
    let messages = body
        .get("messages")
        .and_then(Value::as_array)
        .ok_or("messages: Field required")?;
    let mut walk = Walk {
        generation,
        lenient,
        has_tools: body
            .get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| !tools.is_empty()),
        last_role: "",
        open: Vec::new(),
        ids: HashSet::new(),
        pictures: 0,
    };
    for (index, message) in messages.iter().enumerate() {
        let is_last = index + 1 == messages.len();
        walk.message(message, is_last)
            .map_err(|reason| format!("messages.{index}: {reason}"))?;
    }
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    if !walk.open.is_empty() {
        return Err(format!(
            "messages: tool_use ids were found without tool_result blocks immediately after: {}",
            walk.open.join(", ")
        ));
    }
    Ok(())
}

struct Walk<'b> {
    generation: Generation,
    lenient: bool,
    has_tools: bool,
    last_role: &'b str,
    /// Ids of the calls of the last turn that have no result yet.
    open: Vec<&'b str>,
    ids: HashSet<&'b str>,
    pictures: usize,
}

impl<'b> Walk<'b> {
    fn message(&mut self, message: &'b Value, is_last: bool) -> Check {
        let role = message
            .get("role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let fits = match role {
            "user" => self.last_role != "user",
            "assistant" => !matches!(self.last_role, "" | "assistant"),
            "system" => self.generation.is_from(5, 0) && self.last_role == "user",
            _ => return Err(format!("unexpected role \"{role}\"")),
        };
        if !fits {
            let before = self.last_role;
            return Err(format!(
                "roles must alternate, beginning with user; got \"{role}\" after \"{before}\""
            ));
        }
        self.last_role = role;
        let known = ["role", "content"];
        let fields = message.as_object().into_iter().flatten();
        if let Some((name, _)) = fields
            .into_iter()
            .find(|(name, _)| !known.contains(&name.as_str()))
        {
            return Err(format!("{name}: Extra inputs are not permitted"));
        }
        let blocks = match message.get("content") {
            Some(Value::String(text)) if text.trim().is_empty() => {
                return Err("text content must contain non-whitespace text".to_owned());
            }
            Some(Value::String(_)) => &[],
            Some(Value::Array(blocks))
                if !blocks.is_empty() || (is_last && role == "assistant") =>
            {
                blocks.as_slice()
            }
            _ => return Err("content: at least one block is required".to_owned()),
        };
        if role == "user" {
            self.results(blocks)?;
        }
        for (index, block) in blocks.iter().enumerate() {
            self.block(block, role)
                .map_err(|reason| format!("content.{index}: {reason}"))?;
        }
        if role == "assistant" && is_last {
            let last = match message.get("content") {
                Some(Value::String(text)) => Some(text.as_str()),
                _ => blocks.last().and_then(|block| block.get("text")?.as_str()),
            };
            self.beginning_of_reply(last)?;
        }
        Ok(())
    }

    /// Results stand first, one for each open call, and none for others.
    fn results(&mut self, blocks: &'b [Value]) -> Check {
        let is_result = |block: &&Value| kind(block) == "tool_result";
        let count = blocks.iter().take_while(is_result).count();
        if blocks[count..].iter().any(|block| is_result(&block)) {
            return Err("tool_result blocks must come before any other block".to_owned());
        }
        for block in &blocks[..count] {
            let id = block
                .get("tool_use_id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let place = self.open.iter().position(|open| *open == id).ok_or_else(|| {
                format!("unexpected tool_use_id found in tool_result blocks: {id}. Each tool_result block must have a corresponding tool_use block in the previous message")
            })?;
            self.open.remove(place);
        }
        if !self.open.is_empty() {
            return Err(format!(
                "tool_use ids were found without tool_result blocks immediately after: {}",
                self.open.join(", ")
            ));
        }
        Ok(())
    }

    fn block(&mut self, block: &'b Value, role: &str) -> Check {
        let kind = kind(block);
        let by_model = matches!(kind, "tool_use" | "thinking" | "redacted_thinking");
        if by_model && role != "assistant" || kind == "tool_result" && role != "user" {
            return Err(format!("a `{kind}` block cannot be in a {role} message"));
        }
        match kind {
            "text" => check_text(block),
            "image" => self.picture(block),
            "document" | "search_result" => Ok(()),
            "tool_use" => self.call(block),
            "tool_result" => self.result(block),
            "thinking" => self.thinking(block),
            "redacted_thinking" => Ok(()),
            _ if self.lenient => Ok(()),
            _ => Err(format!(
                "Input tag '{kind}' found using 'type' does not match any of the expected tags"
            )),
        }
    }

    fn call(&mut self, block: &'b Value) -> Check {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("id"), text("name"));
        let fits = |word: &str, longest: usize| {
            (1..=longest).contains(&word.len())
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if !fits(id, 1000) {
            return Err(format!(
                "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$', got {id}"
            ));
        }
        if !self.ids.insert(id) {
            return Err(format!("`tool_use` ids must be unique, got {id} twice"));
        }
        if !fits(name, 128) {
            return Err(format!(
                "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$', got {name}"
            ));
        }
        if !block.get("input").is_some_and(Value::is_object) {
            return Err("tool_use.input: Input should be a valid dictionary".to_owned());
        }
        if !self.has_tools {
            return Err(
                "Requests which include `tool_use` or `tool_result` blocks must define tools"
                    .to_owned(),
            );
        }
        self.open.push(id);
        Ok(())
    }

    fn result(&mut self, block: &'b Value) -> Check {
        match block.get("content") {
            None | Some(Value::String(_)) => Ok(()),
            Some(Value::Array(parts)) => parts.iter().try_for_each(|part| match kind(part) {
                "text" => check_text(part),
                "image" => self.picture(part),
                "document" | "search_result" => Ok(()),
                other => Err(format!("tool_result.content: unexpected block `{other}`")),
            }),
            Some(_) => Err("tool_result.content: Input should be a string or a list".to_owned()),
        }
    }

    fn picture(&mut self, block: &Value) -> Check {
        self.pictures += 1;
        if self.pictures > MOST_PICTURES {
            return Err(format!("more than {MOST_PICTURES} images"));
        }
        let source = block.get("source").ok_or("image.source: Field required")?;
        let text = |key: &str| source.get(key).and_then(Value::as_str).unwrap_or_default();
        match kind(source) {
            "url" if text("url").starts_with("https://") => Ok(()),
            "url" => Err("image.source.url: Only HTTPS URLs are supported".to_owned()),
            "base64" => {
                let (data, media_type) = (text("data"), text("media_type"));
                if data.len() > LARGEST_PICTURE {
                    return Err("image exceeds 5 MB maximum".to_owned());
                }
                // The first characters of base64 tell the format.
                let matches = match media_type {
                    "image/png" => data.starts_with("iVBORw0KGgo"),
                    "image/jpeg" => data.starts_with("/9j/"),
                    "image/gif" => data.starts_with("R0lGOD"),
                    "image/webp" => data.starts_with("UklGR"),
                    _ => return Err(format!("image.source.media_type: unexpected {media_type}")),
                };
                if matches {
                    return Ok(());
                }
                Err(format!(
                    "The image was specified using the {media_type} media type, but does not appear to be one"
                ))
            }
            other => Err(format!("image.source: unexpected type {other}")),
        }
    }

    fn thinking(&self, block: &Value) -> Check {
        let thinking = block.get("thinking").and_then(Value::as_str);
        let signed = block.get("signature").and_then(Value::as_str);
        let (Some(thinking), Some(signed)) = (thinking, signed) else {
            return Err("thinking.signature: Field required".to_owned());
        };
        if !self.lenient && signed != signature(thinking) {
            return Err("Invalid `signature` in `thinking` block".to_owned());
        }
        Ok(())
    }

    /// A turn of the assistant at the end is the beginning of its reply.
    fn beginning_of_reply(&self, text: Option<&str>) -> Check {
        if self.generation.is_from(4, 6) {
            return Err("This model does not support assistant message prefill. The conversation must end with a user message.".to_owned());
        }
        if text.is_some_and(|text| text.trim_end().len() < text.len()) {
            return Err("final assistant content cannot end with trailing whitespace".to_owned());
        }
        Ok(())
    }
}

fn check_text(block: &Value) -> Check {
    let text = block
        .get("text")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if text.is_empty() {
        return Err("text content blocks must be non-empty".to_owned());
    }
    if text.trim().is_empty() {
        return Err("text content blocks must contain non-whitespace text".to_owned());
    }
    Ok(())
}
