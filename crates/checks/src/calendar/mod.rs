//! `calendar_field_check`: the events of an `.ics` file (§6.4.4).

mod checks;
mod events;

use formats::diff::ChangeKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::checks::{Check, Ground};
use self::events::Event;
use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::{Side, display_path};
use settings::problem::Findings;
use settings::{NoSettings, number};

/// Settings of `calendar_field_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CalendarValues {
    /// What is checked: `Event Exists`, `Event Exists on Date`, `Event Time Matches`,
    /// `Event Count`, `Event Duration`, `Event Has Location`, `Event Is Recurring`,
    /// `Event Recurrence Pattern`, `Event Recurrence Days`, `No Events on Date`, `No Conflicts`,
    /// `Event Was Created`, `Event Was Deleted`, `No Events Deleted` or `No Events Modified`.
    field_to_check: String,
    /// A part of the event's summary.
    #[serde(default)]
    event_summary: String,
    /// The day: `2025-01-31`, `01/31/2025` or `January 31, 2025`.
    #[serde(default)]
    expected_date: String,
    /// The time: `14:00` or `2 PM`.
    #[serde(default)]
    expected_time: String,
    /// A number of events or minutes, a location, a frequency or a list of days.
    #[serde(default)]
    expected_value: Value,
    /// Minutes by which a time may differ.
    #[serde(default = "five", deserialize_with = "number")]
    tolerance_minutes: f64,
}

const fn five() -> f64 {
    5.0
}

pub(crate) struct CalendarFieldCheck;

impl Eval for CalendarFieldCheck {
    type Values = CalendarValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "calendar_field_check"
    }

    fn about(&self) -> &'static str {
        "the events of a calendar file are as expected"
    }

    fn check(&self, values: &CalendarValues, _: &NoSettings, findings: &mut Findings) {
        match Check::named(&values.field_to_check) {
            None => {
                let rule = format!("unknown check; known are {}", Check::names());
                findings.error("field_to_check", rule, values.field_to_check.as_str());
            }
            Some(check) => check.check(values, findings),
        }
    }

    async fn evaluate(
        &self,
        values: &CalendarValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let Some(check) = Check::named(&values.field_to_check) else {
            return Err(EvalError::config("`field_to_check`: unknown check"));
        };
        let changes = case.evidence.changes().await?;
        let calendars = || {
            let artifacts = changes.artifacts.iter();
            artifacts.filter(|artifact| artifact.extension() == "ics")
        };
        let changed = calendars()
            .find(|artifact| artifact.change != ChangeKind::Deleted)
            .map(|artifact| artifact.path.clone());
        let was_deleted = calendars().any(|artifact| artifact.change == ChangeKind::Deleted);
        let found = read(Side::Final, changed, case).await?;
        let Some((file, events)) = found else {
            let rationale = if was_deleted {
                "the calendar was deleted"
            } else {
                "the world has no calendar file"
            };
            return Ok(verdict(check, false, rationale.to_owned(), None));
        };
        let events = match events {
            Ok(events) => events,
            // The agent left it so: that is no obstacle to a verdict.
            Err(reason) => {
                let rationale = format!("`{file}` is no calendar: {reason}");
                return Ok(verdict(check, false, rationale, None));
            }
        };
        let before = read(Side::Initial, Some(file.clone()), case).await?;
        let ground = Ground {
            events: &events,
            before: before
                .as_ref()
                .and_then(|(_, events)| events.as_deref().ok()),
        };
        let (passed, rationale) = check.holds(values, &ground);
        let mut verdict = verdict(check, passed, rationale, Some(&file));
        let count = events.len().into();
        verdict.values.insert("event_count".to_owned(), count);
        Ok(verdict)
    }
}

fn verdict(check: Check, passed: bool, rationale: String, file: Option<&str>) -> Verdict {
    let values = json!({
        "check": check.name(), "passed": passed, "rationale": rationale, "calendar_file": file,
    });
    Verdict::new(passed, object(values)).with_message(rationale)
}

/// A calendar of the world and its events: the one that people know as `named`, else the first by
/// path.
async fn read(
    side: Side,
    named: Option<String>,
    case: &Case,
) -> Result<Option<(String, Result<Vec<Event>, String>)>, EvalError> {
    case.evidence
        .in_world::<_, EvalError>(side, move |world, limits| {
            let found = world.entries().iter().find_map(|entry| {
                let path = display_path(entry.path()).filter(|_| entry.is_file())?;
                let fits = match &named {
                    Some(named) => path == *named,
                    None => extract::extension(&path) == "ics",
                };
                fits.then_some((path, entry))
            });
            let Some((path, entry)) = found else {
                return Ok(None);
            };
            let bytes = world
                .read_entry(entry, limits.file_bytes)
                .map_err(|error| EvalError::helper(error.to_string()))?;
            let events = events::read(&String::from_utf8_lossy(&bytes));
            Ok(Some((path, events)))
        })
        .await
}
