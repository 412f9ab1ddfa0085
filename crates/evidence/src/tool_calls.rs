//! The tool calls of a trajectory with their outputs (`spec/grading.md` §2.9).

use std::collections::HashMap;

use formats::chat::{Message, Role};
use serde_json::Value;

/// Stands for an output that came and was empty.
pub const EMPTY_OUTPUT: &str = "(empty output)";

/// One tool call that the agent made.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// Position among all calls of the trajectory, counted from 1.
    pub call_number: usize,
    /// The id by which the output refers to it.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// What the tool answered; [`EMPTY_OUTPUT`] for an empty answer, `None` where none came.
    pub output: Option<String>,
    /// Whether the tool itself says that it failed, where the runner recorded it.
    pub is_error: Option<bool>,
}

/// All calls in order, each with the output that names its id; of several calls with one id the
/// last one owns the output.
pub(crate) fn extract(messages: &[Message]) -> Vec<RecordedCall> {
    let mut calls: Vec<RecordedCall> = Vec::new();
    for message in messages {
        if message.role != Role::Assistant {
            continue;
        }
        for call in &message.tool_calls {
            if call.id.is_empty() || call.function.name.is_empty() {
                continue;
            }
            calls.push(RecordedCall {
                call_number: calls.len() + 1,
                tool_call_id: call.id.clone(),
                tool_name: call.function.name.clone(),
                arguments: call.function.arguments.clone(),
                output: None,
                is_error: None,
            });
        }
    }
    let by_id: HashMap<String, usize> = calls
        .iter()
        .enumerate()
        .map(|(at, call)| (call.tool_call_id.clone(), at))
        .collect();
    for message in messages {
        if message.role != Role::Tool {
            continue;
        }
        let owner = message.tool_call_id.as_ref().and_then(|id| by_id.get(id));
        if let Some(call) = owner.and_then(|at| calls.get_mut(*at)) {
            let text = message.text();
            call.output = Some(if text.is_empty() {
                EMPTY_OUTPUT.to_owned()
            } else {
                text.into_owned()
            });
            call.is_error = ["is_error", "isError"]
                .iter()
                .find_map(|key| message.extra.get(*key).and_then(Value::as_bool));
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use formats::chat::{Block, Content, ToolCall};

    use super::*;

    fn asks(calls: &[(&str, &str)]) -> Message {
        let mut message = Message::assistant("");
        message.content = None;
        message.tool_calls = calls
            .iter()
            .map(|(id, name)| ToolCall::new(*id, *name, "{}"))
            .collect();
        message
    }

    #[test]
    fn calls_are_numbered_and_own_their_outputs() {
        let mut blocks = Message::tool("c2", "b", "");
        blocks.content = Some(Content::Blocks(vec![
            Block::text("one"),
            Block::image_url("data:,"),
            Block::text("two"),
        ]));
        let calls = extract(&[
            asks(&[("c1", "a"), ("", "no id"), ("c2", "b"), ("c3", "")]),
            Message::tool("c1", "a", ""),
            blocks,
            Message::tool("unknown", "x", "nobody's"),
            asks(&[("c4", "a")]),
        ]);
        let seen: Vec<(usize, &str, Option<&str>)> = calls
            .iter()
            .map(|call| {
                (
                    call.call_number,
                    call.tool_name.as_str(),
                    call.output.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (1, "a", Some(EMPTY_OUTPUT)),
                (2, "b", Some("one\ntwo")),
                (3, "a", None)
            ]
        );
    }

    #[test]
    fn of_calls_with_one_id_the_later_owns_the_output() {
        let calls = extract(&[
            asks(&[("same", "first")]),
            asks(&[("same", "second")]),
            Message::tool("same", "x", "out"),
        ]);
        assert_eq!(calls[0].output, None);
        assert_eq!(calls[1].output.as_deref(), Some("out"));
    }
}
