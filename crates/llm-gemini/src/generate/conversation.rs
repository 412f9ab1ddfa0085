//! From a chat history to Gemini's instruction and turns.

use std::borrow::Cow;
use std::collections::VecDeque;

use formats::chat::{Message, Role, ToolCall};
use serde_json::Value;
use serde_json::value::RawValue;

use super::answer::NATIVE_PARTS;
use super::blocks::{Blocks, fits_in_result};
use super::family::Abilities;
use super::tools::Functions;
use super::wire::{
    Call, Outcome, Part, Response, Speaker, Turn, call, is_thought, signature, text,
};
use llm_wire::repair::{EMPTY, Entry, NO_RESULT, NOTHING, OPENING, OPERATOR_NOTE, mended};

/// The documented stand-in for a signature that a history does not have, in base64:
/// `skip_thought_signature_validator`.
pub(super) const STAND_IN: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";
/// What stands between id and signature where the reference implementation put both into one text.
const BESIDE_ID: &str = "__thought__";
/// What a result says that consists of pictures or documents.
const ATTACHED: &str = "(no text: see what is attached)";

/// How signatures of earlier replies go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signatures {
    /// As they came.
    Own,
    /// Replaced by the stand-in: they are those of another server.
    StandIn,
}

/// How turns are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// What the model takes.
    pub(super) abilities: Abilities,
    /// What becomes of signatures.
    pub(super) signatures: Signatures,
}

/// A history as it is sent.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Part<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
}

/// Translates `messages`.
pub(super) fn conversation<'a>(
    messages: &'a [Message],
    functions: &'a Functions,
    rules: Rules,
) -> Conversation<'a> {
    let is_system = |message: &&Message| matches!(message.role, Role::System | Role::Developer);
    let leading = messages.iter().take_while(is_system).count();
    let (leading, rest) = messages.split_at(leading);
    let mut writer = Writer {
        rules,
        functions,
        blocks: Blocks {
            part_resolution: rules.abilities.part_resolution,
        },
        open: VecDeque::new(),
        turns: Vec::new(),
    };
    for entry in mended(rest) {
        writer.push(&entry);
    }
    let begins = writer.turns.first().map(|turn| turn.role);
    if begins != Some(Speaker::User) {
        let only = writer.turns.is_empty() && !rest.is_empty();
        let said = if only { EMPTY } else { OPENING };
        writer.turns.insert(
            0,
            Turn {
                role: Speaker::User,
                parts: vec![Part::text(said)],
            },
        );
    }
    let system = leading
        .iter()
        .flat_map(|message| writer.blocks.parts(message.content.as_ref()));
    Conversation {
        system: system.collect(),
        turns: writer.turns,
    }
}

/// A call that waits for its result.
struct Open<'a> {
    id: Option<Cow<'a, str>>,
    name: Cow<'a, str>,
}

struct Writer<'a> {
    rules: Rules,
    functions: &'a Functions,
    blocks: Blocks,
    open: VecDeque<Open<'a>>,
    turns: Vec<Turn<'a>>,
}

impl<'a> Writer<'a> {
    fn push(&mut self, entry: &Entry<'a>) {
        match entry {
            Entry::Message(message) => match message.role {
                Role::System | Role::Developer => self.push_system(message),
                Role::Assistant => {
                    let parts = self.model_parts(message, &[]);
                    self.extend(Speaker::Model, parts);
                }
                _ => {
                    let parts = self.blocks.parts(message.content.as_ref());
                    self.extend(Speaker::User, parts);
                }
            },
            Entry::Calls { message, ids } => {
                let ids: Vec<(Cow<'a, str>, Option<&'a str>)> =
                    ids.iter().map(without_signature).collect();
                let mut parts = self.model_parts(message, &ids);
                self.sign_first_call(&mut parts);
                self.open = message
                    .tool_calls
                    .iter()
                    .zip(&ids)
                    .map(|(call, (id, _))| Open {
                        id: self.wire_id(id),
                        name: self.functions.names.wire(&call.function.name),
                    })
                    .collect();
                self.extend(Speaker::Model, parts);
            }
            Entry::Result { message, .. } => self.push_result(*message),
        }
    }

    /// A system message between the turns keeps its place, or the cached beginning would change with
    /// every reminder.
    fn push_system(&mut self, message: &'a Message) {
        let parts = self.blocks.parts(message.content.as_ref());
        if !parts.is_empty() {
            let note = std::iter::once(Part::text(OPERATOR_NOTE));
            self.extend(Speaker::User, note.chain(parts).collect());
        }
    }

    /// Adds parts to the last turn if it is of the same speaker. What functions answered stands in a
    /// turn of its own, right behind the calls.
    fn extend(&mut self, role: Speaker, parts: Vec<Part<'a>>) {
        if parts.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(last) if last.role == role && !holds_responses(last) => last.parts.extend(parts),
            _ => self.turns.push(Turn { role, parts }),
        }
    }

    fn push_result(&mut self, message: Option<&'a Message>) {
        let Some(open) = self.open.pop_front() else {
            return;
        };
        let parts = self.result(open, message);
        match self.turns.last_mut() {
            Some(last) if holds_responses(last) => last.parts.extend(parts),
            _ => self.turns.push(Turn {
                role: Speaker::User,
                parts,
            }),
        }
    }

    /// The response of a function; what cannot stand within it stands behind it.
    fn result(&self, open: Open<'a>, message: Option<&'a Message>) -> Vec<Part<'a>> {
        let parts = self
            .blocks
            .parts(message.and_then(|message| message.content.as_ref()));
        let (texts, media): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .partition(|part| matches!(part, Part::Text { .. }));
        let within = self.rules.abilities.media_in_results;
        let (inner, beside): (Vec<_>, Vec<_>) = media
            .into_iter()
            .partition(|part| within && fits_in_result(part));
        let said = match (message, texts.is_empty()) {
            (None, _) => Cow::Borrowed(NO_RESULT),
            (Some(_), true) if inner.is_empty() && beside.is_empty() => Cow::Borrowed(NOTHING),
            (Some(_), true) => Cow::Borrowed(ATTACHED),
            (Some(_), false) => joined(texts),
        };
        let failed = message
            .is_some_and(|message| message.extra.get("is_error") == Some(&Value::Bool(true)));
        let response = if failed {
            Outcome::Error(said)
        } else {
            Outcome::Content(said)
        };
        let response = Part::FunctionResponse {
            function_response: Response {
                id: open.id,
                name: open.name,
                response,
                parts: inner,
            },
        };
        std::iter::once(response).chain(beside).collect()
    }

    /// The parts of a model's turn, as they came where that is known.
    fn model_parts(
        &self,
        message: &'a Message,
        ids: &[(Cow<'a, str>, Option<&'a str>)],
    ) -> Vec<Part<'a>> {
        let calls = message.tool_calls.iter().zip(ids);
        if let Some(native) = native_parts(message) {
            return self.native(native, calls);
        }
        let mut parts = self.blocks.parts(message.content.as_ref());
        let last = parts.last_mut();
        if let Some(Part::Text {
            thought_signature, ..
        }) = last
        {
            *thought_signature = signature_of_text(message).and_then(|own| self.sendable(own));
        }
        parts.extend(
            calls.map(|(call, (id, beside))| {
                self.call(call, id, signature_of_call(call).or(*beside))
            }),
        );
        parts
    }

    fn native<'i>(
        &self,
        native: &'a [Value],
        mut calls: impl Iterator<Item = (&'a ToolCall, &'i (Cow<'a, str>, Option<&'a str>))>,
    ) -> Vec<Part<'a>>
    where
        'a: 'i,
    {
        let mut parts = Vec::with_capacity(native.len());
        for part in native {
            let signed = signature(part);
            if call(part).is_some() {
                // The call itself, under the names of this request.
                if let Some((call, (id, _))) = calls.next() {
                    parts.push(self.call(call, id, signed));
                }
                continue;
            }
            // What it thought is a summary, and an empty text is refused; signatures go back.
            let is_needless = is_thought(part) || text(part).is_some_and(str::is_empty);
            match self.rules.signatures {
                _ if signed.is_none() && is_needless => {}
                Signatures::StandIn if signed.is_some() => {
                    let said = text(part).filter(|said| !said.is_empty() && !is_thought(part));
                    parts.extend(said.map(Part::text));
                }
                _ => parts.push(Part::Native(part)),
            }
        }
        parts
    }

    fn call(&self, call: &'a ToolCall, id: &Cow<'a, str>, signed: Option<&'a str>) -> Part<'a> {
        let function = &call.function;
        let args = self
            .functions
            .wire_arguments(&function.name, &function.arguments);
        Part::FunctionCall {
            function_call: Call {
                id: self.wire_id(id),
                name: self.functions.names.wire(&function.name),
                // What is sendable is JSON.
                args: RawValue::from_string(args.into_owned()).unwrap_or_default(),
            },
            thought_signature: signed.and_then(|own| self.sendable(own)),
        }
    }

    fn wire_id(&self, id: &Cow<'a, str>) -> Option<Cow<'a, str>> {
        self.rules.abilities.signed_calls.then(|| id.clone())
    }

    fn sendable<'s>(&self, own: &'s str) -> Option<&'s str> {
        (self.rules.signatures == Signatures::Own).then_some(own)
    }

    /// The first call of a step needs a signature, also where another model made it.
    fn sign_first_call(&self, parts: &mut [Part<'a>]) {
        let first = parts.iter_mut().find_map(|part| match part {
            Part::FunctionCall {
                thought_signature, ..
            } => Some(thought_signature),
            _ => None,
        });
        if let Some(signature) = first.filter(|_| self.rules.abilities.signed_calls) {
            signature.get_or_insert(STAND_IN);
        }
    }
}

fn holds_responses(turn: &Turn<'_>) -> bool {
    turn.parts.iter().any(Part::is_response)
}

fn joined<'a>(texts: Vec<Part<'a>>) -> Cow<'a, str> {
    let mut texts: Vec<Cow<'a, str>> = texts
        .into_iter()
        .filter_map(|part| match part {
            Part::Text { text, .. } => Some(text),
            _ => None,
        })
        .collect();
    match texts.len() {
        1 => texts.swap_remove(0),
        _ => Cow::Owned(texts.join("\n")),
    }
}

/// An id, and the signature that the reference implementation hung on it.
fn without_signature<'a>(id: &Cow<'a, str>) -> (Cow<'a, str>, Option<&'a str>) {
    match id {
        Cow::Borrowed(id) => match id.split_once(BESIDE_ID) {
            Some((id, signature)) => (Cow::Borrowed(id), Some(signature)),
            None => (Cow::Borrowed(id), None),
        },
        Cow::Owned(id) => (Cow::Owned(id.clone()), None),
    }
}

fn signature_of_call(call: &ToolCall) -> Option<&str> {
    let fields = call.extra.get("provider_specific_fields")?;
    fields.get("thought_signature")?.as_str()
}

/// The signature among those of the turn that is of none of its calls.
fn signature_of_text(message: &Message) -> Option<&str> {
    let fields = message.extra.get("provider_specific_fields")?;
    let all = fields.get("thought_signatures")?.as_array()?;
    let is_free = |one: &&str| {
        message
            .tool_calls
            .iter()
            .all(|call| signature_of_call(call) != Some(*one))
    };
    all.iter().filter_map(Value::as_str).find(is_free)
}

/// The parts of the turn as they came, if it still says what they say.
fn native_parts(message: &Message) -> Option<&[Value]> {
    let fields = message.extra.get("provider_specific_fields")?;
    let native = fields.get(NATIVE_PARTS)?.as_array()?;
    let said = native.iter().filter(|part| !is_thought(part));
    let said: String = said.filter_map(text).collect();
    let calls = native.iter().filter(|part| call(part).is_some()).count();
    // Somebody may have changed the turn since, by cutting it off for instance: then that counts.
    let unchanged = said == message.text() && calls == message.tool_calls.len();
    unchanged.then_some(native)
}
