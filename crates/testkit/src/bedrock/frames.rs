//! AWS's event streams: frames of headers and a payload, with their lengths and check sums.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

/// The type of a header's value: a text.
const TEXT: u8 = 7;

/// A frame with `headers` and the payload `payload`.
pub(super) fn frame(headers: &[(&str, &str)], payload: &Value) -> Bytes {
    let mut head = BytesMut::new();
    for (name, value) in headers {
        head.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
        head.put_slice(name.as_bytes());
        head.put_u8(TEXT);
        head.put_u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
        head.put_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    // Two lengths, a check sum of these, and a check sum of all at the end.
    let mut frame = BytesMut::new();
    frame.put_u32(length(16 + head.len() + payload.len()));
    frame.put_u32(length(head.len()));
    frame.put_u32(crc32fast::hash(&frame));
    frame.put_slice(&head);
    frame.put_slice(payload.as_bytes());
    frame.put_u32(crc32fast::hash(&frame));
    frame.freeze()
}

/// The event `name`.
pub(super) fn event(name: &str, payload: &Value) -> Bytes {
    let headers = [
        (":event-type", name),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, payload)
}

/// The exception `name`.
pub(super) fn exception(name: &str, payload: &Value) -> Bytes {
    let headers = [
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    frame(&headers, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_as_the_format_has_it() {
        // Worked out by hand: the header `a: b` takes 1 + 1 + 1 + 2 + 1 bytes, the payload `1` one.
        let frame = frame(&[("a", "b")], &Value::from(1));
        assert_eq!(frame[..8], [0, 0, 0, 23, 0, 0, 0, 6]);
        assert_eq!(frame[12..19], [1, b'a', 7, 0, 1, b'b', b'1']);
        assert_eq!(frame.len(), 23);
        // Nothing but the check sum of all that stands before it.
        assert_eq!(frame[19..], crc32fast::hash(&frame[..19]).to_be_bytes());
    }
}
