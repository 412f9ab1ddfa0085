//! What a task wants its world to do by itself (`spec/environment.md` §17.1).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// `coordinator_config` of `POST /apps`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct CoordinatorConfig {
    #[serde(default)]
    pub(super) enabled: bool,
    /// Names the run. Events of one run happen once, also across restarts.
    #[serde(default)]
    pub(super) run_id: Option<String>,
    /// Virtual coworkers. This environment runs none; see [`Action::InvokeAgent`].
    #[serde(default)]
    pub(super) agents: BTreeMap<String, Value>,
    #[serde(default = "default_checkpoints")]
    pub(super) checkpoints: Vec<Checkpoint>,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

fn default_checkpoints() -> Vec<Checkpoint> {
    vec![
        Checkpoint::ToolCall,
        Checkpoint::Periodic {
            interval_seconds: Interval(Duration::from_secs(1)),
        },
    ]
}

/// When triggers are looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Checkpoint {
    ToolCall,
    Periodic { interval_seconds: Interval },
}

/// Something that happens at most once in a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Event {
    pub(super) event_id: EventId,
    #[serde(default = "yes")]
    pub(super) enabled: bool,
    pub(super) trigger: Trigger,
    #[serde(default)]
    pub(super) actions: Vec<Action>,
}

const fn yes() -> bool {
    true
}

/// When an event happens. One of a type that is not known here never holds.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Trigger {
    ToolCallSeen {
        selector: Selector,
    },
    ToolCallCount {
        selector: Selector,
        count: NonZeroU64,
    },
    PhysicalTimeElapsed {
        after_seconds: Seconds,
    },
    And {
        triggers: Several,
    },
    Or {
        triggers: Several,
    },
    #[serde(other)]
    Unknown,
}

/// Which calls count.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
pub(super) struct Selector {
    /// The served name, or what it ends with after a `_`.
    #[serde(default)]
    pub(super) tool_name: Option<String>,
    #[serde(default)]
    pub(super) actor_id: Option<String>,
    #[serde(default)]
    pub(super) argument_conditions: Vec<ArgumentCondition>,
    /// On the result.
    #[serde(default)]
    pub(super) conditions: Vec<ResultCondition>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ArgumentCondition {
    pub(super) path: ArgumentPath,
    pub(super) operator: Operator,
    #[serde(default)]
    pub(super) value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operator {
    Equals,
    Contains,
    Exists,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Step {
    Index(usize),
    Key(String),
}

/// What a delivery that a result tells of has to be. One of a kind that is not known here does not
/// count.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ResultCondition {
    Channel {
        channel_key: String,
    },
    DeliveryStamp {
        actor_ids: Vec<String>,
    },
    #[serde(other)]
    Unknown,
}

/// What an event does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Action {
    CallMcpTool {
        action_id: String,
        actor_id: String,
        tool_name: String,
        #[serde(default)]
        arguments: Map<String, Value>,
        #[serde(default)]
        on_failure: OnFailure,
    },
    /// Starts a coworker, of which there are none here: it is accepted, so that the rest of a world
    /// works, and fails when its turn comes, saying so.
    InvokeAgent {
        action_id: String,
        actor_id: String,
        #[serde(default)]
        on_failure: OnFailure,
    },
}

/// What the failure of an action means for those after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnFailure {
    #[default]
    Abort,
    Continue,
}

/// The name of an event, which is also that of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct EventId(pub(super) String);

impl TryFrom<String> for EventId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        let is_name = !id.is_empty()
            && id.len() <= 200
            && !id.starts_with('.')
            && !id.contains(['/', '\\', '\0']);
        if is_name {
            Ok(Self(id))
        } else {
            Err(format!(
                "event_id `{id}` cannot be the name of a file: 1 to 200 bytes, no slash, no dot at the beginning"
            ))
        }
    }
}

/// Seconds, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Seconds(pub(super) Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        Duration::try_from_secs_f64(seconds)
            .map(Self)
            .map_err(|_| format!("seconds have to be 0 or more, got {seconds}"))
    }
}

/// Seconds, more than 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub(super) struct Interval(pub(super) Duration);

/// More often than this nothing is looked at.
const SHORTEST: Duration = Duration::from_millis(10);

impl TryFrom<f64> for Interval {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(interval) if seconds > 0.0 => Ok(Self(interval.max(SHORTEST))),
            _ => Err(format!(
                "an interval has to be more than 0 seconds, got {seconds}"
            )),
        }
    }
}

/// One trigger or more.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Trigger>")]
pub(super) struct Several(pub(super) Vec<Trigger>);

impl TryFrom<Vec<Trigger>> for Several {
    type Error = &'static str;

    fn try_from(triggers: Vec<Trigger>) -> Result<Self, &'static str> {
        if triggers.is_empty() {
            return Err("triggers cannot be empty");
        }
        Ok(Self(triggers))
    }
}

/// Keys and indexes that lead to a part of the arguments.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Step>")]
pub(super) struct ArgumentPath(pub(super) Vec<Step>);

impl TryFrom<Vec<Step>> for ArgumentPath {
    type Error = &'static str;

    fn try_from(steps: Vec<Step>) -> Result<Self, &'static str> {
        if steps.is_empty() {
            return Err("path cannot be empty");
        }
        Ok(Self(steps))
    }
}

impl CoordinatorConfig {
    /// What cannot be seen of one event alone.
    pub(super) fn check(&self, max_events: usize) -> Result<(), String> {
        if self.events.len() > max_events {
            return Err(format!(
                "got {} events, allowed are {max_events} (max_events)",
                self.events.len()
            ));
        }
        let mut ids: Vec<&EventId> = self.events.iter().map(|event| &event.event_id).collect();
        ids.sort();
        match ids.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("event_id `{}` occurs twice", pair[0].0)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn trigger(value: Value) -> Result<Trigger, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_trigger_is_kept_and_a_malformed_one_refused() {
        let unknown = json!({"type": "moon_phase", "phase": "full", "nested": {"a": [1]}});
        assert_eq!(trigger(unknown).unwrap(), Trigger::Unknown);
        for (wrong, word) in [
            (json!({"type": "tool_call_seen"}), "selector"),
            (
                json!({"type": "tool_call_count", "selector": {}, "count": 0}),
                "nonzero",
            ),
            (
                json!({"type": "physical_time_elapsed", "after_seconds": -1}),
                "0 or more",
            ),
            (json!({"type": "and", "triggers": []}), "empty"),
            (
                json!({"type": "or", "triggers": [{"type": "or", "triggers": []}]}),
                "empty",
            ),
            (
                json!({"type": "tool_call_seen", "selector": {"argument_conditions": [{"path": [], "operator": "exists"}]}}),
                "path",
            ),
        ] {
            let error = trigger(wrong.clone()).unwrap_err();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

    #[test]
    fn names_of_events_are_names_of_files_and_occur_once() {
        let config = |ids: &[&str]| {
            let events: Vec<Value> = ids
                .iter()
                .map(|id| json!({"event_id": id, "trigger": {"type": "x"}}))
                .collect();
            serde_json::from_value::<CoordinatorConfig>(json!({"events": events}))
        };
        assert!(config(&["a", "b c"]).unwrap().check(2).is_ok());
        assert!(
            config(&["a", "b"])
                .unwrap()
                .check(1)
                .unwrap_err()
                .contains("max_events")
        );
        assert!(
            config(&["a", "a"])
                .unwrap()
                .check(9)
                .unwrap_err()
                .contains("`a`")
        );
        for wrong in ["", "../up", "a/b", ".", ".hidden"] {
            assert!(config(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn defaults() {
        let config: CoordinatorConfig = serde_json::from_value(json!({})).unwrap();
        assert!(!config.enabled);
        assert_eq!(config.checkpoints, default_checkpoints());
    }
}
