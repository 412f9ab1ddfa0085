//! From a chat history to the items of the input.
//!
//! What the model thought comes back to it in the items in which it was told, unchanged and in their
//! order; OpenAI refuses a call without the reasoning that it came with.

use std::collections::VecDeque;

use formats::chat::{Message, Role, ToolCall};
use serde_json::Value;

use super::answer::{NATIVE_OUTPUT, spoken};
use super::items::{Item, Said};
use super::parts::{output, said};
use llm_wire::repair::{Entry, NO_RESULT, ToolNames, WireIds, mended, sendable_arguments};

/// Longest id of a call.
const LONGEST_ID: usize = 64;

/// Translates `messages`.
pub(super) fn conversation<'a>(messages: &'a [Message], names: &'a ToolNames) -> Vec<Item<'a>> {
    let mut ids = WireIds::new(LONGEST_ID);
    let mut open = VecDeque::new();
    let mut items = Vec::new();
    for entry in mended(messages) {
        match entry {
            Entry::Message(message) if message.role == Role::Assistant => {
                push_assistant(&mut items, message, &[], names);
            }
            Entry::Message(message) => items.push(Item::Message {
                role: role(&message.role),
                content: said(message.content.as_ref()),
            }),
            Entry::Calls {
                message,
                ids: given,
            } => {
                let wire: Vec<String> = given.iter().map(|id| ids.wire(id)).collect();
                push_assistant(&mut items, message, &wire, names);
                open.extend(wire);
            }
            Entry::Result { id, message } => items.push(Item::FunctionCallOutput {
                call_id: open.pop_front().unwrap_or_else(|| id.into_owned()),
                output: message.map_or(Said::Text(NO_RESULT.into()), |message| {
                    output(message.content.as_ref())
                }),
            }),
        }
    }
    items
}

/// The roles that there are; what is said in another one is the user's.
fn role(role: &Role) -> &str {
    match role {
        Role::System | Role::Developer => role.as_str(),
        _ => "user",
    }
}

fn push_assistant<'a>(
    items: &mut Vec<Item<'a>>,
    message: &'a Message,
    ids: &[String],
    names: &'a ToolNames,
) {
    let mut calls = message.tool_calls.iter().zip(ids);
    if let Some(native) = native_output(message) {
        for item in native {
            if !is_call(item) {
                items.push(Item::Native(item));
            } else if let Some((call, id)) = calls.next() {
                items.push(same_call(item, call, id, names));
            }
        }
        return;
    }
    let text = match message.text() {
        text if !text.is_empty() => text,
        _ => message
            .extra
            .get("refusal")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into(),
    };
    if !text.is_empty() || message.tool_calls.is_empty() {
        items.push(Item::Message {
            role: Role::Assistant.as_str(),
            content: Said::Text(text),
        });
    }
    items.extend(calls.map(|(call, id)| function_call(call, id, names)));
}

/// The call as it came, or as it is called in this request.
fn same_call<'a>(item: &'a Value, call: &'a ToolCall, id: &str, names: &'a ToolNames) -> Item<'a> {
    let says = |key: &str, value: &str| item.get(key).and_then(Value::as_str) == Some(value);
    let function = &call.function;
    let is_same = says("call_id", id)
        && says("name", &names.wire(&function.name))
        && says("arguments", &sendable_arguments(&function.arguments));
    if is_same {
        Item::Native(item)
    } else {
        function_call(call, id, names)
    }
}

fn function_call<'a>(call: &'a ToolCall, id: &str, names: &'a ToolNames) -> Item<'a> {
    Item::FunctionCall {
        call_id: id.to_owned(),
        name: names.wire(&call.function.name),
        arguments: sendable_arguments(&call.function.arguments),
    }
}

/// The items of the turn as they came, if it still says what they say and they can be sent back.
fn native_output(message: &Message) -> Option<&[Value]> {
    let native = message
        .extra
        .get("provider_specific_fields")?
        .get(NATIVE_OUTPUT)?
        .as_array()?;
    let calls = native.iter().filter(|item| is_call(item)).count();
    // Somebody may have changed the turn since, by cutting it off for instance: then that counts.
    let is_unchanged =
        spoken(native).unwrap_or_default() == message.text() && calls == message.tool_calls.len();
    // Nothing is stored at OpenAI: reasoning that is not in the item itself is lost, and so are the
    // items that lean on it.
    let is_whole = native.iter().all(|item| {
        !is_reasoning(item) || item.get("encrypted_content").is_some_and(Value::is_string)
    });
    // Reasoning that nothing follows was cut off, and is refused.
    let end = native.iter().rposition(|item| !is_reasoning(item))?;
    (is_unchanged && is_whole).then_some(&native[..=end])
}

fn is_reasoning(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("reasoning")
}

pub(super) fn is_call(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("function_call")
}
