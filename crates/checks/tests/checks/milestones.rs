//! Milestones on the way of an agent.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;

fn case() -> Case {
    let mut case = Case::new("");
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    case.messages = json!([
        {"role": "user", "content": "Send the report."},
        {"role": "assistant", "content": "I look first.", "tool_calls": [call("a", "fs_read", json!({"path": "/r.md"}))]},
        {"role": "tool", "tool_call_id": "a", "content": "42 rows"},
        {"role": "assistant", "tool_calls": [call("b", "mail_send", json!({"to": "x@y", "n": 1}))]},
        {"role": "tool", "tool_call_id": "b", "content": "error: no server"},
        {"role": "assistant", "tool_calls": [call("c", "mail_send", json!({"to": "x@y", "n": 2}))]},
        {"role": "tool", "tool_call_id": "c", "content": "sent"},
        {"role": "assistant", "content": "It was sent."},
    ]);
    case
}

async fn result(values: Value) -> VerifierResult {
    let mut case = case();
    case.verifier("trace_milestones", values);
    case.result().await
}

fn read() -> Value {
    json!({"name": "read", "tool_name": "fs_read", "expected_args": {"path": "r.md"}, "text_mode": "contains", "output_pattern": "^\\d+ rows"})
}

fn send() -> Value {
    json!({"name": "send", "tool_name": ["mail_send", "post"], "expected_args": "{\"to\": \"x@y\"}", "weight": 2})
}

fn say() -> Value {
    json!({"name": "say", "message_pattern": "(?i)was SENT"})
}

#[tokio::test]
async fn the_score_is_the_share_of_weights_reached() {
    let all = result(json!({"milestones": [read(), send(), say()], "ordered": true})).await;
    assert_eq!(
        (all.status, all.score),
        (VerifierStatus::Ok, 1.0),
        "{all:?}"
    );
    let places: Vec<&Value> = all.verifier_result_values["milestones"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["place"])
        .collect();
    // The first mail failed.
    assert_eq!(places, ["call 1", "call 3", "message 8"]);

    let deleted = json!({"name": "delete", "tool_name": "fs_delete"});
    let some = result(json!({"milestones": [read(), send(), deleted]})).await;
    assert!((some.score - 0.75).abs() < 1e-12, "{some:?}");
    assert_eq!(some.message, "not reached: delete");
    let strict = result(json!({"milestones": [read(), deleted], "all_required": true})).await;
    assert_eq!(strict.score, 0.0);
}

#[tokio::test]
async fn order_counts_where_it_is_asked_for() {
    let turned = json!([say(), read()]);
    assert_eq!(result(json!({"milestones": turned})).await.score, 1.0);
    assert_eq!(
        result(json!({"milestones": turned, "ordered": true}))
            .await
            .score,
        0.5
    );
}

#[tokio::test]
async fn milestones_that_cannot_be_are_refused() {
    for (milestone, part) in [
        (
            json!({"name": "x"}),
            "either `tool_name` or `message_pattern`",
        ),
        (
            json!({"name": "x", "message_pattern": "("}),
            "no regular expression",
        ),
        (
            json!({"name": "x", "tool_name": "t", "weight": 0}),
            "above 0",
        ),
        (
            json!({"name": "x", "tool_name": "t", "expected_args": "["}),
            "JSON object",
        ),
    ] {
        let result = result(json!({"milestones": [milestone]})).await;
        assert_eq!(
            result.verifier_result_values["error_kind"], "config",
            "{result:?}"
        );
        assert!(result.message.contains(part), "{}", result.message);
    }
    let none = result(json!({"milestones": []})).await;
    assert_eq!(none.status, VerifierStatus::Error);
}
