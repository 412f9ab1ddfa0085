//! The events of an iCalendar file (RFC 5545), as far as checks look at them.

use jiff::civil::{Date, Time};

/// Events of one calendar at most.
const MAX_EVENTS: usize = 100_000;

/// A day, and the time on the clock where it is not the whole day. Time zones are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) date: Date,
    pub(super) time: Option<Time>,
}

impl Moment {
    /// Minutes since a fixed day.
    pub(super) fn minutes(self) -> i64 {
        let time = self.time.unwrap_or(Time::midnight());
        let days = self.date.duration_since(Date::ZERO).as_hours();
        days * 60 + i64::from(time.hour()) * 60 + i64::from(time.minute())
    }
}

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) uid: String,
    pub(super) summary: String,
    pub(super) location: String,
    pub(super) start: Option<Moment>,
    pub(super) end: Option<Moment>,
    /// The recurrence rule as written, in upper case.
    pub(super) rule: String,
}

impl Event {
    /// The value of a part of the recurrence rule, such as `FREQ`.
    pub(super) fn rule_part(&self, name: &str) -> Option<&str> {
        self.rule.split(';').find_map(|part| {
            let (key, value) = part.split_once('=')?;
            (key.trim() == name).then_some(value.trim())
        })
    }
}

/// Reads all events of `text`.
pub(super) fn read(text: &str) -> Result<Vec<Event>, String> {
    let lines = unfolded(text);
    let is_begin = |line: &String| line.trim().eq_ignore_ascii_case("BEGIN:VCALENDAR");
    if !lines.iter().any(is_begin) {
        return Err("it has no `BEGIN:VCALENDAR`".to_owned());
    }
    let mut events = Vec::new();
    let mut open: Option<Event> = None;
    // Components inside of an event, such as alarms, have properties of their own.
    let mut inside = 0_usize;
    for line in &lines {
        let Some((name, value)) = property(line) else {
            continue;
        };
        let component = value.trim().to_uppercase();
        match (name.as_str(), &mut open) {
            ("BEGIN", None) if component == "VEVENT" => open = Some(Event::default()),
            ("BEGIN", Some(_)) => inside += 1,
            ("END", Some(_)) if inside > 0 => inside -= 1,
            ("END", Some(_)) if component == "VEVENT" => {
                if events.len() == MAX_EVENTS {
                    return Err(format!("it has more than {MAX_EVENTS} events"));
                }
                events.extend(open.take());
            }
            (name, Some(event)) if inside == 0 => set(event, name, value),
            _ => {}
        }
    }
    if open.is_some() {
        return Err("an event has no `END:VEVENT`".to_owned());
    }
    Ok(events)
}

fn set(event: &mut Event, name: &str, value: &str) {
    match name {
        "UID" => value.trim().clone_into(&mut event.uid),
        "SUMMARY" => event.summary = unescaped(value),
        "LOCATION" => event.location = unescaped(value),
        "DTSTART" => event.start = moment(value),
        "DTEND" => event.end = moment(value),
        "RRULE" => event.rule = value.trim().to_uppercase(),
        _ => {}
    }
}

/// Lines that go on in the next one, put together.
fn unfolded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(more), Some(last)) => last.push_str(more),
            _ => lines.push(line.trim_start_matches('\u{feff}').to_owned()),
        }
    }
    lines
}

/// Name and value of a line; parameters are left out.
fn property(line: &str) -> Option<(String, &str)> {
    let mut quoted = false;
    let colon = line.char_indices().find_map(|(at, c)| {
        match c {
            '"' => quoted = !quoted,
            ':' if !quoted => return Some(at),
            _ => {}
        }
        None
    })?;
    let name = line[..colon].split(';').next().unwrap_or_default();
    Some((name.trim().to_uppercase(), &line[colon + 1..]))
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(other) => text.push(other),
                None => {}
            },
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

/// `20250131` or `20250131T140000`, with `Z` or without.
fn moment(value: &str) -> Option<Moment> {
    let value = value.trim().trim_end_matches(['Z', 'z']);
    let (date, time) = match value.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (value, None),
    };
    let date = Date::strptime("%Y%m%d", date).ok()?;
    let time = match time {
        Some(time) => Some(
            Time::strptime("%H%M%S", time)
                .or_else(|_| Time::strptime("%H%M", time))
                .ok()?,
        ),
        None => None,
    };
    Some(Moment { date, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALENDAR: &str = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1@x\r\nSUMMARY:Team \r\n meeting\\, weekly\r\n\
        DTSTART;TZID=\"Europe/Berlin:x\":20250131T140000\r\nDTEND:20250131T153000Z\r\n\
        RRULE:FREQ=WEEKLY;BYDAY=MO,WE\r\nBEGIN:VALARM\r\nSUMMARY:not this\r\nEND:VALARM\r\nEND:VEVENT\r\n\
        BEGIN:VEVENT\r\nUID:2\r\nSUMMARY:Holiday\r\nDTSTART;VALUE=DATE:20250201\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

    #[test]
    fn events_are_read_with_folded_lines_and_parameters() {
        let events = read(CALENDAR).unwrap();
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].summary, "Team meeting, weekly");
        let start = events[0].start.unwrap();
        assert_eq!(start.date.to_string(), "2025-01-31");
        assert_eq!(start.time.unwrap().to_string(), "14:00:00");
        let length = events[0].end.unwrap().minutes() - start.minutes();
        assert_eq!(length, 90);
        assert_eq!(events[0].rule_part("BYDAY"), Some("MO,WE"));
        assert_eq!(events[1].start.unwrap().time, None);
    }

    #[test]
    fn what_is_no_calendar_is_said() {
        assert!(read("hello").is_err());
        assert!(read("BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1").is_err());
        assert_eq!(read("BEGIN:VCALENDAR\nEND:VCALENDAR"), Ok(Vec::new()));
    }
}
