//! From a chat history to Anthropic's system text and alternating turns (`spec/llm.md` §18.2).

use std::borrow::Cow;
use std::collections::VecDeque;

use formats::chat::{Message, Role, ToolCall};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::{NATIVE_CONTENT, STOP_REASON};
use super::blocks::{mark_in, parts, result_content};
use super::wire::{Part, ResultContent, Speaker, Turn, is_signed_thinking, is_thinking};
use llm_wire::repair::{
    EMPTY, Entry, NO_RESULT, OPENING, OPERATOR_NOTE, ToolNames, WireIds, mended, sendable_arguments,
};

/// Longest id of a call; Anthropic names no limit, and others that serve its models have this one.
const LONGEST_ID: usize = 64;

/// What follows an assistant's turn at the end where the model takes no beginning of its reply.
const GO_ON: &str = "Go on.";

/// How a model takes conversations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// What the model thought is sent back.
    pub(crate) echo_thinking: bool,
    /// System messages may stand between the turns.
    pub(crate) system_turns: bool,
    /// An assistant's turn may stand at the end.
    pub(crate) prefill: bool,
}

/// A history as it is sent.
#[derive(Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) system: Vec<Part<'a>>,
    pub(crate) turns: Vec<Turn<'a>>,
}

/// Whether the history ends within a tool loop whose last call has no signed thinking: then older
/// models must not think until the loop is over.
pub(crate) fn is_in_unsigned_loop(messages: &[Message]) -> bool {
    let after_last_turn = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    after_last_turn.is_some_and(|index| {
        let turn = &messages[index];
        !turn.tool_calls.is_empty() && !thinking(turn).any(is_signed_thinking)
    })
}

/// Translates `messages`.
pub(crate) fn conversation<'a>(
    messages: &'a [Message],
    names: &'a ToolNames,
    rules: Rules,
) -> Conversation<'a> {
    let leading = messages
        .iter()
        .take_while(|message| is_system(message))
        .count();
    let (leading, rest) = messages.split_at(leading);
    let mut writer = Writer {
        rules,
        names,
        ids: WireIds::new(LONGEST_ID),
        open: VecDeque::new(),
        turns: Vec::new(),
        waiting: Vec::new(),
    };
    for entry in mended(rest) {
        writer.push(&entry);
    }
    Conversation {
        system: leading.iter().flat_map(marked_parts).collect(),
        turns: writer.finish(rest.last()),
    }
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// The blocks of a message, with the mark of the message on the last one.
fn marked_parts(message: &Message) -> Vec<Part<'_>> {
    let mut parts = parts(message.content.as_ref());
    move_mark(message, &mut parts);
    parts
}

fn move_mark<'a>(message: &'a Message, parts: &mut [Part<'a>]) {
    if let Some(mark) = mark_in(&message.extra)
        && let Some(last) = parts.iter_mut().rfind(|part| part.takes_mark())
    {
        last.set_mark(Some(mark));
    }
}

/// What the model thought in `turn`, sealed or not, signed or not.
fn thinking(turn: &Message) -> impl Iterator<Item = &Value> {
    let fields = turn.extra.get("provider_specific_fields");
    turn.extra
        .get("thinking_blocks")
        .or_else(|| fields?.get("thinking_blocks"))
        .or_else(|| fields?.get(NATIVE_CONTENT))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|block| is_thinking(block))
}

struct Writer<'a> {
    rules: Rules,
    names: &'a ToolNames,
    ids: WireIds,
    /// The ids of the calls whose results come next.
    open: VecDeque<String>,
    turns: Vec<Turn<'a>>,
    /// System messages that wait for the end of a user's turn.
    waiting: Vec<Part<'a>>,
}

impl<'a> Writer<'a> {
    fn push(&mut self, entry: &Entry<'a>) {
        match entry {
            Entry::Message(message) if is_system(message) => self.push_system(message),
            Entry::Message(message) if message.role == Role::Assistant => {
                self.push_assistant(message, &[]);
            }
            Entry::Message(message) => self.push_user(marked_parts(message)),
            Entry::Calls { message, ids } => {
                let ids: Vec<String> = ids.iter().map(|id| self.ids.wire(id)).collect();
                self.push_assistant(message, &ids);
                self.open.extend(ids);
            }
            Entry::Result { id, message } => {
                let id = self.open.pop_front().unwrap_or_else(|| id.to_string());
                self.push_user(vec![result(id, *message)]);
            }
        }
    }

    fn push_user(&mut self, parts: Vec<Part<'a>>) {
        self.extend(Speaker::User, parts);
    }

    fn push_assistant(&mut self, message: &'a Message, ids: &[String]) {
        let mut parts = self.assistant_parts(message, ids);
        move_mark(message, &mut parts);
        if !parts.is_empty() {
            self.flush_system();
            self.extend(Speaker::Assistant, parts);
        }
    }

    /// A system message between the turns keeps its place, or the cached beginning would change with
    /// every reminder.
    fn push_system(&mut self, message: &'a Message) {
        let parts = marked_parts(message);
        if parts.is_empty() {
            return;
        }
        if self.rules.system_turns {
            self.waiting.extend(parts);
        } else {
            self.push_user(
                std::iter::once(Part::text(OPERATOR_NOTE))
                    .chain(parts)
                    .collect(),
            );
        }
    }

    /// Writes the system messages that wait, where they may stand: behind a user's turn.
    fn flush_system(&mut self) {
        let ends_with_user =
            |turns: &[Turn<'_>]| turns.last().is_some_and(|turn| turn.role == Speaker::User);
        if !self.waiting.is_empty() && ends_with_user(&self.turns) {
            let content = std::mem::take(&mut self.waiting);
            self.turns.push(Turn {
                role: Speaker::System,
                content,
            });
        }
    }

    fn extend(&mut self, role: Speaker, parts: Vec<Part<'a>>) {
        match self.turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(parts),
            _ => self.turns.push(Turn {
                role,
                content: parts,
            }),
        }
    }

    /// The blocks of an assistant's turn, as they came where that is known.
    fn assistant_parts(&self, message: &'a Message, ids: &[String]) -> Vec<Part<'a>> {
        let calls = message.tool_calls.iter().zip(ids);
        if let Some(native) = native_content(message) {
            return self.native_parts(native, calls);
        }
        let echoed = thinking(message)
            .filter(|block| self.rules.echo_thinking && is_signed_thinking(block))
            .map(|block| Part::Native(Cow::Borrowed(block)));
        let calls = calls.map(|(call, id)| self.tool_use(call, id));
        echoed
            .chain(parts(message.content.as_ref()))
            .chain(calls)
            .collect()
    }

    fn native_parts<'i>(
        &self,
        native: &'a [Value],
        mut calls: impl Iterator<Item = (&'a ToolCall, &'i String)>,
    ) -> Vec<Part<'a>> {
        let keep = |block: &Value| match block.get("type").and_then(Value::as_str) {
            Some("text") => text_of(block).is_some_and(|text| !text.trim().is_empty()),
            _ if is_thinking(block) => self.rules.echo_thinking && is_signed_thinking(block),
            _ => true,
        };
        let mut parts = Vec::with_capacity(native.len());
        for block in native.iter().filter(|block| keep(block)) {
            if !is_tool_use(block) {
                parts.push(Part::Native(Cow::Borrowed(block)));
                continue;
            }
            // The call itself, under the names of this request.
            let Some((call, id)) = calls.next() else {
                continue;
            };
            let name = self.names.wire(&call.function.name);
            let same = block.get("id").and_then(Value::as_str) == Some(id)
                && block.get("name").and_then(Value::as_str) == Some(&*name);
            parts.push(if same {
                Part::Native(Cow::Borrowed(block))
            } else {
                self.tool_use(call, id)
            });
        }
        parts
    }

    fn tool_use(&self, call: &'a ToolCall, id: &str) -> Part<'a> {
        let arguments = sendable_arguments(&call.function.arguments).into_owned();
        Part::ToolUse {
            id: Cow::Owned(id.to_owned()),
            name: self.names.wire(&call.function.name),
            // What is sendable is JSON.
            input: RawValue::from_string(arguments).unwrap_or_default(),
            cache_control: None,
        }
    }

    fn finish(mut self, last: Option<&Message>) -> Vec<Turn<'a>> {
        self.flush_system();
        if !self.waiting.is_empty() {
            // Nothing of the user follows: a user's turn is made of it.
            let parts = std::mem::take(&mut self.waiting);
            self.push_user(
                std::iter::once(Part::text(OPERATOR_NOTE))
                    .chain(parts)
                    .collect(),
            );
        }
        let mut turns = self.turns;
        let opened = turns.first().is_some_and(|turn| turn.role == Speaker::User);
        if !opened {
            turns.insert(0, user(OPENING));
        }
        for turn in &mut turns {
            if turn.content.is_empty() {
                turn.content.push(Part::text(EMPTY));
            }
        }
        end_properly(&mut turns, self.rules.prefill || is_paused(last));
        turns
    }
}

fn user(text: &'static str) -> Turn<'static> {
    Turn {
        role: Speaker::User,
        content: vec![Part::text(text)],
    }
}

/// Whether the model paused with `last`, and wants it back as it is to go on.
fn is_paused(last: Option<&Message>) -> bool {
    let fields = last.and_then(|message| message.extra.get("provider_specific_fields"));
    fields
        .and_then(|fields| fields.get(STOP_REASON))
        .is_some_and(|reason| reason == "pause_turn")
}

/// Makes the last turn one that may stand at the end.
fn end_properly(turns: &mut Vec<Turn<'_>>, prefill: bool) {
    let Some(last) = turns
        .last_mut()
        .filter(|turn| turn.role == Speaker::Assistant)
    else {
        return;
    };
    if !prefill {
        turns.push(user(GO_ON));
        return;
    }
    // A beginning of a reply that ends in white space is refused.
    if let Some(Part::Text { text, .. }) = last.content.last_mut() {
        let length = text.trim_end().len();
        if length < text.len() {
            *text = Cow::Owned(text[..length].to_owned());
        }
    }
}

fn result<'a>(id: String, message: Option<&'a Message>) -> Part<'a> {
    let tool_use_id = Cow::Owned(id);
    match message {
        Some(message) => Part::ToolResult {
            tool_use_id,
            content: result_content(message),
            is_error: message.extra.get("is_error") == Some(&Value::Bool(true)),
            cache_control: mark_in(&message.extra),
        },
        None => Part::ToolResult {
            tool_use_id,
            content: ResultContent::Text(Cow::Borrowed(NO_RESULT)),
            is_error: false,
            cache_control: None,
        },
    }
}

/// The blocks of the turn as they came, if it still says what they say.
fn native_content(message: &Message) -> Option<&[Value]> {
    let native = message
        .extra
        .get("provider_specific_fields")?
        .get(NATIVE_CONTENT)?
        .as_array()?;
    let said: String = native.iter().filter_map(text_of).collect();
    let calls = native.iter().filter(|block| is_tool_use(block)).count();
    // Somebody may have changed the turn since, by cutting it off for instance: then that counts.
    let unchanged = said == message.text() && calls == message.tool_calls.len();
    unchanged.then_some(native)
}

fn is_tool_use(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("tool_use")
}

fn text_of(block: &Value) -> Option<&str> {
    let is_text = block.get("type").and_then(Value::as_str) == Some("text");
    block.get("text").filter(|_| is_text)?.as_str()
}
