//! Server-sent events that outlive the connection they are read over.
//!
//! Messages for a client are written into an [`EventStream`]; connections read it from a cursor.
//! Writing never waits for a reader, and a client that lost its connection goes on from the last
//! event id it saw.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;

use futures::stream;
use http::{HeaderValue, header};
use tokio::sync::Notify;

/// How long a client should wait before it connects again, in milliseconds.
const RETRY_MS: u32 = 1000;

/// The messages of one answer, or of a session as a whole.
#[derive(Debug)]
pub(crate) struct EventStream {
    number: u64,
    max_bytes: usize,
    log: Mutex<Log>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<Event>,
    bytes: usize,
    last: u64,
    /// The last place that was given to a reader.
    delivered: u64,
    dropped: u64,
    finished: bool,
}

/// One message and its place in the stream; places start at 1.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) place: u64,
    pub(crate) text: Bytes,
    is_answer: bool,
}

/// What a reader finds next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Event),
    Finished,
}

impl EventStream {
    pub(crate) fn new(number: u64, max_bytes: usize) -> Self {
        Self {
            number,
            max_bytes,
            log: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Adds a notification or a request. When the stream is full, its oldest messages go.
    pub(crate) fn push(&self, text: String) {
        self.add(text, false);
    }

    /// Adds the answer, which is never dropped, and ends the stream.
    pub(crate) fn finish(&self, text: String) {
        self.add(text, true);
    }

    /// Ends the stream without an answer.
    pub(crate) fn close(&self) {
        self.lock().finished = true;
        self.changed.notify_waiters();
    }

    fn add(&self, text: String, is_answer: bool) {
        {
            let mut log = self.lock();
            if log.finished {
                return;
            }
            log.last += 1;
            log.bytes += text.len();
            let place = log.last;
            log.events.push_back(Event {
                place,
                text: text.into(),
                is_answer,
            });
            log.finished = is_answer;
            while log.bytes > self.max_bytes && log.events.len() > 1 {
                let Some(oldest) = log.events.pop_front() else {
                    break;
                };
                log.bytes -= oldest.text.len();
                let unread = oldest.place > log.delivered;
                log.dropped += u64::from(unread);
                if unread && log.dropped == 1 {
                    tracing::warn!(
                        stream = self.number,
                        limit = self.max_bytes,
                        "the client reads too slowly: its oldest messages are dropped"
                    );
                }
            }
        }
        self.changed.notify_waiters();
    }

    /// The first message after `place`, waiting for it.
    pub(crate) async fn next(&self, place: u64) -> Next {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(next) = self.peek(place) {
                return next;
            }
            changed.await;
        }
    }

    /// Where a reader of a connection that is gone stopped.
    pub(crate) fn delivered(&self) -> u64 {
        self.lock().delivered
    }

    fn deliver(&self, place: u64) {
        let mut log = self.lock();
        log.delivered = log.delivered.max(place);
    }

    fn peek(&self, place: u64) -> Option<Next> {
        let log = self.lock();
        let index = log.events.partition_point(|event| event.place <= place);
        match log.events.get(index) {
            Some(event) => Some(Next::Event(event.clone())),
            None => log.finished.then_some(Next::Finished),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Event {
    /// Whether the event is the answer that ends its stream.
    pub(crate) const fn is_answer(&self) -> bool {
        self.is_answer
    }
}

/// Where a reader starts and what it does besides.
pub(crate) struct Reading {
    /// The place after which it starts.
    pub(crate) after: u64,
    /// Whether an event without data comes first, so that the client has an id to resume from
    /// (2025-11-25; older clients take it for a message).
    pub(crate) primed: bool,
    /// Whether events have ids, from which a client may go on that lost its connection.
    pub(crate) resumable: bool,
    /// The interval of comment lines.
    pub(crate) keep_alive: Duration,
    /// Kept until the reader goes away.
    pub(crate) held: Option<Box<dyn Send>>,
}

impl Reading {
    /// From the beginning, without a way to go on after a lost connection.
    pub(crate) fn once(keep_alive: Duration, held: Box<dyn Send>) -> Self {
        Self {
            after: 0,
            primed: false,
            resumable: false,
            keep_alive,
            held: Some(held),
        }
    }
}

/// An HTTP answer that reads `stream` to its end.
pub(crate) fn event_response(stream: Arc<EventStream>, reading: Reading) -> Response {
    struct State {
        stream: Arc<EventStream>,
        after: u64,
        primed: bool,
        resumable: bool,
        keep_alive: Duration,
        _held: Option<Box<dyn Send>>,
    }
    let state = State {
        stream,
        after: reading.after,
        primed: reading.primed,
        resumable: reading.resumable,
        keep_alive: reading.keep_alive,
        _held: reading.held,
    };
    let chunks = stream::unfold(state, |mut state| async move {
        if state.primed {
            state.primed = false;
            let number = state.stream.number();
            let after = state.after;
            let text = format!("id: {number}-{after}\r\nretry: {RETRY_MS}\r\ndata:\r\n\r\n");
            return Some((Ok::<_, Infallible>(Bytes::from(text)), state));
        }
        let chunk =
            match tokio::time::timeout(state.keep_alive, state.stream.next(state.after)).await {
                Err(_) => Bytes::from_static(b": ping\r\n\r\n"),
                Ok(Next::Finished) => return None,
                Ok(Next::Event(event)) => {
                    state.after = event.place;
                    state.stream.deliver(event.place);
                    let number = state.resumable.then(|| state.stream.number());
                    encode(number, &event)
                }
            };
        Some((Ok(chunk), state))
    });
    let mut response = Response::new(Body::from_stream(chunks));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn encode(stream: Option<u64>, event: &Event) -> Bytes {
    let text = String::from_utf8_lossy(&event.text);
    let mut out = String::with_capacity(text.len() + 64);
    // Writing to a string cannot fail.
    if let Some(stream) = stream {
        let _ = write!(out, "id: {stream}-{}\r\n", event.place);
    }
    out.push_str("event: message\r\n");
    for line in text.split('\n') {
        let _ = write!(out, "data: {line}\r\n");
    }
    out.push_str("\r\n");
    out.into()
}

/// Stream and place of an event id made by [`event_response`].
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, place) = id.split_once('-')?;
    Some((stream.parse().ok()?, place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_goes_on_where_it_stopped() {
        let stream = EventStream::new(3, 1000);
        stream.push("a".to_owned());
        stream.push("b".to_owned());
        stream.finish("c".to_owned());
        let Next::Event(event) = stream.next(1).await else {
            panic!("an event");
        };
        assert_eq!((event.place, &event.text[..]), (2, &b"b"[..]));
        assert!(matches!(stream.next(3).await, Next::Finished));
        assert_eq!(parse_event_id("3-2"), Some((3, 2)));
    }

    #[tokio::test]
    async fn a_full_stream_drops_its_oldest_messages_but_never_the_answer() {
        let stream = EventStream::new(1, 10);
        for _ in 0..5 {
            stream.push("12345".to_owned());
        }
        stream.finish("x".repeat(100));
        let Next::Event(event) = stream.next(0).await else {
            panic!("an event");
        };
        assert_eq!((event.place, event.is_answer()), (6, true));
    }
}
