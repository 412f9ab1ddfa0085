//! Event streams of servers: the events are the same however the body is cut, and none is above the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/mcp-gateway/src/backend/sse.rs"]
#[allow(dead_code, unreachable_pub)]
mod sse;

use sse::{SseDecoder, SseEvent};

const LIMIT: usize = 64;

/// Events, the id to resume from and the wait, up to an event that is too long.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Option<(Vec<SseEvent>, Option<String>, Option<u64>)> {
    let mut decoder = SseDecoder::new(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.feed(piece).ok()?);
    }
    Some((events, decoder.last_id, decoder.retry_ms))
}

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (body, size) = input;
    let whole = decode(std::iter::once(body.as_slice()));
    let cut = decode(body.chunks(usize::from(size).max(1)));
    assert_eq!(whole, cut);
    for event in whole.iter().flat_map(|(events, _, _)| events) {
        // Bytes that are no text become three each.
        assert!(event.data.len() <= 3 * LIMIT && event.kind.len() <= 3 * LIMIT, "{event:?}");
        assert!(!event.data.is_empty() && !event.kind.is_empty());
    }
});
