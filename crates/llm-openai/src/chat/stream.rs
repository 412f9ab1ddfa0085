//! A chat completion out of its stream of chunks (`spec/llm.md` §17.4).

use formats::Object;
use serde_json::{Value, json};

use llm_wire::exchange::Step;
use llm_wire::{Delta, DeltaSink};

/// Most calls of a reply.
const MOST_CALLS: usize = 10_000;

/// A chat completion that grows chunk by chunk to what the same request would have got at once.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// The first chunk, which has the fields of all.
    head: Object,
    message: Object,
    calls: Vec<Value>,
    finish_reason: Value,
    usage: Option<Value>,
}

impl Growing {
    /// Takes the data of one event. The error is a sentence about what is wrong with it.
    pub(super) fn push(&mut self, data: &str, sink: Option<DeltaSink<'_>>) -> Result<Step, String> {
        if data.trim() == "[DONE]" {
            return Ok(Step::Done(()));
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|error| format!("a chunk of the stream is no JSON: {error}"))?;
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Ok(Step::Failed(chunk));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        if let Some(choice) = chunk.pointer("/choices/0") {
            if let Some(reason) = choice
                .get("finish_reason")
                .filter(|reason| !reason.is_null())
            {
                self.finish_reason = reason.clone();
            }
            let delta = choice.get("delta").and_then(Value::as_object);
            for (key, value) in delta.into_iter().flatten() {
                self.grow(key, value, sink)?;
            }
        }
        if self.head.is_empty()
            && let Value::Object(head) = chunk
        {
            self.head = head;
        }
        Ok(Step::Going)
    }

    /// Whether the model said that it stopped, so that an end without a mark is an end.
    pub(super) fn has_stopped(&self) -> bool {
        !self.finish_reason.is_null()
    }

    /// The reply as it would have come at once.
    pub(super) fn finish(mut self) -> Value {
        if !self.calls.is_empty() {
            self.message
                .insert("tool_calls".to_owned(), self.calls.into());
        }
        let mut whole = self.head;
        whole.insert("object".to_owned(), "chat.completion".into());
        let choice = json!({
            "index": 0,
            "message": self.message,
            "finish_reason": self.finish_reason,
        });
        whole.insert("choices".to_owned(), json!([choice]));
        if let Some(usage) = self.usage {
            whole.insert("usage".to_owned(), usage);
        }
        whole.into()
    }

    fn grow(
        &mut self,
        key: &str,
        value: &Value,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<(), String> {
        match (key, value) {
            ("tool_calls", Value::Array(pieces)) => {
                for piece in pieces {
                    self.grow_call(piece, sink)?;
                }
            }
            ("content" | "refusal" | "reasoning_content" | "reasoning", Value::String(text)) => {
                if let Some(sink) = sink.filter(|_| !text.is_empty()) {
                    match key {
                        "content" | "refusal" => sink(Delta::Text(text)),
                        _ => sink(Delta::Reasoning(text)),
                    }
                }
                append(&mut self.message, key, text);
            }
            // The role and what else there is: the last word counts, and nothing is no word.
            (_, Value::Null) => {}
            (_, value) => drop(self.message.insert(key.to_owned(), value.clone())),
        }
        Ok(())
    }

    fn grow_call(&mut self, piece: &Value, sink: Option<DeltaSink<'_>>) -> Result<(), String> {
        let last = self.calls.len().saturating_sub(1);
        // Some servers leave the number out where there is one call.
        let index = match piece.get("index").and_then(Value::as_u64) {
            Some(index) => usize::try_from(index).unwrap_or(usize::MAX),
            None => last,
        };
        if index > self.calls.len() || index >= MOST_CALLS {
            return Err(format!(
                "call number {index} of the stream comes where number {} is due",
                self.calls.len()
            ));
        }
        let function = piece.get("function").and_then(Value::as_object);
        let said = |key: &str| {
            let text = function.and_then(|function| function.get(key)?.as_str());
            text.unwrap_or_default()
        };
        if index == self.calls.len() {
            self.calls.push(json!({
                "id": "", "type": "function", "function": {"name": "", "arguments": ""}
            }));
            if let Some(sink) = sink {
                sink(Delta::Call {
                    index,
                    name: said("name"),
                });
            }
        }
        let Some(call) = self.calls[index].as_object_mut() else {
            return Ok(());
        };
        for (key, value) in piece.as_object().into_iter().flatten() {
            let is_own = matches!(key.as_str(), "index" | "function");
            let is_nothing = value.is_null() || value == "";
            if !is_own && !is_nothing {
                call.insert(key.clone(), value.clone());
            }
        }
        if let Some(written) = call.get_mut("function").and_then(Value::as_object_mut) {
            append(written, "name", said("name"));
            append(written, "arguments", said("arguments"));
        }
        if let Some(sink) = sink.filter(|_| !said("arguments").is_empty()) {
            sink(Delta::Arguments {
                index,
                text: said("arguments"),
            });
        }
        Ok(())
    }
}

fn append(object: &mut Object, key: &str, text: &str) {
    match object.get_mut(key) {
        Some(Value::String(earlier)) => earlier.push_str(text),
        _ => drop(object.insert(key.to_owned(), text.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(chunks: &[Value]) -> Value {
        let mut growing = Growing::default();
        for chunk in chunks {
            assert_eq!(growing.push(&chunk.to_string(), None), Ok(Step::Going));
        }
        growing.finish()
    }

    fn chunk(delta: &Value) -> Value {
        json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta}]})
    }

    #[test]
    fn pieces_become_one_answer() {
        let call = |index: u32, more: Value| {
            let mut call = json!({ "index": index });
            call.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            chunk(&json!({"tool_calls": [call]}))
        };
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 1}});
        let whole = grown(&[
            chunk(&json!({"role": "assistant", "content": "", "reasoning_content": "h"})),
            chunk(&json!({"reasoning_content": "m"})),
            chunk(&json!({"content": "a"})),
            chunk(&json!({"content": "b", "tool_calls": null})),
            call(
                0,
                json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}),
            ),
            call(0, json!({"function": {"arguments": "{\"a\""}})),
            call(
                1,
                json!({"id": "2", "function": {"name": "g", "arguments": "{}"}}),
            ),
            call(0, json!({"id": "", "function": {"arguments": ": 1}"}})),
            end,
            usage,
        ]);
        let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
        assert_eq!(
            whole,
            json!({
                "id": "c", "object": "chat.completion", "model": "m",
                "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                    "role": "assistant", "content": "ab", "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": function("f", "{\"a\": 1}")},
                        {"id": "2", "type": "function", "function": function("g", "{}")}
                    ]
                }}],
                "usage": {"prompt_tokens": 1}
            })
        );
    }

    #[test]
    fn spoiled_events_do_no_harm() {
        let call = json!({"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}});
        let more = json!({"index": 0, "function": {"arguments": "}"}});
        let events = [
            chunk(&json!({"role": "assistant", "content": "a", "reasoning_content": "h"})),
            chunk(&json!({"content": "b", "tool_calls": [call]})),
            chunk(&json!({"tool_calls": [more]})),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 1}}),
        ];
        llm_vectors::check_spoiled_events(&events, Growing::default, |growing, event| {
            drop(growing.push(event, Some(&|_| {})));
            std::mem::take(growing).finish();
        });
        llm_vectors::check_spoiled_events(&events, Growing::default, |growing, event| {
            drop(growing.push(event, Some(&|_| {})));
        });
    }

    #[test]
    fn what_is_wrong_is_told() {
        let mut growing = Growing::default();
        assert!(growing.push("{", None).is_err());
        let far = chunk(&json!({"tool_calls": [{"index": 2}]}));
        assert!(
            growing
                .push(&far.to_string(), None)
                .unwrap_err()
                .contains("number 2")
        );
        let error = json!({"error": {"message": "m"}});
        assert_eq!(
            growing.push(&error.to_string(), None),
            Ok(Step::Failed(error))
        );
        assert!(!growing.has_stopped());
        assert_eq!(growing.push("[DONE]", None), Ok(Step::Done(())));
    }
}
