//! Reading a call of `final_answer` (`spec/agents.md` §12.6).

use serde_json::Value;

use super::todos::Todos;
use crate::run::Answer;
use crate::tools::Arguments;

/// The answer in the raw arguments of a call. A model that writes its answer without the JSON
/// around it is understood; one that was cut off (`cut_off`) is not, and the reason is returned.
pub(super) fn parse(raw: &str, cut_off: bool) -> Result<Answer, String> {
    let completed = |text: String| Answer {
        text,
        status: Some("completed".to_owned()),
    };
    if let Ok(arguments) = Arguments::parse(raw) {
        let text = text_of(arguments.object.get("answer"));
        return Ok(match arguments.object.get("status") {
            None | Some(Value::Null) => completed(text),
            status => Answer {
                text,
                status: Some(text_of(status)),
            },
        });
    }
    match serde_json::from_str::<Value>(raw) {
        Ok(value) => Ok(completed(text_of(Some(&value)))),
        Err(error) if cut_off => Err(format!(
            "the call was cut off at the length limit of the reply ({error})"
        )),
        Err(_) => Ok(completed(raw.to_owned())),
    }
}

fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Why an answer is refused: todos that are still open.
pub(super) fn objection(todos: &Todos) -> Option<String> {
    let open = todos.open();
    if open.is_empty() {
        return None;
    }
    let listed: Vec<String> = open
        .iter()
        .map(|(id, status)| format!("`{id}` ({status})"))
        .collect();
    Some(format!(
        "Refused: {} of your todos {} still open: {}. Set each to completed or cancelled with `todo_write`, then call `final_answer` again.",
        open.len(),
        if open.len() == 1 { "is" } else { "are" },
        listed.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_the_reference_reads_them() {
        for (raw, text, status) in [
            (r#"{"answer":"a","status":"blocked"}"#, "a", "blocked"),
            (r#"{"answer":"a"}"#, "a", "completed"),
            (r#"{"answer":{"x":1},"status":"odd"}"#, r#"{"x":1}"#, "odd"),
            ("", "", "completed"),
            ("{}", "", "completed"),
            ("The answer is 42", "The answer is 42", "completed"),
            ("[1,2]", "[1,2]", "completed"),
            ("\"quoted\"", "quoted", "completed"),
        ] {
            let answer = parse(raw, false).unwrap();
            assert_eq!(
                (answer.text.as_str(), answer.status.as_deref()),
                (text, Some(status)),
                "{raw}"
            );
        }
    }

    #[test]
    fn half_an_answer_is_no_answer() {
        assert!(parse(r#"{"answer":"The gorilla is at /ani"#, true).is_err());
    }
}
