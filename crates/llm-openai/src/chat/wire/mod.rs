//! Messages and tools as they are written into a request, straight from the borrowed conversation.

mod content;
mod tools;

use std::borrow::Cow;

use formats::Object;
use formats::chat::{Block, Content, Message, Role, ToolCall};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub(super) use self::tools::Tools;

use self::content::{ContentPart, EMPTY, TextOnly, has_mark, pictures_of, write_pictures};
use super::dialect::Dialect;
use llm_wire::repair::{Entry, NO_RESULT, ToolNames, sendable_arguments};

/// How the parts of one request are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style<'a> {
    pub(crate) dialect: Dialect,
    pub(crate) names: &'a ToolNames,
    /// A proxy translates for Anthropic: tool messages may hold pictures, and blank texts are refused.
    pub(crate) anthropic: bool,
    /// The prompt cache wants marks (`spec/llm.md` §6.3).
    pub(crate) marks: bool,
    /// The last message gets one.
    pub(crate) marks_last: bool,
}

/// A mark for the prompt cache: what comes before it is kept for five minutes.
fn mark() -> Value {
    json!({"type": "ephemeral", "ttl": "5m"})
}

/// The messages of a request.
pub(crate) struct Messages<'a> {
    pub(crate) entries: &'a [Entry<'a>],
    pub(crate) style: Style<'a>,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let style = self.style;
        let mut list = serializer.serialize_seq(None)?;
        let mut pictures: Vec<&Block> = Vec::new();
        let (first_system, last) = self.places_of_marks();
        for (index, entry) in self.entries.iter().enumerate() {
            let marked = Some(index) == first_system || Some(index) == last;
            match entry {
                Entry::Result { id, message } => {
                    list.serialize_element(&ToolResult {
                        id,
                        message: *message,
                        style,
                        marked,
                    })?;
                    if !style.anthropic {
                        pictures.extend(message.iter().flat_map(|message| pictures_of(message)));
                    }
                }
                Entry::Message(message) => {
                    write_pictures(&mut list, &mut pictures)?;
                    list.serialize_element(&Turn {
                        message,
                        ids: &[],
                        style,
                        marked,
                    })?;
                }
                Entry::Calls { message, ids } => {
                    write_pictures(&mut list, &mut pictures)?;
                    list.serialize_element(&Turn {
                        message,
                        ids,
                        style,
                        marked,
                    })?;
                }
            }
        }
        write_pictures(&mut list, &mut pictures)?;
        list.end()
    }
}

impl Messages<'_> {
    /// The first system message and the last message, which get marks.
    fn places_of_marks(&self) -> (Option<usize>, Option<usize>) {
        if !self.style.marks {
            return (None, None);
        }
        let system = self.entries.iter().position(
            |entry| matches!(entry, Entry::Message(message) if message.role == Role::System),
        );
        let last = self.entries.len().checked_sub(1);
        (system, last.filter(|_| self.style.marks_last))
    }
}

/// Any message but a tool message.
struct Turn<'a> {
    message: &'a Message,
    ids: &'a [Cow<'a, str>],
    style: Style<'a>,
    marked: bool,
}

impl Serialize for Turn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            message,
            style,
            marked,
            ..
        } = *self;
        // The content of an assistant's turn is its own: the mark goes beside it.
        let is_assistant = message.role == Role::Assistant;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role(&message.role, style.dialect))?;
        match &message.content {
            Some(content) if style.anthropic && is_assistant && content.is_blank() => {}
            Some(content) => {
                let part = ContentPart {
                    content,
                    style,
                    marked: marked && !is_assistant,
                };
                map.serialize_entry("content", &part)?;
            }
            // An assistant's turn has calls, or it would have been dropped; others must say something.
            None if is_assistant => {}
            None => map.serialize_entry("content", EMPTY)?,
        }
        if let Some(name) = &message.name {
            map.serialize_entry("name", name)?;
        }
        if !message.tool_calls.is_empty() {
            let calls: Vec<Call<'_>> = message
                .tool_calls
                .iter()
                .zip(self.ids)
                .map(|(call, id)| Call { call, id, style })
                .collect();
            map.serialize_entry("tool_calls", &calls)?;
        }
        for (key, value) in sent_fields(&message.extra, style.dialect) {
            map.serialize_entry(key, &*value)?;
        }
        if marked && is_assistant && takes_mark(message) {
            map.serialize_entry("cache_control", &mark())?;
        }
        map.end()
    }
}

fn role(role: &Role, dialect: Dialect) -> &str {
    match (role, dialect) {
        // Few servers but OpenAI's know the newer word.
        (Role::Developer, Dialect::Compatible) => "system",
        _ => role.as_str(),
    }
}

/// The further fields of a message that are sent back.
///
/// OpenAI knows few of them. Other servers get what they may have sent themselves, such as
/// `reasoning_content`, but not the fields that OpenAI only answers with.
fn sent_fields(extra: &Object, dialect: Dialect) -> impl Iterator<Item = (&str, Cow<'_, Value>)> {
    extra
        .iter()
        .filter(move |(key, value)| {
            !value.is_null()
                && match dialect {
                    Dialect::OpenAi => {
                        matches!(key.as_str(), "refusal" | "audio" | "function_call")
                    }
                    Dialect::Compatible => {
                        key.as_str() != "annotations" && key.as_str() != "is_error"
                    }
                    Dialect::Proxy => true,
                }
        })
        .map(|(key, value)| match (key.as_str(), value.get("id")) {
            // An answer's sound is referred to, not repeated.
            ("audio", Some(id)) => (key.as_str(), Cow::Owned(json!({ "id": id }))),
            _ => (key.as_str(), Cow::Borrowed(value)),
        })
}

struct ToolResult<'a> {
    id: &'a str,
    message: Option<&'a Message>,
    style: Style<'a>,
    marked: bool,
}

impl Serialize for ToolResult<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            id,
            message,
            style,
            marked,
        } = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "tool")?;
        map.serialize_entry("tool_call_id", id)?;
        let Some(message) = message else {
            map.serialize_entry("content", NO_RESULT)?;
            return map.end();
        };
        match &message.content {
            Some(content) if style.anthropic => {
                let part = ContentPart {
                    content,
                    style,
                    marked: false,
                };
                map.serialize_entry("content", &part)?;
            }
            Some(content) => {
                map.serialize_entry("content", &TextOnly { content, style })?;
            }
            None => map.serialize_entry("content", EMPTY)?,
        }
        if style.dialect == Dialect::Proxy
            && let Some(name) = &message.name
        {
            map.serialize_entry("name", &style.names.wire(name))?;
        }
        for (key, value) in &message.extra {
            let sent = match style.dialect {
                Dialect::OpenAi => false,
                Dialect::Compatible => key == "cache_control",
                Dialect::Proxy => true,
            };
            if sent && !value.is_null() {
                map.serialize_entry(key, value)?;
            }
        }
        if marked && takes_mark(message) {
            map.serialize_entry("cache_control", &mark())?;
        }
        map.end()
    }
}

struct Call<'a> {
    call: &'a ToolCall,
    id: &'a str,
    style: Style<'a>,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Function<'f> {
            name: Cow<'f, str>,
            arguments: Cow<'f, str>,
        }
        let function = &self.call.function;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry(
            "function",
            &Function {
                name: self.style.names.wire(&function.name),
                arguments: sendable_arguments(&function.arguments),
            },
        )?;
        if self.style.dialect != Dialect::OpenAi {
            for (key, value) in &self.call.extra {
                // The index is a mark of streamed answers.
                if key != "index" && !value.is_null() {
                    map.serialize_entry(key, value)?;
                }
            }
        }
        map.end()
    }
}

/// Whether a mark may be put beside the content of `message`: not where there is one already, and
/// not on nothing.
fn takes_mark(message: &Message) -> bool {
    let content = message.content.as_ref();
    let is_blank = content.is_none_or(Content::is_blank) && message.tool_calls.is_empty();
    let blocks = content.map_or(&[][..], Content::blocks);
    !is_blank && !message.extra.contains_key("cache_control") && !blocks.iter().any(has_mark)
}
