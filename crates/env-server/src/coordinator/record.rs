//! Calls as they are recorded (`spec/environment.md` §17.2).

use mcp_gateway::ToolCall;
use serde_json::{Value, json};

use super::files::RecordedCall;

/// So many items of a result are looked at for text.
const ITEMS: usize = 3;

/// Characters of each.
const CHARACTERS: usize = 500;

/// Bytes of structured content up to which it is recorded.
const STRUCTURED: usize = 8192;

/// The line of a call that ends now.
pub(super) fn line(sequence: u64, call: &ToolCall, max_bytes: usize) -> RecordedCall {
    let (result_summary, error) = match &call.outcome {
        Ok(result) => (Some(summary(result)), None),
        Err(error) => (None, Some(error.clone())),
    };
    let length = call.arguments.to_string().len();
    let arguments = if length > max_bytes {
        json!({"not_recorded": format!("{length} bytes, allowed are {max_bytes} (max_recorded_bytes)")})
    } else {
        call.arguments.clone()
    };
    RecordedCall {
        sequence,
        actor_id: call.actor.clone(),
        tool_name: call.tool.clone(),
        arguments,
        result_summary,
        error,
        timestamp: jiff::Timestamp::now(),
    }
}

/// What a result says, in short.
pub(super) fn summary(result: &Value) -> Value {
    let content = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<String> = content
        .iter()
        .take(ITEMS)
        .filter_map(|item| item["text"].as_str())
        .map(|text| text.chars().take(CHARACTERS).collect())
        .collect();
    let mut summary = json!({"content_items": content.len(), "text": texts.join("\n")});
    if let Some(structured) = result
        .get("structuredContent")
        .filter(|content| !content.is_null())
    {
        summary["has_structured_content"] = json!(true);
        if structured.to_string().len() <= STRUCTURED {
            summary["structured_content"] = structured.clone();
        }
    }
    summary
}

/// A recorded call as triggers look at it.
pub(super) fn recorded(line: RecordedCall) -> ToolCall {
    let outcome = match (line.error, line.result_summary) {
        (Some(error), _) => Err(error),
        (None, Some(summary)) => Ok(json!({"structuredContent": summary["structured_content"]})),
        (None, None) => Ok(Value::Null),
    };
    ToolCall::new(line.actor_id, line.tool_name, line.arguments, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_in_short() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let long = "ä".repeat(600);
        let content =
            json!([text("a"), {"type": "image", "data": "…"}, text(&long), text("c"), text("d")]);
        let short = summary(&json!({"content": content, "structuredContent": {"n": 1}}));
        assert_eq!(short["content_items"], 5);
        assert_eq!(short["text"], format!("a\n{}", "ä".repeat(500)));
        assert_eq!(short["has_structured_content"], true);
        assert_eq!(short["structured_content"], json!({"n": 1}));

        // A JSON text of 8192 bytes is kept, one more is not.
        for (length, kept) in [(8192 - 2, true), (8192 - 1, false)] {
            let structured = json!("x".repeat(length));
            let short = summary(&json!({"content": [], "structuredContent": structured}));
            assert_eq!(short.get("structured_content").is_some(), kept);
            assert_eq!(short["has_structured_content"], true);
        }
        assert_eq!(summary(&json!({})), json!({"content_items": 0, "text": ""}));
    }

    #[test]
    fn arguments_beyond_the_limit_are_told_by_their_length() {
        let call = ToolCall::new("a", "t", json!({"x": "12345"}), Err("no".to_owned()));
        assert_eq!(line(1, &call, 13).arguments, json!({"x": "12345"}));
        let cut = line(1, &call, 12);
        assert!(
            cut.arguments["not_recorded"]
                .as_str()
                .unwrap()
                .contains("13 bytes")
        );
        assert_eq!(
            (cut.result_summary, cut.error.as_deref()),
            (None, Some("no"))
        );
    }
}
