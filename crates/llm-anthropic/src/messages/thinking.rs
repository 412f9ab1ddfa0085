//! How much a model is to think, from `thinking` and `reasoning_effort` (`spec/llm.md` §5.5, §18.3).

use serde_json::{Value, json};

use super::family::{Abilities, Thinking};

/// Least budget that Anthropic takes.
const LEAST_BUDGET: u64 = 1024;
/// Budget of a model that cannot think by itself and is asked to.
const USUAL_BUDGET: u64 = 2048;

/// Budgets by effort, for models that think with a budget.
const BUDGETS: &[(&str, u64)] = &[
    ("minimal", 1024),
    ("low", 1024),
    ("medium", 2048),
    ("high", 4096),
    ("xhigh", 8192),
    ("max", 16_384),
];

/// What a request says about thinking.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Plan {
    /// The field `thinking`.
    pub(super) thinking: Option<Value>,
    /// `output_config.effort`.
    pub(super) effort: Option<&'static str>,
}

impl Plan {
    /// Whether the model thinks with a budget, which excludes other parameters.
    pub(super) fn has_budget(&self) -> bool {
        let kind = self
            .thinking
            .as_ref()
            .and_then(|thinking| thinking.get("type"));
        kind.is_some_and(|kind| kind == "enabled")
    }
}

/// The plan for what the caller asked, with `max_tokens` as the limit of the reply.
///
/// The error is a sentence about a value that the model does not take.
pub(super) fn plan(
    thinking: Option<&Value>,
    effort: Option<&Value>,
    abilities: Abilities,
    max_tokens: u64,
) -> Result<Plan, String> {
    let effort = effort.map(word).transpose()?;
    if abilities.thinking == Thinking::Never {
        return match (thinking, effort) {
            (None, None | Some("none")) => Ok(Plan::default()),
            (Some(value), _) if kind(value) == "disabled" => Ok(Plan::default()),
            _ => Err("the model does not think".to_owned()),
        };
    }
    let is_off = match thinking {
        Some(value) => kind(value) == "disabled",
        None => effort == Some("none"),
    };
    if is_off && abilities.always_thinks {
        return Err("the model always thinks".to_owned());
    }
    match thinking {
        Some(value) => by_object(value, effort, abilities, max_tokens),
        None => Ok(effort.map_or_else(Plan::default, |effort| {
            by_effort(effort, abilities, max_tokens)
        })),
    }
}

fn kind(thinking: &Value) -> &str {
    thinking
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The effort as one of the words that are known.
fn word(effort: &Value) -> Result<&'static str, String> {
    let asked = effort.as_str().unwrap_or_default();
    BUDGETS
        .iter()
        .map(|(word, _)| *word)
        .chain(["none"])
        .find(|word| *word == asked)
        .ok_or_else(|| {
            format!(
                "the effort must be none, minimal, low, medium, high, xhigh or max, got {effort}"
            )
        })
}

fn by_object(
    thinking: &Value,
    effort: Option<&'static str>,
    abilities: Abilities,
    max_tokens: u64,
) -> Result<Plan, String> {
    let by_itself = abilities.thinking != Thinking::Budget;
    let effort = effort
        .filter(|effort| by_itself && *effort != "none")
        .map(native_effort);
    let given = Plan {
        thinking: Some(thinking.clone()),
        effort,
    };
    match kind(thinking) {
        "disabled" if by_itself => Ok(given),
        "disabled" => Ok(Plan::default()),
        "adaptive" if by_itself => Ok(given),
        "adaptive" => Ok(budget(USUAL_BUDGET, max_tokens)),
        "enabled" => {
            let tokens = thinking
                .get("budget_tokens")
                .and_then(Value::as_u64)
                .ok_or("`budget_tokens` is missing")?;
            if abilities.thinking == Thinking::AdaptiveOnly {
                return Ok(Plan {
                    thinking: Some(json!({"type": "adaptive"})),
                    effort: Some(effort.unwrap_or(effort_of(tokens))),
                });
            }
            if tokens < LEAST_BUDGET || tokens >= max_tokens {
                return Err(format!(
                    "`budget_tokens` must be at least {LEAST_BUDGET} and below `max_tokens`, got {tokens} with {max_tokens}"
                ));
            }
            Ok(given)
        }
        _ => Err(format!(
            "its `type` must be enabled, adaptive or disabled, got {thinking}"
        )),
    }
}

fn by_effort(effort: &'static str, abilities: Abilities, max_tokens: u64) -> Plan {
    let by_itself = abilities.thinking != Thinking::Budget;
    if effort == "none" {
        // What thinks unasked must be told not to.
        return Plan {
            thinking: by_itself.then(|| json!({"type": "disabled"})),
            effort: None,
        };
    }
    if by_itself {
        return Plan {
            // Without the display, newer models give their thoughts without words.
            thinking: Some(json!({"type": "adaptive", "display": "summarized"})),
            effort: Some(native_effort(effort)),
        };
    }
    let tokens = BUDGETS
        .iter()
        .find(|(word, _)| *word == effort)
        .map_or(USUAL_BUDGET, |(_, tokens)| *tokens);
    budget(tokens, max_tokens)
}

/// A budget that leaves room for the reply, or no thinking where there is none.
fn budget(tokens: u64, max_tokens: u64) -> Plan {
    let tokens = tokens.min(max_tokens.saturating_sub(1));
    if tokens < LEAST_BUDGET {
        tracing::warn!(max_tokens, "no room for thinking: it is left out");
        return Plan::default();
    }
    Plan {
        thinking: Some(json!({"type": "enabled", "budget_tokens": tokens})),
        effort: None,
    }
}

fn native_effort(effort: &'static str) -> &'static str {
    if effort == "minimal" { "low" } else { effort }
}

/// The effort that a budget stands for.
fn effort_of(tokens: u64) -> &'static str {
    match tokens {
        0..=1024 => "low",
        1025..=2048 => "medium",
        2049..=4096 => "high",
        4097..=8192 => "xhigh",
        _ => "max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::family::abilities;

    fn ask(model: &str, thinking: Value, effort: Value, max_tokens: u64) -> Result<Plan, String> {
        let given = |value: Value| (!value.is_null()).then_some(value);
        let (thinking, effort) = (given(thinking), given(effort));
        plan(
            thinking.as_ref(),
            effort.as_ref(),
            abilities(model),
            max_tokens,
        )
    }

    #[test]
    fn a_budget_fits_into_the_reply() {
        let tokens = |max_tokens| {
            let plan = ask("claude-sonnet-4-5", Value::Null, json!("high"), max_tokens).unwrap();
            plan.thinking
                .map(|thinking| thinking["budget_tokens"].as_u64().unwrap())
        };
        assert_eq!(tokens(64_000), Some(4096));
        assert_eq!(tokens(4096), Some(4095));
        assert_eq!(tokens(1025), Some(1024));
        assert_eq!(tokens(1024), None);
    }

    #[test]
    fn a_budget_that_cannot_be_is_refused() {
        let enabled = |tokens| json!({"type": "enabled", "budget_tokens": tokens});
        for (tokens, max_tokens) in [(2048, 2048), (1000, 4096)] {
            let error = ask(
                "claude-sonnet-4-5",
                enabled(tokens),
                Value::Null,
                max_tokens,
            )
            .unwrap_err();
            assert!(
                error.contains(&format!("got {tokens} with {max_tokens}")),
                "{error}"
            );
        }
        let effort = ask("claude-opus-4-7", enabled(9000), Value::Null, 64_000)
            .unwrap()
            .effort;
        assert_eq!(effort, Some("max"));
    }

    #[test]
    fn older_models_do_not_think_at_all() {
        let old = "claude-3-5-sonnet-20241022";
        assert!(ask(old, Value::Null, json!("low"), 8192).is_err());
        assert_eq!(
            ask(old, Value::Null, json!("none"), 8192),
            Ok(Plan::default())
        );
        assert!(
            ask("claude-opus-5", Value::Null, json!("lots"), 9)
                .unwrap_err()
                .contains("\"lots\"")
        );
    }
}
