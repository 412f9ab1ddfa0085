//! A message out of a stream of frames (ConverseStream).
//!
//! The frames are AWS's event streams: a length, headers, a payload, check sums. Each event says what
//! one of Anthropic's says, so the message grows in `providers::anthropic::stream`.

use std::collections::{BTreeMap, HashMap};

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use bytes::BytesMut;
use serde_json::{Value, json};

use super::answer::usage;
use crate::messages::stream::Growing;
use llm_wire::DeltaSink;
use llm_wire::exchange::Step;

/// A frame's event and payload.
#[derive(Debug)]
struct Frame {
    /// `event`, `exception` or `error`.
    kind: String,
    /// Which one.
    name: String,
    payload: Value,
}

/// What came so far.
#[derive(Debug, Default)]
pub(super) struct Frames {
    decoder: MessageFrameDecoder,
    buffer: BytesMut,
    growing: Growing,
    /// Places of blocks in the message, by their numbers in the stream.
    places: HashMap<u64, usize>,
    stop: Option<Value>,
    is_whole: bool,
}

impl Frames {
    /// Takes bytes of the stream. The error is a sentence about what is wrong with them.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        sink: Option<DeltaSink<'_>>,
    ) -> Result<Step, String> {
        self.buffer.extend_from_slice(bytes);
        loop {
            let decoded = self
                .decoder
                .decode_frame(&mut self.buffer)
                .map_err(|error| format!("a frame of the stream is broken: {error}"))?;
            let DecodedFrame::Complete(message) = decoded else {
                return Ok(Step::Going);
            };
            let header = |name: &str| {
                let found = message
                    .headers()
                    .iter()
                    .find(|header| header.name().as_str() == name);
                let value = found.and_then(|header| header.value().as_string().ok());
                value
                    .map(|value| value.as_str().to_owned())
                    .unwrap_or_default()
            };
            let kind = header(":message-type");
            let name = match kind.as_str() {
                "exception" => header(":exception-type"),
                "error" => header(":error-code"),
                _ => header(":event-type"),
            };
            let payload = if message.payload().is_empty() {
                json!({ "message": header(":error-message") })
            } else {
                serde_json::from_slice(message.payload())
                    .map_err(|error| format!("the event `{name}` is no JSON: {error}"))?
            };
            match self.take(
                Frame {
                    kind,
                    name,
                    payload,
                },
                sink,
            )? {
                Step::Going => {}
                other => return Ok(other),
            }
        }
    }

    /// The message in Anthropic's form, and the arguments of its calls as they were written. The error
    /// says that the stream ended too early.
    pub(super) fn finish(mut self) -> Result<(Value, BTreeMap<usize, String>), String> {
        if !self.is_whole && self.stop.is_some() {
            // The counts are missing; the message is not.
            self.event(&json!({"type": "message_stop"}), None)?;
        }
        self.growing.finish()
    }

    fn take(&mut self, frame: Frame, sink: Option<DeltaSink<'_>>) -> Result<Step, String> {
        let Frame {
            kind,
            name,
            payload,
        } = frame;
        if kind != "event" {
            let message = payload
                .get("message")
                .or_else(|| payload.get("originalMessage"));
            return Ok(Step::Failed(
                json!({"error": {"code": name, "message": message}}),
            ));
        }
        match name.as_str() {
            "messageStart" => {
                let message = json!({"role": "assistant", "content": []});
                self.event(&json!({"type": "message_start", "message": message}), sink)?;
            }
            "contentBlockStart" => {
                let start = payload.get("start").and_then(|start| start.get("toolUse"));
                if let Some(call) = start {
                    let block = json!({
                        "type": "tool_use",
                        "id": call.get("toolUseId"),
                        "name": call.get("name"),
                        "input": {},
                    });
                    self.begin(&payload, &block, sink)?;
                }
            }
            "contentBlockDelta" => self.grow(&payload, sink)?,
            "contentBlockStop" => {
                if let Some(place) = self.place(&payload) {
                    let event = json!({"type": "content_block_stop", "index": place});
                    self.event(&event, sink)?;
                }
            }
            "messageStop" => {
                let reason = payload.get("stopReason").cloned();
                let event = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
                self.event(&event, sink)?;
                self.stop = Some(reason.unwrap_or_default());
            }
            "metadata" => {
                let counts = payload.get("usage").map(usage);
                self.event(&json!({"type": "message_delta", "usage": counts}), sink)?;
                self.event(&json!({"type": "message_stop"}), sink)?;
                self.is_whole = true;
                return Ok(Step::Done(()));
            }
            // What is still to be invented.
            _ => {}
        }
        Ok(Step::Going)
    }

    fn event(&mut self, event: &Value, sink: Option<DeltaSink<'_>>) -> Result<Step, String> {
        self.growing.push(&event.to_string(), sink)
    }

    fn place(&self, payload: &Value) -> Option<usize> {
        let number = payload.get("contentBlockIndex")?.as_u64()?;
        self.places.get(&number).copied()
    }

    fn begin(
        &mut self,
        payload: &Value,
        block: &Value,
        sink: Option<DeltaSink<'_>>,
    ) -> Result<usize, String> {
        let number = payload
            .get("contentBlockIndex")
            .and_then(Value::as_u64)
            .ok_or("a block of the stream has no `contentBlockIndex`")?;
        let place = self.places.len();
        self.places.insert(number, place);
        let event = json!({"type": "content_block_start", "index": place, "content_block": block});
        self.event(&event, sink)?;
        Ok(place)
    }

    /// Blocks other than calls begin with their first piece.
    fn grow(&mut self, payload: &Value, sink: Option<DeltaSink<'_>>) -> Result<(), String> {
        let delta = payload.get("delta").unwrap_or(&Value::Null);
        let (empty, piece) = if let Some(text) = delta.get("text") {
            (
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            )
        } else if let Some(input) = delta.pointer("/toolUse/input") {
            let piece = json!({"type": "input_json_delta", "partial_json": input});
            (json!({"type": "tool_use", "input": {}}), piece)
        } else if let Some(reasoning) = delta.get("reasoningContent") {
            if let Some(data) = reasoning.get("redactedContent") {
                if self.place(payload).is_none() {
                    let block = json!({"type": "redacted_thinking", "data": data});
                    self.begin(payload, &block, sink)?;
                }
                return Ok(());
            }
            let piece = match (reasoning.get("text"), reasoning.get("signature")) {
                (Some(text), _) => json!({"type": "thinking_delta", "thinking": text}),
                (None, signature) => json!({"type": "signature_delta", "signature": signature}),
            };
            (json!({"type": "thinking", "thinking": ""}), piece)
        } else {
            return Ok(());
        };
        let place = match self.place(payload) {
            Some(place) => place,
            None => self.begin(payload, &empty, sink)?,
        };
        let event = json!({"type": "content_block_delta", "index": place, "delta": piece});
        self.event(&event, sink)?;
        Ok(())
    }
}
