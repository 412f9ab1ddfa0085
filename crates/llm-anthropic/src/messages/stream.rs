//! A message out of its stream of events (`spec/llm.md` §18.7).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use llm_wire::exchange::Step;
use llm_wire::{Delta, DeltaSink};

/// Most blocks of a message.
const MOST_BLOCKS: usize = 10_000;

/// A message that grows event by event to what the same request would have got at once.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    message: Value,
    blocks: Vec<Value>,
    /// Arguments of calls as they are written, by the place of their block.
    arguments: BTreeMap<usize, String>,
    is_whole: bool,
}

impl Growing {
    /// Takes one event. The error is a sentence about what is wrong with it.
    pub(crate) fn push(&mut self, data: &str, sink: Option<DeltaSink<'_>>) -> Result<Step, String> {
        let event: Value = serde_json::from_str(data)
            .map_err(|error| format!("an event of the stream is no JSON: {error}"))?;
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let message = event.get("message").filter(|message| message.is_object());
                self.message = message.ok_or("`message_start` has no message")?.clone();
            }
            Some("content_block_start") => {
                let block = event.get("content_block").cloned();
                self.start(
                    &event,
                    block.ok_or("`content_block_start` has no block")?,
                    sink,
                )?;
            }
            Some("content_block_delta") => {
                let index = self.index(&event)?;
                let delta = event
                    .get("delta")
                    .ok_or("`content_block_delta` has no delta")?;
                self.grow(index, delta, sink);
            }
            Some("content_block_stop") => {
                let index = self.index(&event)?;
                self.close(index);
            }
            Some("message_delta") => self.end(&event),
            Some("message_stop") => {
                self.is_whole = true;
                return Ok(Step::Done(()));
            }
            Some("error") => return Ok(Step::Failed(event)),
            // `ping`, and what is still to be invented.
            _ => {}
        }
        Ok(Step::Going)
    }

    /// The message as it would have come at once, and the arguments of its calls as they were written.
    pub(crate) fn finish(mut self) -> Result<(Value, BTreeMap<usize, String>), String> {
        if !self.is_whole {
            return Err("the stream ended before the message was whole".to_owned());
        }
        if !self.message.is_object() {
            return Err("the stream had no `message_start`".to_owned());
        }
        self.message["content"] = Value::Array(self.blocks);
        Ok((self.message, self.arguments))
    }

    fn start(
        &mut self,
        event: &Value,
        block: Value,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<(), String> {
        let index = event.get("index").and_then(Value::as_u64);
        let next = self.blocks.len();
        if index != Some(next as u64) || next == MOST_BLOCKS {
            return Err(format!(
                "block number {} of the stream comes where number {next} is due",
                index.map_or_else(|| "unknown".to_owned(), |index| index.to_string())
            ));
        }
        if is_call(&block)
            && let Some(sink) = sink
        {
            let name = block.get("name").and_then(Value::as_str);
            sink(Delta::Call {
                index: self.calls_before(next),
                name: name.unwrap_or_default(),
            });
        }
        self.blocks.push(block);
        Ok(())
    }

    /// How many calls stand before the block `index`.
    fn calls_before(&self, index: usize) -> usize {
        self.blocks[..index]
            .iter()
            .filter(|block| is_call(block))
            .count()
    }

    fn index(&self, event: &Value) -> Result<usize, String> {
        event
            .get("index")
            .and_then(Value::as_u64)
            .and_then(|index| usize::try_from(index).ok())
            .filter(|index| *index < self.blocks.len())
            .ok_or_else(|| "an event of the stream is about a block that was not begun".to_owned())
    }

    fn grow(&mut self, index: usize, delta: &Value, sink: Option<DeltaSink<'_>>) {
        let said = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let tell = |delta: Delta<'_>| {
            if let Some(sink) = sink {
                sink(delta);
            }
        };
        let is_call = is_call(&self.blocks[index]);
        let place = self.calls_before(index);
        let block = &mut self.blocks[index];
        match said("type") {
            "text_delta" => {
                append(block, "text", said("text"));
                tell(Delta::Text(said("text")));
            }
            "thinking_delta" => {
                append(block, "thinking", said("thinking"));
                tell(Delta::Reasoning(said("thinking")));
            }
            "signature_delta" => append(block, "signature", said("signature")),
            "citations_delta" => {
                if let (Some(fields), Some(citation)) =
                    (block.as_object_mut(), delta.get("citation"))
                {
                    let list = fields.entry("citations").or_insert(Value::Null);
                    match list {
                        Value::Array(list) => list.push(citation.clone()),
                        other => *other = json!([citation]),
                    }
                }
            }
            "input_json_delta" => {
                let written = self.arguments.entry(index).or_default();
                written.push_str(said("partial_json"));
                if is_call {
                    tell(Delta::Arguments {
                        index: place,
                        text: said("partial_json"),
                    });
                }
            }
            _ => {}
        }
    }

    /// What was written of a call's arguments becomes its input, if it is JSON.
    fn close(&mut self, index: usize) {
        let input = self
            .arguments
            .get(&index)
            .and_then(|written| serde_json::from_str::<Value>(written).ok());
        if let (Some(input), Some(block)) = (input, self.blocks[index].as_object_mut()) {
            block.insert("input".to_owned(), input);
        }
    }

    fn end(&mut self, event: &Value) {
        let Some(message) = self.message.as_object_mut() else {
            return;
        };
        let ends = event.get("delta").and_then(Value::as_object);
        for (key, value) in ends.into_iter().flatten() {
            message.insert(key.clone(), value.clone());
        }
        let counts = event.get("usage").and_then(Value::as_object);
        if let Some(counts) = counts {
            let usage = message.entry("usage").or_insert_with(|| json!({}));
            if let Some(usage) = usage.as_object_mut() {
                // The counts are those of the whole message so far.
                let told = counts.iter().filter(|(_, value)| !value.is_null());
                usage.extend(told.map(|(key, value)| (key.clone(), value.clone())));
            }
        }
    }
}

fn is_call(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("tool_use")
}

fn append(block: &mut Value, key: &str, text: &str) {
    let Some(fields) = block.as_object_mut() else {
        return;
    };
    match fields.get_mut(key) {
        Some(Value::String(earlier)) => earlier.push_str(text),
        _ => {
            fields.insert(key.to_owned(), text.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spoiled_events_do_no_harm() {
        let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let call = json!({"type": "tool_use", "id": "1", "name": "f", "input": {}});
        let events = [
            json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}),
            start(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
            delta(0, json!({"type": "signature_delta", "signature": "s"})),
            json!({"type": "content_block_stop", "index": 0}),
            start(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "a"})),
            delta(1, json!({"type": "citations_delta", "citation": {}})),
            start(2, call),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{}"})),
            json!({"type": "content_block_stop", "index": 2}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ];
        llm_vectors::check_spoiled_events(&events, Growing::default, |growing, event| {
            let ends = matches!(growing.push(event, Some(&|_| {})), Ok(Step::Done(())));
            if ends {
                drop(std::mem::take(growing).finish());
            }
        });
    }
}
