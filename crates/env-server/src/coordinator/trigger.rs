//! Whether an event happens now: triggers with what they have seen so far.

use std::time::Duration;

use mcp_gateway::ToolCall;
use serde_json::{Value, json};

use super::config::{ArgumentCondition, Operator, ResultCondition, Selector, Step, Trigger};

/// A trigger of one event, and the calls that count for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Watch {
    /// Holds from the call with this number on.
    Seen {
        selector: Selector,
        by: Option<u64>,
    },
    Count {
        selector: Selector,
        needed: u64,
        seen: u64,
    },
    Elapsed(Duration),
    And(Vec<Watch>),
    Or(Vec<Watch>),
    Never,
}

impl Watch {
    pub(super) fn new(trigger: Trigger) -> Self {
        let several = |triggers: Vec<Trigger>| triggers.into_iter().map(Self::new).collect();
        match trigger {
            Trigger::ToolCallSeen { selector } => Self::Seen { selector, by: None },
            Trigger::ToolCallCount { selector, count } => Self::Count {
                selector,
                needed: count.get(),
                seen: 0,
            },
            Trigger::PhysicalTimeElapsed { after_seconds } => Self::Elapsed(after_seconds.0),
            Trigger::And { triggers } => Self::And(several(triggers.0)),
            Trigger::Or { triggers } => Self::Or(several(triggers.0)),
            Trigger::Unknown => Self::Never,
        }
    }

    /// Takes a call into account.
    pub(super) fn note(&mut self, sequence: u64, call: &ToolCall) {
        match self {
            Self::Seen { selector, by } => {
                if by.is_none() && selects(selector, call) {
                    *by = Some(sequence);
                }
            }
            Self::Count { selector, seen, .. } => {
                if selects(selector, call) {
                    *seen += 1;
                }
            }
            Self::And(several) | Self::Or(several) => {
                for one in several {
                    one.note(sequence, call);
                }
            }
            Self::Elapsed(_) | Self::Never => {}
        }
    }

    /// What holds, so long after the beginning of the run; `None` where it does not.
    pub(super) fn holds(&self, elapsed: Duration) -> Option<Value> {
        match self {
            Self::Seen { by, .. } => {
                (*by).map(|sequence| json!({"type": "tool_call_seen", "sequence": sequence}))
            }
            Self::Count { needed, seen, .. } => {
                (seen >= needed).then(|| json!({"type": "tool_call_count", "count": seen}))
            }
            Self::Elapsed(after) => (elapsed >= *after).then(
                || json!({"type": "physical_time_elapsed", "elapsed_seconds": elapsed.as_secs_f64()}),
            ),
            Self::And(several) => {
                let all: Option<Vec<Value>> =
                    several.iter().map(|one| one.holds(elapsed)).collect();
                all.map(|all| json!({"type": "and", "triggers": all}))
            }
            Self::Or(several) => several
                .iter()
                .find_map(|one| one.holds(elapsed))
                .map(|one| json!({"type": "or", "triggers": [one]})),
            Self::Never => None,
        }
    }
}

fn selects(selector: &Selector, call: &ToolCall) -> bool {
    let by_name = selector.tool_name.as_ref().is_none_or(|name| {
        let before = call.tool.strip_suffix(name.as_str());
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    });
    let by_actor = selector
        .actor_id
        .as_ref()
        .is_none_or(|actor| *actor == call.actor);
    by_name && by_actor && selects_contents(selector, call)
}

/// Deliveries that the result tells of decide where conditions ask for some; else the arguments.
fn selects_contents(selector: &Selector, call: &ToolCall) -> bool {
    let known: Vec<&ResultCondition> = selector
        .conditions
        .iter()
        .filter(|condition| !matches!(condition, ResultCondition::Unknown))
        .collect();
    let stamps = call.outcome.as_ref().ok().and_then(stamps);
    match stamps {
        Some(stamps) if !known.is_empty() => stamps
            .iter()
            .any(|stamp| known.iter().all(|condition| stamp.satisfies(condition))),
        _ => selector
            .argument_conditions
            .iter()
            .all(|condition| argument_holds(condition, &call.arguments)),
    }
}

#[derive(serde::Deserialize)]
struct Stamp {
    channel_key: String,
    actor_ids: Vec<String>,
}

impl Stamp {
    fn satisfies(&self, condition: &ResultCondition) -> bool {
        match condition {
            ResultCondition::Channel { channel_key } => self.channel_key == *channel_key,
            ResultCondition::DeliveryStamp { actor_ids } => {
                self.actor_ids.iter().any(|actor| actor_ids.contains(actor))
            }
            ResultCondition::Unknown => true,
        }
    }
}

/// The deliveries of a result; `None` where there are none, or they cannot be read.
fn stamps(result: &Value) -> Option<Vec<Stamp>> {
    let list = result.get("structuredContent")?.get("delivery_stamps")?;
    let stamps: Vec<Stamp> = serde_json::from_value(list.clone()).ok()?;
    (!stamps.is_empty()).then_some(stamps)
}

fn argument_holds(condition: &ArgumentCondition, arguments: &Value) -> bool {
    let found = condition
        .path
        .0
        .iter()
        .try_fold(arguments, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        });
    let Some(found) = found else {
        return false;
    };
    match condition.operator {
        Operator::Exists => true,
        Operator::Equals => same(found, &condition.value),
        Operator::Contains => match (found, &condition.value) {
            (Value::Array(items), value) => items.iter().any(|item| same(item, value)),
            (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
            _ => false,
        },
    }
}

/// Whether two values are equal, where `1` and `1.0` are one number: models write either.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let either_is_fractional = one.is_f64() || other.is_f64();
            one == other || (either_is_fractional && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_kinds_are_told_apart() {
        for (one, other) in [
            (json!(1), json!(1.0)),
            (json!({"a": [1, {"b": 2.0}]}), json!({"a": [1.0, {"b": 2}]})),
            (json!("x"), json!("x")),
        ] {
            assert!(same(&one, &other), "{one} {other}");
        }
        for (one, other) in [
            (json!(1), json!(true)),
            (json!(1), json!("1")),
            (
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992_u64),
            ),
            (json!([1]), json!([1, 1])),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"a": null}), json!({"b": null})),
        ] {
            assert!(!same(&one, &other), "{one} {other}");
        }
    }

    fn call(tool: &str, arguments: Value, outcome: Result<Value, String>) -> ToolCall {
        ToolCall::new("target_agent", tool, arguments, outcome)
    }

    fn watch(trigger: Value) -> Watch {
        Watch::new(serde_json::from_value(trigger).unwrap())
    }

    #[expect(clippy::needless_pass_by_value, reason = "made where it is used")]
    fn seen(selector: Value, call: &ToolCall) -> bool {
        let mut watch = watch(json!({"type": "tool_call_seen", "selector": selector}));
        watch.note(7, call);
        watch.holds(Duration::ZERO).is_some()
    }

    #[test]
    fn names_match_whole_or_after_an_underscore() {
        let send = call("mail_send", json!({}), Ok(json!({})));
        assert!(seen(json!({}), &send));
        assert!(seen(json!({"tool_name": "mail_send"}), &send));
        assert!(seen(
            json!({"tool_name": "send", "actor_id": "target_agent"}),
            &send
        ));
        assert!(!seen(json!({"tool_name": "end"}), &send));
        assert!(!seen(json!({"tool_name": "mail"}), &send));
        assert!(!seen(
            json!({"tool_name": "send", "actor_id": "coordinator"}),
            &send
        ));
    }

    #[test]
    fn arguments() {
        let made = call(
            "t",
            json!({"to": ["ann", {"name": "bob"}], "text": "see you", "n": 1}),
            Err("failed".to_owned()),
        );
        for (condition, right) in [
            (
                json!({"path": ["n"], "operator": "equals", "value": 1}),
                true,
            ),
            (
                json!({"path": ["n"], "operator": "equals", "value": 2}),
                false,
            ),
            (
                json!({"path": ["to", 1, "name"], "operator": "equals", "value": "bob"}),
                true,
            ),
            (
                json!({"path": ["to"], "operator": "contains", "value": "ann"}),
                true,
            ),
            (
                json!({"path": ["to"], "operator": "contains", "value": "an"}),
                false,
            ),
            (
                json!({"path": ["text"], "operator": "contains", "value": "you"}),
                true,
            ),
            (json!({"path": ["to", 5], "operator": "exists"}), false),
            (json!({"path": ["text"], "operator": "exists"}), true),
        ] {
            let selector = json!({"argument_conditions": [condition.clone()]});
            assert_eq!(seen(selector, &made), right, "{condition}");
        }
    }

    #[test]
    fn deliveries_decide_where_there_are_any() {
        let stamps = json!({"structuredContent": {"delivery_stamps": [
            {"channel_key": "mail", "actor_ids": ["ann"]},
            {"channel_key": "chat", "actor_ids": ["bob", "cid"]},
        ]}});
        let delivered = call("t", json!({"n": 1}), Ok(stamps));
        let silent = call("t", json!({"n": 1}), Ok(json!({"content": []})));
        let channel = |key: &str| json!({"kind": "channel", "channel_key": key});
        let reaches = |actor: &str| json!({"kind": "delivery_stamp", "actor_ids": [actor]});
        let wrong = json!([{"path": ["n"], "operator": "equals", "value": 2}]);
        let selector =
            |conditions: Value| json!({"conditions": conditions, "argument_conditions": wrong});
        assert!(seen(
            selector(json!([channel("chat"), reaches("cid")])),
            &delivered
        ));
        // No one delivery is both.
        assert!(!seen(
            selector(json!([channel("mail"), reaches("cid")])),
            &delivered
        ));
        assert!(!seen(selector(json!([channel("chat")])), &silent));
        let unknown = selector(json!([{"kind": "moon"}]));
        assert!(!seen(unknown, &delivered), "then the arguments decide");
        let right = json!({"conditions": [channel("x")], "argument_conditions": [{"path": ["n"], "operator": "exists"}]});
        assert!(seen(right, &silent));
    }

    #[test]
    fn counts_times_and_their_combinations() {
        let mut watch = watch(json!({"type": "and", "triggers": [
            {"type": "tool_call_count", "selector": {"tool_name": "a"}, "count": 2},
            {"type": "or", "triggers": [
                {"type": "unknown"},
                {"type": "physical_time_elapsed", "after_seconds": 0.5},
            ]},
        ]}));
        let late = Duration::from_millis(500);
        for (number, tool) in [(1, "a"), (2, "b"), (3, "x_a")] {
            assert_eq!(watch.holds(late), None);
            watch.note(number, &call(tool, Value::Null, Ok(json!({}))));
        }
        assert_eq!(watch.holds(Duration::from_millis(499)), None);
        assert_eq!(
            watch.holds(late).unwrap(),
            json!({"type": "and", "triggers": [
                {"type": "tool_call_count", "count": 2},
                {"type": "or", "triggers": [{"type": "physical_time_elapsed", "elapsed_seconds": 0.5}]},
            ]})
        );
    }
}
