use formats::chat::ToolCall;
use proptest::prelude::*;

use super::*;

fn calls(ids: &[&str]) -> Message {
    let mut message = Message::assistant("");
    message.content = None;
    message.tool_calls = ids.iter().map(|id| ToolCall::new(*id, "f", "{}")).collect();
    message
}

fn result(id: &str, text: &str) -> Message {
    Message::tool(id, "f", text)
}

/// The mended history in short: role letter, ids, texts.
fn short(messages: &[Message]) -> Vec<String> {
    mended(messages)
        .iter()
        .map(|entry| match entry {
            Entry::Message(message) => {
                format!("{}:{}", message.role.as_str(), message.text())
            }
            Entry::Calls { ids, .. } => format!("calls:{}", ids.join(",")),
            Entry::Result { id, message } => format!(
                "{id}={}",
                message.map_or(Cow::Borrowed("none"), Message::text)
            ),
        })
        .collect()
}

#[test]
fn a_proper_history_stays_as_it_is() {
    let history = [
        Message::system("s"),
        Message::user("u"),
        calls(&["a", "b"]),
        result("a", "1"),
        result("b", "2"),
        Message::assistant("done"),
    ];
    assert_eq!(
        short(&history),
        [
            "system:s",
            "user:u",
            "calls:a,b",
            "a=1",
            "b=2",
            "assistant:done"
        ]
    );
}

#[test]
fn results_come_in_call_order_and_others_behind() {
    let history = [
        calls(&["a", "b"]),
        result("b", "2"),
        Message::user("hurry"),
        result("a", "1"),
    ];
    assert_eq!(short(&history), ["calls:a,b", "a=1", "b=2", "user:hurry"]);
}

#[test]
fn missing_orphan_and_duplicate_results() {
    let history = [
        result("x", "orphan"),
        calls(&["a", "b"]),
        result("a", "first"),
        result("a", "last"),
        result("c", "orphan"),
        calls(&["a"]),
        result("a", "second round"),
    ];
    assert_eq!(
        short(&history),
        ["calls:a,b", "a=last", "b=none", "calls:a", "a=second round"]
    );
}

#[test]
fn ids_used_twice_or_empty_are_renamed_and_their_results_kept_apart() {
    let history = [
        Message::user("u"),
        calls(&["a", "a", "", ""]),
        result("a", "1"),
        result("a", "2"),
        result("", "3"),
    ];
    assert_eq!(
        short(&history),
        [
            "user:u",
            "calls:a,call_2_1,call_2_2,call_2_3",
            "a=1",
            "call_2_1=2",
            "call_2_2=3",
            "call_2_3=none"
        ]
    );
}

#[test]
fn a_turn_of_nothing_is_dropped_but_an_empty_text_is_not() {
    let mut nothing = Message::assistant("");
    nothing.content = None;
    let mut refusal = nothing.clone();
    refusal.extra.insert("refusal".into(), "no".into());
    let history = [nothing, refusal, Message::assistant("")];
    assert_eq!(short(&history), ["assistant:", "assistant:"]);
}

fn any_message() -> impl Strategy<Value = Message> {
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("c"), Just("call_1_0")];
    prop_oneof![
        "[a-z]{0,3}".prop_map(Message::user),
        "[a-z]{0,3}".prop_map(Message::assistant),
        Just(calls(&[])),
        proptest::collection::vec(id.clone(), 1..5).prop_map(|ids| calls(&ids)),
        (id.clone(), "[a-z]{0,3}").prop_map(|(id, text)| result(id, &text)),
        (id, "[a-z]{0,3}").prop_map(|(id, text)| result(id, &text)),
    ]
}

proptest! {
    #[test]
    fn every_call_has_one_result_directly_behind_and_nothing_else_has(
        history in proptest::collection::vec(any_message(), 0..20)
    ) {
        let entries = mended(&history);
        let mut open: Vec<String> = Vec::new();
        for entry in &entries {
            match entry {
                Entry::Result { id, .. } => {
                    prop_assert!(!open.is_empty());
                    prop_assert_eq!(open.remove(0), id.as_ref());
                }
                Entry::Calls { message, ids } => {
                    prop_assert!(open.is_empty());
                    prop_assert_eq!(ids.len(), message.tool_calls.len());
                    open = ids.iter().map(ToString::to_string).collect();
                    let mut sorted = open.clone();
                    sorted.sort();
                    sorted.dedup();
                    prop_assert_eq!(sorted.len(), open.len());
                    prop_assert!(!open.iter().any(String::is_empty));
                }
                Entry::Message(message) => {
                    prop_assert!(open.is_empty());
                    prop_assert!(message.role != Role::Tool);
                }
            }
        }
        prop_assert!(open.is_empty());
        // Nothing of the others is lost, and their order stays.
        let said = |message: &&Message| message.role == Role::User;
        let before: Vec<&Message> = history.iter().filter(said).collect();
        let after: Vec<&Message> = entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(*message),
            _ => None,
        }).filter(said).collect();
        prop_assert_eq!(before, after);
    }

    #[test]
    fn a_longer_history_begins_like_the_shorter_one(
        history in proptest::collection::vec(any_message(), 0..12)
    ) {
        // What was sent at one step is sent again at the next one, or the prompt cache is lost. A
        // step ends with all calls answered, so the next message is an assistant's.
        let mut longer = history.clone();
        longer.push(calls(&["z"]));
        let before = mended(&history);
        let after = mended(&longer);
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }
}
