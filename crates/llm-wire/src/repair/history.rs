//! Calls and their results: exactly one result per call, in call order, directly behind it.

use std::borrow::Cow;
use std::collections::HashMap;

use formats::chat::{Content, Message, Role};

/// What stands in the place of a result that the history does not have.
pub const NO_RESULT: &str = "(no result of this call was recorded)";

/// One message of a mended history. Everything is borrowed from the history.
#[derive(Debug, PartialEq)]
pub enum Entry<'a> {
    /// A message as it is.
    Message(&'a Message),
    /// An assistant turn with calls; `ids` are the ids of its calls, all of them unique in the turn.
    Calls {
        /// The turn.
        message: &'a Message,
        /// One id per call.
        ids: Vec<Cow<'a, str>>,
    },
    /// The result of one call.
    Result {
        /// The id of the call.
        id: Cow<'a, str>,
        /// The tool message, or nothing if the history has none: then [`NO_RESULT`] is said.
        message: Option<&'a Message>,
    },
}

/// The history as providers take it.
///
/// Directly behind an assistant turn with calls stands one result per call, in call order. A missing
/// result is made up, a result without call is dropped, of two results for one call the last one
/// stays. Messages between the results move behind them. An assistant turn without any content is
/// dropped. Ids that are empty or used twice in one turn get new ones.
pub fn mended(messages: &[Message]) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let [message, behind @ ..] = rest {
        rest = behind;
        match message.role {
            Role::Tool => {}
            Role::Assistant if !message.tool_calls.is_empty() => {
                let end = behind.iter().position(has_calls).unwrap_or(behind.len());
                let (window, next) = behind.split_at(end);
                let number = messages.len() - behind.len();
                push_turn(&mut entries, message, window, number);
                rest = next;
            }
            Role::Assistant if says_nothing(message) => {}
            _ => entries.push(Entry::Message(message)),
        }
    }
    entries
}

/// Pushes the turn `message`, its results from `window`, then the other messages of `window`.
fn push_turn<'a>(
    entries: &mut Vec<Entry<'a>>,
    message: &'a Message,
    window: &'a [Message],
    number: usize,
) {
    let ids = unique_ids(message, number);
    let results = results_of(message, window);
    entries.push(Entry::Calls {
        message,
        ids: ids.clone(),
    });
    for (id, message) in ids.into_iter().zip(results) {
        entries.push(Entry::Result { id, message });
    }
    let others = window
        .iter()
        .filter(|other| other.role != Role::Tool && !says_nothing(other));
    entries.extend(others.map(Entry::Message));
}

/// The result of each call of `message`, in call order.
///
/// Calls that share an id are answered in order; where there are more results than calls, the last
/// ones count.
fn results_of<'a>(message: &Message, window: &'a [Message]) -> Vec<Option<&'a Message>> {
    if let Some(results) = results_in_order(message, window) {
        return results;
    }
    let mut by_id: HashMap<&str, Vec<&Message>> = HashMap::new();
    for result in window.iter().filter(|message| message.role == Role::Tool) {
        let id = result.tool_call_id.as_deref().unwrap_or_default();
        by_id.entry(id).or_default().push(result);
    }
    let mut open: HashMap<&str, usize> = HashMap::new();
    for call in &message.tool_calls {
        *open.entry(&call.id).or_default() += 1;
    }
    message
        .tool_calls
        .iter()
        .map(|call| {
            let results = by_id.get_mut(call.id.as_str())?;
            let wanted = open.get_mut(call.id.as_str())?;
            let surplus = results.len().saturating_sub(*wanted);
            results.drain(..surplus);
            *wanted -= 1;
            (!results.is_empty()).then(|| results.remove(0))
        })
        .collect()
}

/// The results of a turn as nearly all of them are: one per call, in call order, each with its own id.
fn results_in_order<'a>(
    message: &Message,
    window: &'a [Message],
) -> Option<Vec<Option<&'a Message>>> {
    let calls = &message.tool_calls;
    let (results, others) = window.split_at_checked(calls.len())?;
    let is_own = |(index, result): (usize, &Message)| {
        let id = calls[index].id.as_str();
        result.role == Role::Tool
            && result.tool_call_id.as_deref() == Some(id)
            && calls[..index].iter().all(|earlier| earlier.id != id)
    };
    let is_plain = results.iter().enumerate().all(is_own)
        && others.iter().all(|other| other.role != Role::Tool);
    is_plain.then(|| results.iter().map(Some).collect())
}

/// The ids of the calls of `message`, the `number`th of its conversation, none empty, none twice.
fn unique_ids(message: &Message, number: usize) -> Vec<Cow<'_, str>> {
    let calls = &message.tool_calls;
    let mut ids: Vec<Cow<'_, str>> = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        let id = call.id.as_str();
        if !id.is_empty() && calls[..index].iter().all(|earlier| earlier.id != id) {
            ids.push(Cow::Borrowed(id));
            continue;
        }
        let mut new = format!("call_{number}_{index}");
        while calls.iter().any(|call| call.id == new) {
            new.push('x');
        }
        ids.push(Cow::Owned(new));
    }
    ids
}

fn has_calls(message: &Message) -> bool {
    message.role == Role::Assistant && !message.tool_calls.is_empty()
}

/// Whether an assistant turn holds neither content nor calls nor a refusal. An empty text counts as
/// content here: some providers take it, and the others drop it themselves.
fn says_nothing(message: &Message) -> bool {
    let no_content = match &message.content {
        None => true,
        Some(Content::Blocks(blocks)) => blocks.is_empty(),
        Some(Content::Text(_)) => false,
    };
    let keeps = ["refusal", "function_call", "audio"];
    message.role == Role::Assistant
        && no_content
        && message.tool_calls.is_empty()
        && keeps.iter().all(|key| {
            message
                .extra
                .get(*key)
                .is_none_or(serde_json::Value::is_null)
        })
}

#[cfg(test)]
mod tests;
