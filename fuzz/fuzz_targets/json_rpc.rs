//! Messages of servers and clients: what parses is written again on one line and means the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

#[path = "../../crates/mcp-gateway/src/jsonrpc.rs"]
#[allow(dead_code, unreachable_pub)]
mod jsonrpc;

use jsonrpc::{Message, RawObject};

fn value(text: &RawValue) -> Option<Value> {
    serde_json::from_str(text.get()).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::parse(bytes) else {
        return;
    };
    let (line, contents) = match &message {
        Message::Request { id, method, params } => {
            (jsonrpc::request(id, method, params.as_deref()), params.clone())
        }
        Message::Notification { method, params } => {
            (jsonrpc::notification(method, params.as_deref()), params.clone())
        }
        Message::Response { id, outcome } => {
            let contents = match outcome {
                Ok(result) => result.clone(),
                Err(error) => error.0.clone(),
            };
            (jsonrpc::response(id, outcome), Some(contents))
        }
    };
    assert!(!line.contains(['\n', '\r']), "{line}");
    let again = match (&message, Message::parse(line.as_bytes()).unwrap()) {
        (Message::Request { id, method, .. }, Message::Request { id: id2, method: method2, params }) => {
            assert_eq!((jsonrpc::id_key(id), method), (jsonrpc::id_key(&id2), &method2));
            params
        }
        (Message::Notification { method, .. }, Message::Notification { method: method2, params }) => {
            assert_eq!(method, &method2);
            params
        }
        (Message::Response { id, outcome }, Message::Response { id: id2, outcome: outcome2 }) => {
            assert_eq!(jsonrpc::id_key(id), jsonrpc::id_key(&id2));
            assert_eq!(outcome.is_ok(), outcome2.is_ok());
            Some(outcome2.unwrap_or_else(|error| error.0))
        }
        (one, other) => panic!("{one:?} became {other:?}"),
    };
    assert_eq!(contents.as_deref().map(value), again.as_deref().map(value));
    // An object that is taken apart and put together says the same: of a repeated key the last value.
    if let Ok(mut object) = RawObject::parse(contents.as_deref()) {
        let whole = object.to_raw();
        let empty = Value::Object(serde_json::Map::new());
        let meant = contents.as_deref().and_then(value).filter(Value::is_object);
        if let Some(after) = value(&whole) {
            assert_eq!(after, meant.unwrap_or(empty));
        }
        object.set("name", jsonrpc::raw("x"));
        assert_eq!(object.text("name").as_deref(), Some("x"));
        let set = object.to_raw();
        assert_eq!(set.get().matches("\"name\":\"x\"").count().min(1), 1, "{set}");
    }
});
