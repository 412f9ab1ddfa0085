//! An answer out of its stream: each event is an answer with some more parts.

use serde_json::{Value, json};

use super::wire::{call, is_thought, signature, text};
use llm_wire::exchange::Step;
use llm_wire::{Delta, DeltaSink};

/// Most parts of an answer.
const MOST_PARTS: usize = 100_000;

/// An answer that grows event by event to what the same request would have got at once.
#[derive(Debug, Default)]
pub(super) struct Growing {
    answer: Value,
    candidates: Vec<Candidate>,
    is_whole: bool,
}

#[derive(Debug, Default)]
struct Candidate {
    fields: Value,
    parts: Vec<Value>,
    calls: usize,
}

impl Growing {
    /// Takes one event. The error is a sentence about what is wrong with it.
    pub(super) fn push(&mut self, data: &str, sink: Option<DeltaSink<'_>>) -> Result<Step, String> {
        let mut event: Value = serde_json::from_str(data)
            .map_err(|error| format!("an event of the stream is no JSON: {error}"))?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Ok(Step::Failed(event));
        }
        let candidates = event.get_mut("candidates").map(Value::take);
        self.is_whole |= event.pointer("/promptFeedback/blockReason").is_some();
        take_over(&mut self.answer, event);
        let Some(Value::Array(candidates)) = candidates else {
            return Ok(Step::Going);
        };
        for mut one in candidates {
            let index = one.get("index").and_then(Value::as_u64).unwrap_or(0);
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if index > self.candidates.len() {
                return Err(format!("candidate {index} of the stream comes too early"));
            }
            if index == self.candidates.len() {
                self.candidates.push(Candidate::default());
            }
            let parts = one.pointer_mut("/content/parts").map(Value::take);
            let candidate = &mut self.candidates[index];
            if let Some(Value::Array(parts)) = parts {
                for part in parts {
                    candidate.add(part, sink.filter(|_| index == 0));
                }
            }
            if candidate.parts.len() > MOST_PARTS {
                return Err(format!("the answer has more than {MOST_PARTS} parts"));
            }
            let has_reason = one.get("finishReason").is_some_and(Value::is_string);
            self.is_whole |= has_reason && index == 0;
            take_over(&mut candidate.fields, one);
        }
        Ok(Step::Going)
    }

    /// The answer as it would have come at once; `None` if its end is missing.
    pub(super) fn finish(self) -> Option<Value> {
        if !self.is_whole {
            return None;
        }
        let mut answer = self.answer;
        if !self.candidates.is_empty() {
            let whole = |candidate: Candidate| {
                let mut fields = candidate.fields;
                fields["content"] = json!({"role": "model", "parts": candidate.parts});
                fields
            };
            answer["candidates"] = self.candidates.into_iter().map(whole).collect();
        }
        Some(answer)
    }
}

impl Candidate {
    fn add(&mut self, part: Value, sink: Option<DeltaSink<'_>>) {
        let tell = |delta: Delta<'_>| {
            if let Some(sink) = sink {
                sink(delta);
            }
        };
        if let Some(native) = call(&part) {
            let index = self.calls;
            self.calls += 1;
            let name = native.get("name").and_then(Value::as_str);
            tell(Delta::Call {
                index,
                name: name.unwrap_or_default(),
            });
            // Calls come whole.
            let arguments = native
                .get("args")
                .map_or_else(|| "{}".to_owned(), Value::to_string);
            tell(Delta::Arguments {
                index,
                text: &arguments,
            });
        } else if let Some(words) = text(&part).filter(|words| !words.is_empty()) {
            tell(if is_thought(&part) {
                Delta::Reasoning(words)
            } else {
                Delta::Text(words)
            });
        }
        match self.parts.last_mut() {
            Some(last) if goes_on(last, &part) => {
                if let (Some(Value::String(earlier)), Some(more)) =
                    (last.get_mut("text"), text(&part))
                {
                    earlier.push_str(more);
                }
            }
            _ => self.parts.push(part),
        }
    }
}

/// Whether `part` is more of the text in `last`. What is signed stays by itself.
fn goes_on(last: &Value, part: &Value) -> bool {
    let is_plain = |part: &Value| {
        let fields = part.as_object();
        let known = |key: &String| matches!(key.as_str(), "text" | "thought");
        text(part).is_some()
            && signature(part).is_none()
            && fields.is_some_and(|fields| fields.keys().all(known))
    };
    is_plain(last) && is_plain(part) && is_thought(last) == is_thought(part)
}

/// Takes over the fields of `newer`; what it leaves out or nulls stays.
fn take_over(older: &mut Value, newer: Value) {
    let Value::Object(newer) = newer else { return };
    if !older.is_object() {
        *older = json!({});
    }
    if let Some(fields) = older.as_object_mut() {
        fields.extend(newer.into_iter().filter(|(_, value)| !value.is_null()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_grow_and_signed_parts_stay_apart() {
        let mut growing = Growing::default();
        let chunk = |parts: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]});
        for parts in [
            json!([{"text": "I ", "thought": true}]),
            json!([{"text": "think", "thought": true}]),
            json!([{"text": "a"}]),
            json!([{"text": "b"}, {"text": "", "thoughtSignature": "s"}]),
            json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "t"}]),
        ] {
            growing.push(&chunk(parts).to_string(), None).unwrap();
        }
        let end = json!({
            "candidates": [{"index": 0, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1}, "modelVersion": "m"
        });
        growing.push(&end.to_string(), None).unwrap();
        assert_eq!(
            growing.finish().unwrap(),
            json!({
                "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                    {"text": "I think", "thought": true},
                    {"text": "ab"},
                    {"text": "", "thoughtSignature": "s"},
                    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "t"}
                ]}}],
                "usageMetadata": {"promptTokenCount": 1}, "modelVersion": "m"
            })
        );
    }

    #[test]
    fn spoiled_events_do_no_harm() {
        let chunk = |parts: Value| json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}]});
        let call = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "t"});
        let events = [
            chunk(json!([{"text": "I ", "thought": true}])),
            chunk(json!([{"text": "b"}, {"text": "", "thoughtSignature": "s"}])),
            chunk(json!([call])),
            json!({"candidates": [{"index": 0, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1}}),
        ];
        llm_vectors::check_spoiled_events(&events, Growing::default, |growing, event| {
            drop(growing.push(event, Some(&|_| {})));
            if growing.is_whole {
                std::mem::take(growing).finish();
            }
        });
    }

    #[test]
    fn without_a_reason_the_end_is_missing() {
        let mut growing = Growing::default();
        let event = json!({"candidates": [{"content": {"parts": [{"text": "a"}]}}]});
        growing.push(&event.to_string(), None).unwrap();
        assert_eq!(growing.finish(), None);
        let mut blocked = Growing::default();
        let event = json!({"promptFeedback": {"blockReason": "SAFETY"}});
        blocked.push(&event.to_string(), None).unwrap();
        assert_eq!(blocked.finish(), Some(event));
    }
}
