//! Thinking, and what it excludes.

use serde_json::{Map, Value};

use super::{Check, Generation, kind};

/// Least budget.
const LEAST_BUDGET: u64 = 1024;

pub(super) fn check(body: &Map<String, Value>, generation: Generation, max_tokens: u64) -> Check {
    let thinking = body.get("thinking");
    let word = thinking.map(kind);
    match word {
        None | Some("disabled") => {}
        Some("adaptive") if generation.is_from(4, 6) => {}
        Some("adaptive") => {
            return Err("adaptive thinking is not supported on this model".to_owned());
        }
        Some("enabled") => {
            if generation.is_from(4, 7) {
                return Err("\"thinking.type.enabled\" is not supported for this model".to_owned());
            }
            check_budget(thinking, max_tokens)?;
            check_others(body)?;
        }
        Some(other) => return Err(format!("thinking.type: unexpected value '{other}'")),
    }
    if generation.is_from(4, 6) {
        return Ok(());
    }
    check_last_turn(body, word == Some("enabled"))
}

fn check_budget(thinking: Option<&Value>, max_tokens: u64) -> Check {
    let budget = thinking
        .and_then(|thinking| thinking.get("budget_tokens")?.as_u64())
        .ok_or("thinking.enabled.budget_tokens: Field required")?;
    if budget < LEAST_BUDGET {
        return Err(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
                .to_owned(),
        );
    }
    if budget >= max_tokens {
        return Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned());
    }
    Ok(())
}

fn check_others(body: &Map<String, Value>) -> Check {
    let number = |name: &str| body.get(name).and_then(Value::as_f64);
    if number("temperature").is_some_and(|number| (number - 1.0).abs() > f64::EPSILON) {
        return Err("`temperature` may only be set to 1 when thinking is enabled".to_owned());
    }
    if body.contains_key("top_k") {
        return Err("`top_k` must be unset when thinking is enabled".to_owned());
    }
    if number("top_p").is_some_and(|number| number < 0.95) {
        return Err("`top_p` must be at least 0.95 when thinking is enabled".to_owned());
    }
    let choice = body.get("tool_choice").map(kind);
    if matches!(choice, Some("any" | "tool")) {
        return Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
    }
    Ok(())
}

/// The last turn of the assistant begins with thinking in a tool loop while thinking is on, and has
/// none while it is off.
fn check_last_turn(body: &Map<String, Value>, is_on: bool) -> Check {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages
        .into_iter()
        .flatten()
        .rfind(|message| message.get("role").and_then(Value::as_str) == Some("assistant"));
    let Some(blocks) = last.and_then(|turn| turn.get("content")?.as_array()) else {
        return Ok(());
    };
    let is_thinking = |block: &Value| kind(block).ends_with("thinking");
    let has_calls = blocks.iter().any(|block| kind(block) == "tool_use");
    if is_on && has_calls && !blocks.first().is_some_and(is_thinking) {
        return Err("Expected `thinking` or `redacted_thinking`, but found another block. When `thinking` is enabled, a final `assistant` message must start with a thinking block".to_owned());
    }
    if !is_on && blocks.iter().any(is_thinking) {
        return Err("When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`".to_owned());
    }
    Ok(())
}
