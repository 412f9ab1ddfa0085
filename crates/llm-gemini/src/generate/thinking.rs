//! How much a model is to think, from `thinking` and `reasoning_effort`
//! (<https://ai.google.dev/gemini-api/docs/thinking>).

use serde_json::{Value, json};

use super::family::Thinking;

/// Budgets by effort, for models that think with a budget.
const BUDGETS: &[(&str, u64)] = &[
    ("minimal", 128),
    ("low", 1024),
    ("medium", 2048),
    ("high", 4096),
    ("xhigh", 8192),
    ("max", 16_384),
];

/// The words for levels, the lowest first.
const LEVELS: &[&str] = &["minimal", "low", "medium", "high"];

/// `thinkingConfig` for what the caller asked, with `max_tokens` as the limit of thoughts and reply
/// together.
///
/// The error is a sentence about a value that the model does not take.
pub(super) fn config(
    thinking: Option<&Value>,
    effort: Option<&Value>,
    ability: Thinking,
    max_tokens: Option<u64>,
) -> Result<Option<Value>, String> {
    let effort = effort.map(word).transpose()?;
    if let Some(thinking) = thinking {
        return by_object(thinking, effort, ability, max_tokens);
    }
    let Some(effort) = effort else {
        return Ok(None);
    };
    by_effort(effort, ability, max_tokens)
}

/// The effort as one of the words that are known.
fn word(effort: &Value) -> Result<&'static str, String> {
    let asked = effort.as_str().unwrap_or_default();
    let mut known = BUDGETS.iter().map(|(word, _)| *word).chain(["none"]);
    known.find(|word| *word == asked).ok_or_else(|| {
        format!("the effort must be none, minimal, low, medium, high, xhigh or max, got {effort}")
    })
}

fn by_object(
    thinking: &Value,
    effort: Option<&'static str>,
    ability: Thinking,
    max_tokens: Option<u64>,
) -> Result<Option<Value>, String> {
    let kind = thinking.get("type").and_then(Value::as_str);
    let tokens = thinking.get("budget_tokens").and_then(Value::as_u64);
    match (kind, ability) {
        (Some("disabled"), _) => by_effort("none", ability, max_tokens),
        (Some("enabled" | "adaptive"), Thinking::Never) => Err(no_thoughts()),
        (Some("enabled" | "adaptive"), Thinking::Budget { .. }) => Ok(Some(match tokens {
            Some(tokens) => json!({"thinkingBudget": tokens, "includeThoughts": true}),
            // As much as it needs.
            None => json!({"thinkingBudget": -1, "includeThoughts": true}),
        })),
        (Some("enabled" | "adaptive"), Thinking::Levels(levels)) => {
            let asked = tokens.map(level_of).or(effort);
            match asked {
                Some(asked) => by_effort(nearest(asked, levels)?, ability, max_tokens),
                None => Ok(Some(json!({"includeThoughts": true}))),
            }
        }
        _ => Err(format!(
            "its `type` must be enabled, adaptive or disabled, got {thinking}"
        )),
    }
}

fn by_effort(
    effort: &str,
    ability: Thinking,
    max_tokens: Option<u64>,
) -> Result<Option<Value>, String> {
    let off = effort == "none";
    Ok(Some(match ability {
        Thinking::Never if off => return Ok(None),
        Thinking::Never => return Err(no_thoughts()),
        Thinking::Budget {
            least, can_stop, ..
        } if off => {
            let tokens = if can_stop { 0 } else { least };
            json!({"thinkingBudget": tokens, "includeThoughts": false})
        }
        Thinking::Budget {
            least,
            most,
            can_stop,
        } => {
            let usual = BUDGETS.iter().find(|(word, _)| *word == effort);
            let tokens = usual
                .map_or(least, |(_, tokens)| *tokens)
                .clamp(least, most);
            // Thoughts count as part of the reply, which is to have room beside them.
            let room = max_tokens.map_or(tokens, |limit| tokens.min(limit / 2));
            if room >= least {
                json!({"thinkingBudget": room, "includeThoughts": true})
            } else {
                tracing::warn!(max_tokens, "no room for thinking: as little as possible");
                let tokens = if can_stop { 0 } else { least };
                json!({"thinkingBudget": tokens, "includeThoughts": false})
            }
        }
        Thinking::Levels(levels) if off => {
            json!({"thinkingLevel": levels[0], "includeThoughts": false})
        }
        Thinking::Levels(levels) => {
            json!({"thinkingLevel": nearest(effort, levels)?, "includeThoughts": true})
        }
    }))
}

/// The level of `levels` that is `effort`, else the next one above it.
fn nearest(effort: &str, levels: &'static [&'static str]) -> Result<&'static str, String> {
    let place = |word: &str| LEVELS.iter().position(|level| *level == word);
    let wanted = place(effort);
    levels
        .iter()
        .find(|level| wanted.is_some() && place(level) >= wanted)
        .copied()
        .ok_or_else(|| {
            format!(
                "the effort must be one of none, {}, got {effort}",
                levels.join(", ")
            )
        })
}

/// The level that a budget stands for.
fn level_of(tokens: u64) -> &'static str {
    match tokens {
        0..=1024 => "low",
        1025..=2048 => "medium",
        _ => "high",
    }
}

fn no_thoughts() -> String {
    "the model does not think".to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::family::abilities;
    use super::*;

    fn ask(model: &str, effort: &str, max_tokens: Option<u64>) -> Result<Option<Value>, String> {
        config(
            None,
            Some(&json!(effort)),
            abilities(model).thinking,
            max_tokens,
        )
    }

    #[test]
    fn budgets_fit_the_model_and_leave_room_for_the_reply() {
        let budget = |model, effort, max_tokens| {
            let config = ask(model, effort, max_tokens).unwrap().unwrap();
            (
                config["thinkingBudget"].as_i64().unwrap(),
                config["includeThoughts"].as_bool().unwrap(),
            )
        };
        assert_eq!(budget("gemini-2.5-flash", "medium", None), (2048, true));
        assert_eq!(
            budget("gemini-2.5-flash-lite", "minimal", None),
            (512, true)
        );
        assert_eq!(budget("gemini-2.5-pro", "none", None), (128, false));
        assert_eq!(budget("gemini-2.5-flash", "none", None), (0, false));
        assert_eq!(budget("gemini-2.5-flash", "high", Some(2000)), (1000, true));
        assert_eq!(budget("gemini-2.5-flash", "high", Some(100)), (0, false));
        assert_eq!(budget("gemini-2.5-pro", "high", Some(100)), (128, false));
    }

    #[test]
    fn levels_are_the_nearest_ones_above() {
        let level = |model, effort| {
            let config = ask(model, effort, None).unwrap().unwrap();
            config["thinkingLevel"].as_str().unwrap().to_owned()
        };
        assert_eq!(level("gemini-3-pro-preview", "minimal"), "low");
        assert_eq!(level("gemini-3-pro-preview", "medium"), "high");
        assert_eq!(level("gemini-3.1-pro-preview", "medium"), "medium");
        assert_eq!(level("gemini-3.5-flash", "minimal"), "minimal");
        let error = ask("gemini-3.5-flash", "xhigh", None).unwrap_err();
        assert!(
            error.contains("none, minimal, low, medium, high, got xhigh"),
            "{error}"
        );
    }

    #[test]
    fn models_that_do_not_think_say_so() {
        assert_eq!(ask("gemini-2.0-flash", "none", None), Ok(None));
        assert!(ask("gemini-2.0-flash", "low", None).is_err());
        assert!(
            ask("gemini-2.5-flash", "lots", None)
                .unwrap_err()
                .contains("\"lots\"")
        );
    }
}
