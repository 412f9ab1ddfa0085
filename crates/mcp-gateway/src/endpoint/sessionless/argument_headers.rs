//! Arguments of a tool that its schema repeats in headers (`x-mcp-header`, MCP 2026-07-28,
//! "Custom headers").

use std::collections::HashSet;

use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::encoded_header;
use super::envelope::{HEADER_MISMATCH, Refusal, bad_request};

/// The prefix of the headers.
pub(crate) const PREFIX: &str = "mcp-param-";
/// The schema keyword that names the header of an argument.
pub(crate) const KEYWORD: &str = "x-mcp-header";
/// How deep a schema is looked into.
const MAX_DEPTH: usize = 32;

struct Declared {
    header: HeaderName,
    path: Vec<String>,
    is_integer: bool,
}

/// Compares the headers with the arguments: both there and equal, or both absent.
pub(crate) fn check(schema: &Value, arguments: &Value, headers: &HeaderMap) -> Result<(), Refusal> {
    // Clients drop a tool whose declaration is wrong, and send no headers for it.
    let Some(declared) = declared(schema) else {
        return Ok(());
    };
    for one in declared {
        let name = one.path.join(".");
        let wrong = |what: &str| {
            let header = &one.header;
            Err(bad_request(
                HEADER_MISMATCH,
                format!("header `{header}` {what} argument `{name}`"),
            ))
        };
        let argument = one
            .path
            .iter()
            .try_fold(arguments, |value, key| value.get(key))
            .and_then(text_of);
        let mut sent = headers.get_all(&one.header).iter();
        match (sent.next(), argument) {
            (None, None) => {}
            (None, Some(_)) => return wrong("is missing beside the"),
            (Some(_), None) => return wrong("is there without the"),
            (Some(_), Some(_)) if sent.next().is_some() => {
                return wrong("is there more than once for the");
            }
            (Some(header), Some(argument)) => match encoded_header::decode(header) {
                None => return wrong("has a broken encoding for the"),
                Some(header) if !same(&header, &argument, one.is_integer) => {
                    return wrong("is not the");
                }
                Some(_) => {}
            },
        }
    }
    Ok(())
}

/// The declarations along `properties`; `None` where one of them is wrong.
fn declared(schema: &Value) -> Option<Vec<Declared>> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    let mut todo = vec![(Vec::new(), schema)];
    while let Some((path, schema)) = todo.pop() {
        if let Some(header) = schema.get(KEYWORD) {
            let kind = schema.get("type").and_then(Value::as_str)?;
            let header = header.as_str().filter(|header| !header.is_empty())?;
            if path.is_empty() || !matches!(kind, "string" | "integer" | "boolean") {
                return None;
            }
            let header = HeaderName::try_from(format!("{PREFIX}{header}")).ok()?;
            if !names.insert(header.clone()) {
                return None;
            }
            found.push(Declared {
                header,
                path: path.clone(),
                is_integer: kind == "integer",
            });
        }
        if path.len() == MAX_DEPTH {
            continue;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            let mut path = path.clone();
            path.push(key.clone());
            todo.push((path, property));
        }
    }
    Some(found)
}

/// An argument as a header has it; `None` where it has none.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn same(header: &str, argument: &str, is_integer: bool) -> bool {
    // `42` and `42.0` are the same integer.
    let whole = |text: &str| match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => text.to_owned(),
    };
    header == argument || (is_integer && whole(header) == whole(argument))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(schema: &Value, arguments: &Value, sent: &[(&str, &str)]) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        check(schema, arguments, &headers).map_err(|(_, error)| error.message())
    }

    #[test]
    fn headers_and_arguments_agree_or_are_refused() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "deep": {"properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}}},
        }});
        let of = |arguments: Value, sent: &[(&str, &str)]| outcome(&schema, &arguments, sent);
        let all = [
            ("mcp-param-region", "=?base64?w7w=?="),
            ("mcp-param-n", "42"),
            ("mcp-param-flag", "true"),
        ];
        let arguments = json!({"region": "ü", "n": 42.0, "deep": {"flag": true}});
        assert_eq!(of(arguments.clone(), &all), Ok(()));
        assert_eq!(of(json!({"region": null}), &[]), Ok(()));
        for (arguments, sent, word) in [
            (arguments.clone(), &all[1..], "missing"),
            (
                json!({"n": 42, "deep": {"flag": true}}),
                &all[..],
                "without",
            ),
            (json!({"region": "u"}), &all[..1], "is not the"),
            (
                json!({"n": 42}),
                &[("mcp-param-n", "42.5")][..],
                "is not the",
            ),
            (json!({"n": 42}), &[all[1], all[1]][..], "more than once"),
            (
                json!({"n": 42}),
                &[("mcp-param-n", "=?base64?x?=")][..],
                "broken",
            ),
        ] {
            let error = of(arguments, sent).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_wrong_declaration_checks_nothing() {
        for property in [
            json!({"type": "number", "x-mcp-header": "A"}),
            json!({"type": "string", "x-mcp-header": "a b"}),
            json!({"type": "string", "x-mcp-header": 1}),
        ] {
            let schema = json!({"properties": {"a": property}});
            assert_eq!(outcome(&schema, &json!({"a": "x"}), &[]), Ok(()));
        }
    }
}
