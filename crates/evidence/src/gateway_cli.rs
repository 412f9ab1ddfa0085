//! Tool calls that an agent made through a shell, by the gateway's command line
//! `mcp_cli --method=execute --tool=NAME --params=JSON` (`spec/grading.md` §2.9).

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::tool_calls::RecordedCall;

const PROGRAM: &str = "mcp_cli";

/// The calls hidden in the arguments of `calls`: each with id, number and output of the call that
/// carried it, in order.
pub(crate) fn unwrap(calls: &[RecordedCall]) -> Vec<RecordedCall> {
    let mut found = Vec::new();
    for call in calls {
        if !call.arguments.contains(PROGRAM) {
            continue;
        }
        for command in commands(&call.arguments) {
            found.extend(
                invocations(&command).map(|(tool_name, arguments)| RecordedCall {
                    tool_name,
                    arguments,
                    ..call.clone()
                }),
            );
        }
    }
    found
}

/// The command lines in the arguments of a call.
fn commands(arguments: &str) -> Vec<String> {
    match serde_json::from_str(arguments) {
        Ok(Value::Object(object)) => object
            .into_iter()
            .filter(|(key, _)| is_command_key(key))
            .filter_map(|(_, value)| match value {
                Value::String(command) => Some(command),
                _ => None,
            })
            .collect(),
        Ok(Value::String(command)) => vec![command],
        _ => vec![arguments.to_owned()],
    }
}

fn is_command_key(key: &str) -> bool {
    static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)command|cmd|shell|script|bash|terminal|exec|\brun\b").ok()
    });
    KEY.as_ref().is_some_and(|pattern| pattern.is_match(key))
}

/// Tool name and parameters of each invocation in `command`.
fn invocations(command: &str) -> impl Iterator<Item = (String, String)> {
    static START: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?:^|[\n;&|])[ \t]*mcp_cli\b").ok());
    let mut found = Vec::new();
    let mut rest = command;
    while let Some(start) = START.as_ref().and_then(|start| start.find(rest)) {
        let tail = &rest[start.end()..];
        let next = START.as_ref().and_then(|start| start.find(tail));
        let own = next.map_or(tail, |next| &tail[..next.start()]);
        let (flags, consumed, params) = match own.find("--params") {
            None => (own, own.len(), None),
            Some(at) => {
                // The parameters may themselves contain what looks like another invocation.
                let after = &tail[at..];
                let object = own[at..]
                    .find('{')
                    .and_then(|open| Some((open, balanced(&after[open..])?)));
                match object {
                    Some((open, object)) => (&own[..at], at + open + object.len(), Some(object)),
                    None => (&own[..at], own.len(), None),
                }
            }
        };
        if flag(flags, "method").as_deref() == Some("execute")
            && let Some(tool) = flag(flags, "tool")
        {
            found.push((tool, params.unwrap_or("{}").to_owned()));
        }
        rest = &tail[consumed..];
    }
    found.into_iter()
}

/// The value of `--name=value`, `--name value`, with or without quotes.
fn flag(flags: &str, name: &str) -> Option<String> {
    let mut rest = flags;
    let marker = format!("--{name}");
    while let Some(at) = rest.find(&marker) {
        let after = &rest[at + marker.len()..];
        rest = after;
        let Some(value) = after.strip_prefix(['=', ' ', '\t']) else {
            continue;
        };
        let value = value.trim_start_matches([' ', '\t']);
        let value = value.strip_prefix(['"', '\'']).unwrap_or(value);
        let end = value
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
            .unwrap_or(value.len());
        if end > 0 {
            return Some(value[..end].to_owned());
        }
    }
    None
}

/// The text from the opening brace at the start of `text` to the brace that closes it. Braces
/// inside double quotes do not count; a backslash takes the meaning from the next character.
fn balanced(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        if escaped {
            escaped = false;
            continue;
        }
        match byte {
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrapped(arguments: &str) -> Vec<(String, String)> {
        let call = RecordedCall {
            call_number: 3,
            tool_call_id: "c".into(),
            tool_name: "bash".into(),
            arguments: arguments.into(),
            output: Some("out".into()),
            is_error: None,
        };
        unwrap(&[call])
            .into_iter()
            .map(|call| {
                assert_eq!(call.call_number, 3);
                assert_eq!(call.output.as_deref(), Some("out"));
                (call.tool_name, call.arguments)
            })
            .collect()
    }

    fn shell(command: &str) -> String {
        serde_json::json!({ "command": command }).to_string()
    }

    #[test]
    fn two_invocations_in_one_command() {
        let calls = unwrapped(&shell(
            "cd /x && mcp_cli --method=execute --tool=mail.send --params='{\"to\": \"a}b\", \"n\": {\"x\": 1}}'; mcp_cli --method execute --tool \"list_files\"",
        ));
        assert_eq!(
            calls,
            [
                (
                    "mail.send".to_owned(),
                    r#"{"to": "a}b", "n": {"x": 1}}"#.to_owned()
                ),
                ("list_files".to_owned(), "{}".to_owned())
            ]
        );
    }

    #[test]
    fn only_execute_at_a_command_position_counts() {
        assert!(unwrapped(&shell("mcp_cli --method=list --tool=a")).is_empty());
        assert!(unwrapped(&shell("echo mcp_cli --method=execute --tool=a")).is_empty());
        assert!(unwrapped(&shell("mcp_cli --method=executes --tool=a")).is_empty());
        // Flags after --params are not read.
        assert!(unwrapped(&shell("mcp_cli --method=execute --params={} --tool=a")).is_empty());
        assert_eq!(
            unwrapped(&shell("true | mcp_cli --method=execute --tool=a")).len(),
            1
        );
    }

    #[test]
    fn commands_are_found_by_key_or_as_bare_text() {
        let command = "mcp_cli --method=execute --tool=a --params={}";
        for arguments in [
            serde_json::json!({ "BashCommand": command }).to_string(),
            serde_json::json!({ "run": command }).to_string(),
            serde_json::json!(command).to_string(),
            command.to_owned(),
        ] {
            assert_eq!(unwrapped(&arguments).len(), 1, "{arguments}");
        }
        for key in ["text", "running"] {
            let arguments = serde_json::json!({ (key): command }).to_string();
            assert!(unwrapped(&arguments).is_empty(), "{arguments}");
        }
    }

    #[test]
    fn an_invocation_inside_parameters_is_not_one() {
        let calls = unwrapped(&shell(
            r#"mcp_cli --method=execute --tool=note --params={"text": "a; mcp_cli --method=execute --tool=evil"}"#,
        ));
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].0, "note");
    }
}
