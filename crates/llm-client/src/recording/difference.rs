//! What keeps a request from being one of a recording.

use std::collections::HashMap;

use serde_json::Value;

use super::Question;
use super::reader::Exchange;

/// Characters that are shown in front of the first difference of two texts.
const BEFORE: usize = 30;
/// Characters that are shown from there on.
const AFTER: usize = 80;

/// Says how `question` differs from the nearest one of `exchanges`; `None` where there are none.
pub(super) fn nearest<'a>(
    question: &Question,
    exchanges: impl Iterator<Item = &'a Exchange>,
    parts: &HashMap<String, Value>,
) -> Option<String> {
    let common = |exchange: &Exchange| {
        question
            .messages
            .iter()
            .zip(&exchange.messages)
            .take_while(|(ours, theirs)| ours.sha256 == **theirs)
            .count()
    };
    let nearest = exchanges
        .map(|exchange| (common(exchange), exchange))
        .max_by_key(|(common, exchange)| {
            let further = exchange.messages.len() - common;
            (*common, std::cmp::Reverse(further))
        });
    let (common, exchange) = nearest?;
    let ours = question.messages.get(common);
    let theirs = exchange.messages.get(common);
    Some(match (ours, theirs) {
        (Some(ours), Some(theirs)) => {
            let theirs = parts.get(theirs).map_or_else(String::new, Value::to_string);
            let (ours, theirs) = around_the_difference(&ours.json, &theirs);
            format!(
                "message {} of the request is `{ours}`, and `{theirs}` in the nearest one of the recording",
                common + 1
            )
        }
        (Some(ours), None) => {
            let (ours, _) = around_the_difference(&ours.json, "");
            format!(
                "the nearest one of the recording ends before message {} of the request, `{ours}`",
                common + 1
            )
        }
        (None, Some(_)) => format!(
            "the request has {common} messages, the nearest one of the recording begins with them \
             and has {}",
            exchange.messages.len()
        ),
        (None, None) => beside_the_messages(question, exchange, parts),
    })
}

/// The difference between requests with the same messages.
fn beside_the_messages(
    question: &Question,
    exchange: &Exchange,
    parts: &HashMap<String, Value>,
) -> String {
    let hash = question.tools.as_ref().map(|tools| &tools.sha256);
    if hash != exchange.tools.as_ref() {
        let ours = question.tools.as_ref().map_or("none", |tools| &tools.json);
        let theirs = exchange.tools.as_ref().and_then(|hash| parts.get(hash));
        let theirs = theirs.map_or_else(|| "none".to_owned(), Value::to_string);
        let (ours, theirs) = around_the_difference(ours, &theirs);
        return format!("the tools are `{ours}`, and `{theirs}` in the recording");
    }
    let names = question.parameters.keys().chain(exchange.parameters.keys());
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "not set".to_owned(), Value::to_string);
    for name in names {
        let (ours, theirs) = (question.parameters.get(name), exchange.parameters.get(name));
        if ours != theirs {
            return format!(
                "the parameter `{name}` is {}, and {} in the recording",
                shown(ours),
                shown(theirs)
            );
        }
    }
    "the nearest one was recorded with another version of this program".to_owned()
}

/// Both texts from a little before their first difference on.
fn around_the_difference(ours: &str, theirs: &str) -> (String, String) {
    let same = ours
        .chars()
        .zip(theirs.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let start = same.saturating_sub(BEFORE);
    let part = |text: &str| {
        let part: String = text.chars().skip(start).take(BEFORE + AFTER).collect();
        let before = if start > 0 { "…" } else { "" };
        let more = text.chars().count() > start + BEFORE + AFTER;
        format!("{before}{part}{}", if more { "…" } else { "" })
    };
    (part(ours), part(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shown_around_the_first_difference() {
        let ours = format!("{}x{}", "a".repeat(100), "b".repeat(200));
        let theirs = format!("{}y", "a".repeat(100));
        let (ours, theirs) = around_the_difference(&ours, &theirs);
        assert_eq!(theirs, format!("…{}y", "a".repeat(30)));
        assert_eq!(ours, format!("…{}x{}…", "a".repeat(30), "b".repeat(79)));
        assert_eq!(
            around_the_difference("ab", "ac"),
            ("ab".to_owned(), "ac".to_owned())
        );
    }
}
