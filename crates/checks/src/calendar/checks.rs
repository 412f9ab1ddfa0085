//! What can be checked of a calendar.

use std::collections::{BTreeMap, BTreeSet};

use formats::lenient;
use jiff::civil::{Date, Time};
use serde_json::Value;

use super::CalendarValues;
use super::events::{Event, Moment};
use settings::problem::Findings;

/// A check of a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Exists,
    ExistsOnDate,
    TimeMatches,
    Count,
    Duration,
    HasLocation,
    IsRecurring,
    RecurrencePattern,
    RecurrenceDays,
    NoneOnDate,
    NoConflicts,
    WasCreated,
    WasDeleted,
    NoneDeleted,
    NoneModified,
}

const NAMES: [(&str, Check); 15] = [
    ("Event Exists", Check::Exists),
    ("Event Exists on Date", Check::ExistsOnDate),
    ("Event Time Matches", Check::TimeMatches),
    ("Event Count", Check::Count),
    ("Event Duration", Check::Duration),
    ("Event Has Location", Check::HasLocation),
    ("Event Is Recurring", Check::IsRecurring),
    ("Event Recurrence Pattern", Check::RecurrencePattern),
    ("Event Recurrence Days", Check::RecurrenceDays),
    ("No Events on Date", Check::NoneOnDate),
    ("No Conflicts", Check::NoConflicts),
    ("Event Was Created", Check::WasCreated),
    ("Event Was Deleted", Check::WasDeleted),
    ("No Events Deleted", Check::NoneDeleted),
    ("No Events Modified", Check::NoneModified),
];

/// The calendar after, and before where there was one.
pub(super) struct Ground<'a> {
    pub(super) events: &'a [Event],
    pub(super) before: Option<&'a [Event]>,
}

impl Check {
    /// The check of this name, case and what stands after an arrow aside.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.split(['→']).next().unwrap_or(name);
        let name = name.split("->").next().unwrap_or(name).trim();
        let mut names = NAMES.iter();
        names
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, check)| *check)
    }

    pub(super) fn name(self) -> &'static str {
        let mut names = NAMES.iter();
        names
            .find(|(_, check)| *check == self)
            .map_or("", |(name, _)| name)
    }

    pub(super) fn names() -> String {
        let names: Vec<String> = NAMES.iter().map(|(name, _)| format!("`{name}`")).collect();
        names.join(", ")
    }

    /// Reports settings that this check needs and that are not there.
    pub(super) fn check(self, values: &CalendarValues, findings: &mut Findings) {
        let needs_event = !matches!(
            self,
            Self::Count
                | Self::NoneOnDate
                | Self::NoConflicts
                | Self::NoneDeleted
                | Self::NoneModified
        );
        if needs_event && values.event_summary.trim().is_empty() {
            findings.missing("event_summary", "must not be empty for this check");
        }
        let needs_date = matches!(self, Self::ExistsOnDate | Self::NoneOnDate);
        let given = values.expected_date.trim();
        if (needs_date || !given.is_empty()) && date(given).is_none() {
            let rule = "must be a date such as 2025-01-31, 01/31/2025 or January 31, 2025";
            findings.error("expected_date", rule, given);
        }
        if self == Self::TimeMatches && time(&values.expected_time).is_none() {
            let rule = "must be a time such as 14:00 or 2 PM";
            findings.error("expected_time", rule, values.expected_time.as_str());
        }
        let value = &values.expected_value;
        let is_number = lenient::number(value).is_some();
        if matches!(self, Self::Count | Self::Duration) && !is_number {
            findings.error("expected_value", "must be a number", value.clone());
        }
        let needs_text = matches!(self, Self::RecurrencePattern | Self::RecurrenceDays);
        if needs_text && value.as_str().is_none_or(|text| text.trim().is_empty()) {
            findings.error("expected_value", "must be text", value.clone());
        }
    }

    /// Whether it holds, and why.
    pub(super) fn holds(self, values: &CalendarValues, ground: &Ground<'_>) -> (bool, String) {
        match self {
            Self::NoneOnDate => none_on_date(values, ground.events),
            Self::NoConflicts => no_conflicts(ground.events),
            Self::Count => count(values, ground.events),
            Self::WasCreated | Self::WasDeleted | Self::NoneDeleted | Self::NoneModified => {
                self.compared(values, ground)
            }
            _ => self.of_matching(values, ground.events),
        }
    }

    /// Checks on the events with the wanted summary, of which one has to pass.
    fn of_matching(self, values: &CalendarValues, events: &[Event]) -> (bool, String) {
        let matching: Vec<&Event> = named(events, &values.event_summary).collect();
        let wanted = values.event_summary.trim();
        if matching.is_empty() {
            return (false, format!("no event has `{wanted}` in its summary"));
        }
        let on = date(&values.expected_date);
        let text = match &values.expected_value {
            Value::String(text) => text.trim().to_owned(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let passes = |event: &Event| match self {
            Self::Exists => true,
            Self::ExistsOnDate => on.is_some() && event.start.map(|start| start.date) == on,
            Self::TimeMatches => at_time(event, on, values),
            Self::Duration => length(event)
                .zip(lenient::number(&values.expected_value))
                .is_some_and(|(minutes, wanted)| (minutes - wanted).abs() <= 1.0),
            Self::HasLocation => event.location.to_lowercase().contains(&text.to_lowercase()),
            Self::IsRecurring => !event.rule.is_empty(),
            Self::RecurrencePattern => event.rule_part("FREQ") == Some(&text.to_uppercase()),
            Self::RecurrenceDays => {
                event.rule_part("BYDAY").map(days) == Some(days(&text.to_uppercase()))
            }
            _ => false,
        };
        let count = matching.len();
        if matching.into_iter().any(passes) {
            (
                true,
                format!("an event with `{wanted}` in its summary is as expected"),
            )
        } else {
            let text = format!(
                "none of the {count} events with `{wanted}` in their summary is as expected"
            );
            (false, text)
        }
    }

    /// Checks on what became of events.
    fn compared(self, values: &CalendarValues, ground: &Ground<'_>) -> (bool, String) {
        let before = ground.before.unwrap_or_default();
        let (old, new) = (by_uid(before), by_uid(ground.events));
        let wanted = values.event_summary.trim();
        match self {
            Self::WasCreated => {
                let created =
                    named(ground.events, wanted).any(|e| !old.contains_key(e.uid.as_str()));
                (
                    created,
                    said(
                        created,
                        &format!("a new event has `{wanted}` in its summary"),
                    ),
                )
            }
            Self::WasDeleted if ground.before.is_none() => {
                (false, "there was no calendar before".to_owned())
            }
            Self::WasDeleted => {
                let deleted = named(before, wanted).any(|e| !new.contains_key(e.uid.as_str()));
                (
                    deleted,
                    said(
                        deleted,
                        &format!("an event with `{wanted}` in its summary is gone"),
                    ),
                )
            }
            Self::NoneDeleted => {
                let gone = old.keys().filter(|uid| !new.contains_key(*uid)).count();
                (gone == 0, format!("{gone} events are gone"))
            }
            _ => {
                let changed = old
                    .iter()
                    .filter(|(uid, event)| new.get(*uid).is_some_and(|other| other != *event))
                    .count();
                (changed == 0, format!("{changed} events were changed"))
            }
        }
    }
}

fn said(holds: bool, what: &str) -> String {
    if holds {
        what.to_owned()
    } else {
        format!("not so: {what}")
    }
}

/// The events with `query` in their summary; nothing matches an empty query.
fn named<'a>(events: &'a [Event], query: &str) -> impl Iterator<Item = &'a Event> {
    let query = query.trim().to_lowercase();
    events
        .iter()
        .filter(move |event| !query.is_empty() && event.summary.to_lowercase().contains(&query))
}

fn by_uid(events: &[Event]) -> BTreeMap<&str, &Event> {
    events
        .iter()
        .map(|event| (event.uid.as_str(), event))
        .collect()
}

fn at_time(event: &Event, on: Option<Date>, values: &CalendarValues) -> bool {
    let (Some(start), Some(wanted)) = (event.start, time(&values.expected_time)) else {
        return false;
    };
    let Some(begins) = start.time else {
        return false;
    };
    let minutes = |time: Time| f64::from(time.hour()) * 60.0 + f64::from(time.minute());
    on.is_none_or(|date| date == start.date)
        && (minutes(begins) - minutes(wanted)).abs() <= values.tolerance_minutes
}

/// Minutes from start to end.
#[expect(
    clippy::cast_precision_loss,
    reason = "minutes of a few thousand years"
)]
fn length(event: &Event) -> Option<f64> {
    Some((event.end?.minutes() - event.start?.minutes()) as f64)
}

fn days(list: &str) -> BTreeSet<&str> {
    let days = list.split(',').map(str::trim);
    days.filter(|day| !day.is_empty()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "numbers of events are small")]
fn count(values: &CalendarValues, events: &[Event]) -> (bool, String) {
    let wanted = lenient::number(&values.expected_value);
    let passed = wanted == Some(events.len() as f64);
    (passed, format!("the calendar has {} events", events.len()))
}

fn none_on_date(values: &CalendarValues, events: &[Event]) -> (bool, String) {
    let Some(on) = date(&values.expected_date) else {
        return (false, "`expected_date` is no date".to_owned());
    };
    let starts = |event: &&Event| event.start.is_some_and(|start| start.date == on);
    let found = events.iter().filter(starts).count();
    (found == 0, format!("{found} events begin on {on}"))
}

/// No two events overlap; one may begin when another ends.
fn no_conflicts(events: &[Event]) -> (bool, String) {
    let mut spans: Vec<(i64, i64, &str)> = events
        .iter()
        .filter_map(|event| {
            let (start, end): (Moment, Moment) = (event.start?, event.end?);
            Some((start.minutes(), end.minutes(), event.summary.as_str()))
        })
        .collect();
    spans.sort_unstable();
    let mut latest: Option<(i64, &str)> = None;
    for (start, end, summary) in spans {
        if let Some((busy, other)) = latest
            && start < busy
            && start < end
        {
            return (false, format!("`{other}` and `{summary}` overlap"));
        }
        if latest.is_none_or(|(busy, _)| end > busy) {
            latest = Some((end, summary));
        }
    }
    (true, "no events overlap".to_owned())
}

fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    // A year of two digits is no year of four.
    let short = text.rsplit('/').next().is_some_and(|year| year.len() == 2);
    let formats: &[&str] = if short {
        &["%m/%d/%y"]
    } else {
        &["%Y-%m-%d", "%m/%d/%Y", "%B %d, %Y", "%b %d, %Y"]
    };
    let mut formats = formats.iter();
    formats.find_map(|format| Date::strptime(format, text).ok())
}

fn time(text: &str) -> Option<Time> {
    let lower = text.trim().to_lowercase().replace('.', "");
    let (clock, half) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(clock), _) => (clock.trim(), Some(false)),
        (_, Some(clock)) => (clock.trim(), Some(true)),
        _ => (lower.as_str(), None),
    };
    let (hour, minute) = match clock.split_once(':') {
        Some((hour, rest)) => (hour, rest.split(':').next().unwrap_or(rest)),
        None if half.is_some() => (clock, "0"),
        None => return None,
    };
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
    };
    Time::new(hour, minute, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_of_the_usual_forms() {
        for text in [
            "2025-01-31",
            "01/31/2025",
            "1/31/25",
            "January 31, 2025",
            "Jan 31, 2025",
        ] {
            assert_eq!(date(text).unwrap().to_string(), "2025-01-31", "{text}");
        }
        assert_eq!(date("31.01.2025"), None);
        for text in ["14:00", "2:00 PM", "2pm", "2 p.m."] {
            assert_eq!(time(text).unwrap().to_string(), "14:00:00", "{text}");
        }
        assert_eq!(time("12 AM").unwrap().to_string(), "00:00:00");
        for text in ["14", "25:00", "13 pm", ""] {
            assert_eq!(time(text), None, "{text}");
        }
    }

    fn event(uid: &str, start: &str, end: &str) -> Event {
        let text = format!(
            "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:{uid}\nSUMMARY:{uid}\nDTSTART:{start}\nDTEND:{end}\nEND:VEVENT\nEND:VCALENDAR"
        );
        super::super::events::read(&text).unwrap().remove(0)
    }

    #[test]
    fn events_overlap_only_if_they_share_time() {
        let a = event("a", "20250101T100000", "20250101T120000");
        let b = event("b", "20250101T120000", "20250101T130000");
        let inside = event("c", "20250101T103000", "20250101T104500");
        assert!(no_conflicts(&[b.clone(), a.clone()]).0);
        assert!(!no_conflicts(&[b, inside, a]).0);
    }
}
