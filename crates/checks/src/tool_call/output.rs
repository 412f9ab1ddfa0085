//! Whether a tool's output looks like a failure.

use std::sync::LazyLock;

use regex::RegexSet;

use evidence::{EMPTY_OUTPUT, RecordedCall};

/// Signs of failure, in any case, `^` at the beginning of each line. They are many on purpose: a
/// text that merely speaks of a time-out counts as a failure too (§6.3.12).
const SIGNS: &[&str] = &[
    r"^\s*error:",
    r"^\s*exception:",
    r"^\s*failed:",
    r"\berror\s*:\s*\w",
    r"^\s*###\s*error",
    r"\b(Reference|Type|Syntax|Range|ModuleNotFound|Import)Error:",
    r"Traceback \(most recent call last\)",
    r"\bstack trace\b",
    r#"\berror=["']"#,
    r#""error"\s*:\s*"[^"]"#,
    r"\bHTTP(/\d(\.\d)?)?\s+[45]\d\d\b",
    r"\b500 internal server error\b",
    r"\b400 bad request\b",
    r"\b401 unauthorized\b",
    r"\b403 forbidden\b",
    r"\b404 not found\b",
    r"\b429 too many requests\b",
    r"\b502 bad gateway\b",
    r"\b503 service unavailable\b",
    r"\bfailed to \w",
    r"\bconnection (refused|reset)\b",
    r"\btime ?out\b",
    r"\btimed out\b",
    r"\b(permission|access) denied\b",
    r"\b(command|module) not found\b",
    r"\bno such file\b",
    r"\bENOENT\b",
    r"\bECONNREFUSED\b",
    r"\bETIMEDOUT\b",
    r"\bsegmentation fault\b",
];

/// Why the output of `call` counts as a failure; `None` where it does not.
///
/// What the tool says itself, where the runner recorded it, wins over signs in the text.
pub(super) fn failure(call: &RecordedCall) -> Option<String> {
    let Some(output) = &call.output else {
        return Some("the call has no output".to_owned());
    };
    match call.is_error {
        Some(true) => return Some("the tool reported an error".to_owned()),
        Some(false) => return None,
        None => {}
    }
    if output == EMPTY_OUTPUT {
        return None;
    }
    let sign = signs()?.matches(output).iter().next()?;
    let sign = SIGNS.get(sign).copied().unwrap_or_default();
    Some(format!("the output has a sign of failure (`{sign}`)"))
}

fn signs() -> Option<&'static RegexSet> {
    static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
        regex::RegexSetBuilder::new(SIGNS)
            .case_insensitive(true)
            .multi_line(true)
            .build()
            .ok()
    });
    SET.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(output: Option<&str>, is_error: Option<bool>) -> RecordedCall {
        RecordedCall {
            call_number: 1,
            tool_call_id: "c".into(),
            tool_name: "t".into(),
            arguments: String::new(),
            output: output.map(str::to_owned),
            is_error,
        }
    }

    #[test]
    fn all_signs_compile() {
        assert_eq!(signs().unwrap().len(), SIGNS.len());
    }

    #[test]
    fn signs_of_failure_are_found_anywhere_and_in_any_case() {
        for output in [
            "fine so far\nERROR: no",
            "an Error : x",
            "### Error\n",
            "TypeError: bad",
            "  traceback (most recent call last):",
            r#"{"error": "boom"}"#,
            "HTTP 404",
            "HTTP/1.1 502 x",
            "it FAILED to start",
            "a request timed out",
            "Time out",
            "bash: x: command not found",
            "ENOENT",
        ] {
            assert!(failure(&call(Some(output), None)).is_some(), "{output}");
        }
        for output in [
            "all good",
            r#"{"error": ""}"#,
            r#"{"error": null}"#,
            "HTTP 200",
            "no errors",
            EMPTY_OUTPUT,
        ] {
            assert_eq!(failure(&call(Some(output), None)), None, "{output}");
        }
        assert!(failure(&call(None, None)).is_some());
    }

    #[test]
    fn the_tools_own_word_wins() {
        assert_eq!(
            failure(&call(Some("error: in a quoted document"), Some(false))),
            None
        );
        assert!(failure(&call(Some("all good"), Some(true))).is_some());
    }
}
