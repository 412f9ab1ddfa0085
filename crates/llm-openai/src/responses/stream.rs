//! A response out of its stream of events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::conversation::is_call;
use llm_wire::exchange::Step;
use llm_wire::{Delta, DeltaSink};

/// Most items of a response.
const MOST_ITEMS: usize = 10_000;

/// A response that grows event by event.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// Whole items by their place, for servers that leave them out at the end.
    items: BTreeMap<u64, Value>,
    /// The places of calls, in the order in which they began.
    calls: Vec<u64>,
}

impl Growing {
    /// Takes one event. The error is a sentence about what is wrong with it.
    pub(super) fn push(
        &mut self,
        data: &str,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Step<Value>, String> {
        if data.trim() == "[DONE]" {
            return Ok(Step::Going);
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| format!("an event of the stream is no JSON: {error}"))?;
        let place = event.get("output_index").and_then(Value::as_u64);
        let piece = event
            .get("delta")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let tell = |delta: Delta<'_>| {
            if let Some(sink) = sink {
                sink(delta);
            }
        };
        match event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "response.output_item.added" => {
                let item = event.get("item").filter(|item| is_call(item));
                if let (Some(item), Some(place)) = (item, place) {
                    tell(Delta::Call {
                        index: self.calls.len(),
                        name: item.get("name").and_then(Value::as_str).unwrap_or_default(),
                    });
                    self.limited(self.calls.len())?;
                    self.calls.push(place);
                }
            }
            "response.output_item.done" => {
                if let (Some(place), Some(item)) = (place, event.get("item")) {
                    self.limited(self.items.len())?;
                    self.items.insert(place, item.clone());
                }
            }
            "response.output_text.delta" | "response.refusal.delta" => tell(Delta::Text(piece)),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                tell(Delta::Reasoning(piece));
            }
            "response.function_call_arguments.delta" => {
                let index = self.calls.iter().position(|call| Some(*call) == place);
                if let Some(index) = index {
                    tell(Delta::Arguments { index, text: piece });
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.finish(event);
            }
            "error" => return Ok(Step::Failed(told(event))),
            // Progress, and what is still to be invented.
            _ => {}
        }
        Ok(Step::Going)
    }

    fn limited(&self, count: usize) -> Result<(), String> {
        if count < MOST_ITEMS {
            return Ok(());
        }
        Err(format!("the response has more than {MOST_ITEMS} items"))
    }

    fn finish(&mut self, mut event: Value) -> Result<Step<Value>, String> {
        let response = event.get_mut("response").map(Value::take);
        let mut response = response
            .filter(Value::is_object)
            .ok_or("the last event of the stream has no `response`")?;
        let has_output = response
            .get("output")
            .and_then(Value::as_array)
            .is_some_and(|output| !output.is_empty());
        if !has_output {
            let items = std::mem::take(&mut self.items);
            response["output"] = items.into_values().collect();
        }
        Ok(Step::Done(response))
    }
}

/// The error of an event, under the key where errors stand elsewhere.
fn told(mut event: Value) -> Value {
    match event.get_mut("error").map(Value::take) {
        Some(error) if error.is_object() => json!({ "error": error }),
        _ => {
            if let Some(fields) = event.as_object_mut() {
                fields.shift_remove("type");
            }
            json!({ "error": event })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_the_end_leaves_out_are_those_that_came() {
        let mut growing = Growing::default();
        let item = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        for (place, text) in [(1, "b"), (0, "a")] {
            let event = json!({"type": "response.output_item.done", "output_index": place, "item": item(text)});
            assert_eq!(growing.push(&event.to_string(), None), Ok(Step::Going));
        }
        assert_eq!(growing.push("[DONE]", None), Ok(Step::Going));
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": []}});
        let Ok(Step::Done(response)) = growing.push(&end.to_string(), None) else {
            panic!("not done");
        };
        assert_eq!(response["output"], json!([item("a"), item("b")]));
    }

    #[test]
    fn spoiled_events_do_no_harm() {
        let call = json!({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"});
        let events = [
            json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "h"}),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "a"}),
            json!({"type": "response.output_item.added", "output_index": 2, "item": call}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "{}"}),
            json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
            json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
        ];
        llm_vectors::check_spoiled_events(&events, Growing::default, |growing, event| {
            drop(growing.push(event, Some(&|_| {})));
        });
    }

    #[test]
    fn errors_are_read_flat_and_nested() {
        let flat =
            json!({"type": "error", "code": "server_error", "message": "m", "sequence_number": 3});
        let nested = json!({"type": "error", "error": {"type": "server_error", "message": "m"}});
        for (event, key) in [(flat, "code"), (nested, "type")] {
            let Ok(Step::Failed(error)) = Growing::default().push(&event.to_string(), None) else {
                panic!("{event}");
            };
            assert_eq!(error["error"][key], "server_error");
        }
        assert!(Growing::default().push("{", None).is_err());
    }
}
