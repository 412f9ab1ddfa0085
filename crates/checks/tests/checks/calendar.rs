//! Events of a calendar.

use formats::grades::{VerifierResult, VerifierStatus};
use serde_json::{Value, json};

use crate::case::Case;

const CALENDAR: &str = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nSUMMARY:Team meeting\nLOCATION:Room 5\n\
    DTSTART:20250131T140000\nDTEND:20250131T150000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE\nEND:VEVENT\n\
    BEGIN:VEVENT\nUID:2\nSUMMARY:Holiday\nDTSTART;VALUE=DATE:20250201\nEND:VEVENT\nEND:VCALENDAR\n";

async fn checked(case: &mut Case, check: &str, mut values: Value) -> VerifierResult {
    case.verifiers.clear();
    values["field_to_check"] = json!(check);
    case.verifier("calendar_field_check", values);
    case.result().await
}

#[tokio::test]
async fn events_of_a_calendar_are_checked() {
    let before = CALENDAR
        .replace("UID:2", "UID:9")
        .replace("T140000", "T130000");
    let mut case = Case::new("done");
    case.worlds(
        &[("cal.ics", before.as_bytes())],
        &[("cal.ics", CALENDAR.as_bytes())],
    );
    for (check, values, score) in [
        ("Event Exists", json!({"event_summary": "team"}), 1.0),
        ("Event Exists", json!({"event_summary": "board"}), 0.0),
        (
            "event exists on date → x",
            json!({"event_summary": "holiday", "expected_date": "02/01/2025"}),
            1.0,
        ),
        (
            "Event Exists on Date",
            json!({"event_summary": "team", "expected_date": "February 1, 2025"}),
            0.0,
        ),
        (
            "Event Time Matches",
            json!({"event_summary": "team", "expected_time": "2:05 PM"}),
            1.0,
        ),
        (
            "Event Time Matches",
            json!({"event_summary": "team", "expected_time": "2:06 PM"}),
            0.0,
        ),
        (
            "Event Time Matches",
            json!({"event_summary": "holiday", "expected_time": "00:00"}),
            0.0,
        ),
        ("Event Count", json!({"expected_value": "2"}), 1.0),
        (
            "Event Duration",
            json!({"event_summary": "team", "expected_value": 59}),
            1.0,
        ),
        (
            "Event Duration",
            json!({"event_summary": "team", "expected_value": 58}),
            0.0,
        ),
        (
            "Event Has Location",
            json!({"event_summary": "team", "expected_value": "room"}),
            1.0,
        ),
        (
            "Event Is Recurring",
            json!({"event_summary": "holiday"}),
            0.0,
        ),
        (
            "Event Recurrence Pattern",
            json!({"event_summary": "team", "expected_value": "weekly"}),
            1.0,
        ),
        (
            "Event Recurrence Days",
            json!({"event_summary": "team", "expected_value": "we, mo"}),
            1.0,
        ),
        (
            "No Events on Date",
            json!({"expected_date": "2025-01-30"}),
            1.0,
        ),
        ("No Conflicts", json!({}), 1.0),
        (
            "Event Was Created",
            json!({"event_summary": "holiday"}),
            1.0,
        ),
        ("Event Was Created", json!({"event_summary": "team"}), 0.0),
        (
            "Event Was Deleted",
            json!({"event_summary": "holiday"}),
            1.0,
        ),
        ("No Events Deleted", json!({}), 0.0),
        ("No Events Modified", json!({}), 0.0),
    ] {
        let result = checked(&mut case, check, values.clone()).await;
        assert_eq!(result.status, VerifierStatus::Ok, "{check}: {result:?}");
        assert_eq!(result.score, score, "{check} {values}: {result:?}");
        assert_eq!(result.verifier_result_values["event_count"], 2);
        assert_eq!(result.verifier_result_values["calendar_file"], "cal.ics");
    }
    // A calendar that did not change is looked at all the same.
    case.worlds(
        &[("cal.ics", CALENDAR.as_bytes())],
        &[("cal.ics", CALENDAR.as_bytes())],
    );
    let result = case.result().await;
    assert_eq!(result.score, 1.0, "{result:?}");
    // What the agent broke or deleted is its fail.
    case.worlds(
        &[("cal.ics", CALENDAR.as_bytes())],
        &[("cal.ics", b"gone wrong")],
    );
    assert_eq!(case.result().await.score, 0.0);
    case.worlds(&[("cal.ics", CALENDAR.as_bytes())], &[]);
    let result = case.result().await;
    assert!(result.message.contains("deleted"), "{}", result.message);
    for (check, values) in [
        ("Event Colour", json!({})),
        ("Event Exists", json!({})),
        (
            "Event Exists on Date",
            json!({"event_summary": "x", "expected_date": "soon"}),
        ),
        ("Event Count", json!({"expected_value": "many"})),
    ] {
        let result = checked(&mut case, check, values).await;
        assert_eq!(
            result.verifier_result_values["error_kind"], "config",
            "{check}"
        );
    }
}

/// The other side of each rule, and calendars that were not there before.
#[tokio::test]
async fn what_is_not_as_expected_fails() {
    let overlapping = CALENDAR.replace(
        "END:VCALENDAR",
        "BEGIN:VEVENT\nUID:3\nSUMMARY:Call\nDTSTART:20250131T145900\nDTEND:20250131T151000\nEND:VEVENT\nEND:VCALENDAR",
    );
    let mut case = Case::new("done");
    let new = |case: &mut Case, before: Option<&str>, after: &str| {
        let before: Vec<(&str, &[u8])> = before
            .map(|text| ("cal.ics", text.as_bytes()))
            .into_iter()
            .collect();
        case.worlds(&before, &[("cal.ics", after.as_bytes())]);
    };
    let (there, absent) = (Some(CALENDAR), None);
    for (before, after, check, values, score) in [
        (
            there,
            CALENDAR,
            "Event Count",
            json!({"expected_value": 3}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "Event Has Location",
            json!({"event_summary": "team", "expected_value": "room 6"}),
            0.0,
        ),
        // An empty location is part of every one.
        (
            there,
            CALENDAR,
            "Event Has Location",
            json!({"event_summary": "holiday"}),
            1.0,
        ),
        (
            there,
            CALENDAR,
            "Event Is Recurring",
            json!({"event_summary": "TEAM"}),
            1.0,
        ),
        (
            there,
            CALENDAR,
            "Event Recurrence Pattern",
            json!({"event_summary": "team", "expected_value": "DAILY"}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "Event Recurrence Pattern",
            json!({"event_summary": "holiday", "expected_value": "WEEKLY"}),
            0.0,
        ),
        // All days, and no others.
        (
            there,
            CALENDAR,
            "Event Recurrence Days",
            json!({"event_summary": "team", "expected_value": "MO"}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "Event Recurrence Days",
            json!({"event_summary": "team", "expected_value": "MO,WE,FR"}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "No Events on Date",
            json!({"expected_date": "1/31/25"}),
            0.0,
        ),
        (there, &overlapping, "No Conflicts", json!({}), 0.0),
        // On another day the time does not matter.
        (
            there,
            CALENDAR,
            "Event Time Matches",
            json!({"event_summary": "team", "expected_time": "14:00", "expected_date": "2025-02-01"}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "Event Time Matches",
            json!({"event_summary": "team", "expected_time": "13:00", "tolerance_minutes": 60}),
            1.0,
        ),
        // No event of it has a length.
        (
            there,
            CALENDAR,
            "Event Duration",
            json!({"event_summary": "holiday", "expected_value": 0}),
            0.0,
        ),
        (
            there,
            CALENDAR,
            "Event Was Deleted",
            json!({"event_summary": "team"}),
            0.0,
        ),
        (there, CALENDAR, "No Events Deleted", json!({}), 1.0),
        (there, CALENDAR, "No Events Modified", json!({}), 1.0),
        (there, &overlapping, "No Events Modified", json!({}), 1.0),
        (
            there,
            &overlapping,
            "Event Was Created",
            json!({"event_summary": "call"}),
            1.0,
        ),
        // Without a calendar before, all is new, nothing was deleted, nothing modified.
        (
            absent,
            CALENDAR,
            "Event Was Created",
            json!({"event_summary": "team"}),
            1.0,
        ),
        (
            absent,
            CALENDAR,
            "Event Was Deleted",
            json!({"event_summary": "team"}),
            0.0,
        ),
        (absent, CALENDAR, "No Events Deleted", json!({}), 1.0),
        (absent, CALENDAR, "No Events Modified", json!({}), 1.0),
        // One that was no calendar before is as one that was not there.
        (
            Some("broken"),
            CALENDAR,
            "Event Was Deleted",
            json!({"event_summary": "team"}),
            0.0,
        ),
    ] {
        new(&mut case, before, after);
        let result = checked(&mut case, check, values.clone()).await;
        assert_eq!(result.status, VerifierStatus::Ok, "{check}: {result:?}");
        assert_eq!(result.score, score, "{check} {values}: {result:?}");
        assert_eq!(result.message, result.verifier_result_values["rationale"]);
    }
}
