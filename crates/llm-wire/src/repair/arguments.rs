//! Arguments of tool calls in the history.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::json;

/// The key under which arguments that are no JSON object are sent.
const RAW: &str = "_raw";

/// `arguments` as JSON text of an object: as they are where they are one, `{}` for nothing, and
/// wrapped as `{"_raw": …}` otherwise, so that the model sees what it wrote.
pub fn sendable_arguments(arguments: &str) -> Cow<'_, str> {
    let text = arguments.trim();
    if text.is_empty() {
        return Cow::Borrowed("{}");
    }
    if text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(json!({ RAW: arguments }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn objects_stay_byte_for_byte() {
        let text = " {\"n\": 12345678901234567890123, \"a\": 1.0}";
        assert_eq!(sendable_arguments(text), text);
    }

    #[test]
    fn other_text_is_wrapped() {
        assert_eq!(sendable_arguments("  "), "{}");
        assert_eq!(sendable_arguments("[1]"), "{\"_raw\":\"[1]\"}");
        assert_eq!(
            sendable_arguments("{\"a\": \"b"),
            "{\"_raw\":\"{\\\"a\\\": \\\"b\"}"
        );
        assert_eq!(sendable_arguments("{}\""), "{\"_raw\":\"{}\\\"\"}");
    }

    proptest! {
        #[test]
        fn the_outcome_is_always_an_object(text in ".*") {
            let sent: Value = serde_json::from_str(&sendable_arguments(&text)).unwrap();
            prop_assert!(sent.is_object());
        }

        #[test]
        fn mending_twice_changes_nothing_more(text in "[\\[\\]{}\":,a0 ]*") {
            let once = sendable_arguments(&text).into_owned();
            prop_assert_eq!(sendable_arguments(&once), once.as_str());
        }
    }
}
