//! Reading what a judge replied.
//!
//! A verdict decides a score, so a reply counts only if it says one thing. The reply is JSON, or
//! has JSON in it (in a fence, after prose). An object in it is a verdict if it has all keys of one;
//! where there are several they must agree. Nothing is guessed: a reply that was cut, or whose
//! value is neither true nor false, is no verdict.

use formats::Object;
use serde::Deserialize;
use serde_json::Value;

use crate::ballot::{Decision, Opinion};
use formats::lenient;

/// Reads a verdict on a criterion. `null` (or the word `cannot_assess`) is a verdict only where
/// `may_abstain`.
///
/// # Errors
/// What is wrong with the reply, as half a sentence that the judge is told.
pub fn criterion_verdict(reply: &str, may_abstain: bool) -> Result<Opinion, String> {
    verdict_by("is_criteria_true", "rationale", may_abstain, reply)
}

/// Reads a verdict: the object of the reply with the keys `decision` and `rationale`. Several must
/// agree, and the last one speaks. All its other keys are the details.
///
/// # Errors
/// What is wrong with the reply, as half a sentence that the judge is told.
pub fn verdict_by(
    decision: &str,
    rationale: &str,
    may_abstain: bool,
    reply: &str,
) -> Result<Opinion, String> {
    let objects = objects_with(reply, &[rationale, decision])?;
    let mut opinion: Option<Opinion> = None;
    for object in objects {
        let later = Opinion {
            decision: decided(decision, &object[decision], may_abstain)?,
            rationale: text_of(rationale, &object[rationale])?,
            details: object
                .into_iter()
                .filter(|(key, _)| key != decision && key != rationale)
                .collect(),
        };
        if opinion
            .as_ref()
            .is_some_and(|former| former.decision != later.decision)
        {
            return Err("it holds verdicts that contradict each other".to_owned());
        }
        opinion = Some(later);
    }
    opinion.ok_or_else(|| format!("no JSON object with `{rationale}` and `{decision}` in it"))
}

fn decided(key: &str, word: &Value, may_abstain: bool) -> Result<Decision, String> {
    if may_abstain && (word.is_null() || word == Decision::CannotAssess.as_str()) {
        return Ok(Decision::CannotAssess);
    }
    lenient::flag(word)
        .map(Decision::of)
        .ok_or_else(|| format!("`{key}` must be true or false, got {word}"))
}

/// Reads a verdict of the keys `result` (1 or 0) and `reason`. Several must agree. A reply with
/// backslashes that JSON does not know (as of LaTeX) is read as if they were doubled.
///
/// # Errors
/// What is wrong with the reply, as half a sentence that the judge is told.
pub fn result_verdict(reply: &str, may_abstain: bool) -> Result<Opinion, String> {
    let read = |text: &str| {
        let mut opinion: Option<Opinion> = None;
        for object in objects_with(text, &["result", "reason"])? {
            let later = Opinion {
                decision: result(&object["result"], may_abstain)?,
                rationale: text_of("reason", &object["reason"])?,
                details: Object::new(),
            };
            if opinion
                .as_ref()
                .is_some_and(|o| o.decision != later.decision)
            {
                return Err("it holds verdicts that contradict each other".to_owned());
            }
            opinion = Some(later);
        }
        opinion.ok_or_else(|| "no JSON object with `result` and `reason` in it".to_owned())
    };
    read(reply).or_else(|problem| {
        let doubled = with_doubled_backslashes(reply);
        if doubled == reply {
            return Err(problem);
        }
        read(&doubled).map_err(|_| problem)
    })
}

/// 1, true, pass, yes; 0, false, fail, no; any other number is not 1.
fn result(value: &Value, may_abstain: bool) -> Result<Decision, String> {
    if may_abstain && (value.is_null() || value == Decision::CannotAssess.as_str()) {
        return Ok(Decision::CannotAssess);
    }
    let word = value.as_str().map(|word| word.trim().to_lowercase());
    match word.as_deref() {
        Some("pass") => return Ok(Decision::Met),
        Some("fail") => return Ok(Decision::NotMet),
        _ => {}
    }
    lenient::flag(value)
        .map(Decision::of)
        .ok_or_else(|| format!("`result` must be 1 or 0, got {value}"))
}

fn with_doubled_backslashes(text: &str) -> String {
    let mut doubled = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        doubled.push(c);
        if c != '\\' {
            continue;
        }
        match chars.peek() {
            Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                doubled.extend(chars.next());
            }
            _ => doubled.push('\\'),
        }
    }
    doubled
}

/// Text stays, an object becomes its JSON text.
fn text_of(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Object(_) => Ok(value.to_string()),
        other => Err(format!("`{key}` must be text, got {other}")),
    }
}

/// The objects of the reply that have all `keys`, in order.
///
/// Objects inside other objects do not count: they are quotations.
///
/// # Errors
/// What is wrong with the reply, as half a sentence that the judge is told.
pub fn objects_with(reply: &str, keys: &[&str]) -> Result<Vec<Object>, String> {
    let text = reply.trim_matches(|c: char| {
        c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'..='\u{200d}')
    });
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut found = Vec::new();
    if let Ok(whole) = serde_json::from_str::<Json>(text) {
        whole.collect(&mut found)?;
    } else {
        scan(text, &mut found)?;
    }
    found.retain(|object| keys.iter().all(|key| object.contains_key(*key)));
    if found.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        return Err(format!("no JSON object with {} in it", keys.join(" and ")));
    }
    Ok(found)
}

/// Collects every JSON object that begins somewhere in `text`, outside of the others.
fn scan(text: &str, found: &mut Vec<Object>) -> Result<(), String> {
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let tail = &rest[start..];
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Json>();
        match values.next() {
            Some(Ok(value)) => {
                value.collect(found)?;
                rest = &tail[values.byte_offset()..];
            }
            // What stands inside an object that is broken, or never ends because the reply was cut,
            // is a quotation and not a verdict of its own.
            Some(Err(_)) if opens_object(tail) => match closed(tail) {
                Some(end) => rest = &tail[end..],
                None => return Err("it ends inside a JSON object".to_owned()),
            },
            // A brace in prose is no object: no key follows it.
            _ => rest = &tail[1..],
        }
    }
    Ok(())
}

fn opens_object(text: &str) -> bool {
    let inside = text[1..].trim_start();
    inside.is_empty() || inside.starts_with('"')
}

/// The end of the object that `text` begins with, by its braces; those in strings do not count.
fn closed(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A JSON value whose objects keep repeated keys, which `serde_json::Value` would drop silently.
enum Json {
    Object(Vec<(String, Value)>),
    Array(Vec<Json>),
    Other,
}

impl Json {
    fn collect(self, found: &mut Vec<Object>) -> Result<(), String> {
        match self {
            Self::Object(entries) => {
                let mut object = Object::new();
                for (key, value) in entries {
                    if let Some(former) = object.get(&key)
                        && *former != value
                    {
                        return Err(format!("`{key}` stands twice with different values"));
                    }
                    object.insert(key, value);
                }
                found.push(object);
            }
            Self::Array(items) => {
                for item in items {
                    item.collect(found)?;
                }
            }
            Self::Other => {}
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> serde::de::Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Json::Object(entries))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Json, E> {
        Ok(Json::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(reply: &str) -> Result<bool, String> {
        criterion_verdict(reply, false).map(|verdict| verdict.decision == Decision::Met)
    }

    const YES: &str = r#"{"is_criteria_true":true,"rationale":"x"}"#;
    const NO: &str = r#"{"is_criteria_true":false,"rationale":"x"}"#;

    #[test]
    fn the_table_of_pitfall_a10() {
        for reply in [
            format!("```json\n{YES}\n```"),
            format!(
                "For instance {{\"is_criteria_true\": false}} would fail.\n```json\n{YES}\n```"
            ),
            format!("\u{feff}{YES}"),
            r#"{"is_criteria_true":"True","rationale":"x"}"#.to_owned(),
            format!("[{YES}]"),
            r#"{"is_criteria_true":true,"rationale":{"evidence":"x"}}"#.to_owned(),
        ] {
            assert_eq!(verdict(&reply), Ok(true), "{reply}");
        }
        for reply in [
            format!("{YES}\n{NO}"),
            r#"{"is_criteria_true":"maybe","rationale":"x"}"#.to_owned(),
            r#"{"rationale":"x","is_criteria_true":tru"#.to_owned(),
        ] {
            assert!(verdict(&reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn an_object_as_rationale_becomes_its_text() {
        let reply = r#"{"is_criteria_true":0,"rationale":{"a":1}}"#;
        let verdict = criterion_verdict(reply, true).unwrap();
        assert_eq!(verdict.rationale, r#"{"a":1}"#);
        assert_eq!(verdict.decision, Decision::NotMet);
    }

    #[test]
    fn agreeing_verdicts_count_and_the_last_one_speaks() {
        let reply = format!(r#"{YES} and again {{"rationale":"later","is_criteria_true":"yes"}}"#);
        assert_eq!(criterion_verdict(&reply, false).unwrap().rationale, "later");
    }

    #[test]
    fn to_abstain_is_a_verdict_only_where_it_is_offered() {
        for word in ["null", "\"cannot_assess\""] {
            let reply = format!(r#"{{"rationale":"cut","is_criteria_true":{word}}}"#);
            let verdict = criterion_verdict(&reply, true).unwrap();
            assert_eq!(verdict.decision, Decision::CannotAssess);
            assert!(criterion_verdict(&reply, false).is_err());
            // It contradicts the others like any other verdict.
            assert!(criterion_verdict(&format!("{reply} {YES}"), true).is_err());
        }
    }

    #[test]
    fn results_are_numbers_or_words() {
        let decision = |reply: &str| result_verdict(reply, false).map(|o| o.decision);
        for word in ["1", "true", "1.0", "\"pass\"", "\"YES\"", "\"1\""] {
            let reply = format!("```json\n{{\"result\": {word}, \"reason\": \"x\"}}\n```");
            assert_eq!(decision(&reply), Ok(Decision::Met), "{word}");
        }
        for word in ["0", "false", "\"fail\"", "\"no\""] {
            let reply = format!("{{\"result\": {word}, \"reason\": \"x\"}}");
            assert_eq!(decision(&reply), Ok(Decision::NotMet), "{word}");
        }
        assert!(decision(r#"{"result": "perhaps", "reason": "x"}"#).is_err());
        assert!(decision(r#"{"result": 0.7, "reason": "x"}"#).is_err());
        assert!(decision(r#"{"result": null, "reason": "x"}"#).is_err());
        let latex = result_verdict(
            r#"{"result": 1, "reason": "\\(x\\) is \alpha, \"so\""}"#,
            false,
        );
        assert_eq!(latex.unwrap().rationale, r#"\(x\) is \alpha, "so""#);
    }

    #[test]
    fn quotations_inside_the_rationale_are_no_verdicts() {
        let quoted = serde_json::json!({
            "rationale": format!("the file says {NO}"),
            "is_criteria_true": true,
        });
        assert_eq!(verdict(&quoted.to_string()), Ok(true));
        // The same, cut: the quotation must not step in.
        let cut = r#"{"rationale": {"is_criteria_true": true, "rationale": "quoted"}, "is_crit"#;
        assert_eq!(verdict(cut), Err("it ends inside a JSON object".to_owned()));
    }

    #[test]
    fn what_stands_inside_a_broken_object_is_a_quotation() {
        // A sentence quotes half of what the agent wrote, and gives no verdict.
        let quoted =
            format!(r#"It wrote {{"rationale": {YES}, "is_criteria_true": true and more."#);
        assert_eq!(
            verdict(&quoted),
            Err("it ends inside a JSON object".to_owned())
        );
        let broken = format!(r#"It wrote {{"note": oops, "quote": {YES}}}."#);
        assert!(verdict(&broken).unwrap_err().starts_with("no JSON object"));
        // What comes after it counts.
        assert_eq!(verdict(&format!("{broken} {NO}")), Ok(false));
        assert_eq!(
            verdict(&format!(r#"{{"a": b, "c": "}} {{"}} {YES}"#)),
            Ok(true)
        );
    }

    #[test]
    fn braces_in_prose_are_passed_over() {
        assert_eq!(
            verdict(&format!("The set {{a, b}} is complete. {YES}")),
            Ok(true)
        );
        assert_eq!(verdict(&format!("An open {{ brace, then {YES}")), Ok(true));
    }

    #[test]
    fn a_key_that_contradicts_itself_is_no_verdict() {
        let reply = r#"{"rationale":"x","is_criteria_true":false,"is_criteria_true":true}"#;
        assert_eq!(
            verdict(reply),
            Err("`is_criteria_true` stands twice with different values".to_owned())
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(verdict(" \n"), Err("it is empty".to_owned()));
        for reply in [
            "The criterion is met.",
            r#"{"is_criteria_true":true}"#,
            "null",
            "true",
        ] {
            let problem = verdict(reply).unwrap_err();
            assert!(
                problem.starts_with("no JSON object with `rationale`"),
                "{problem}"
            );
        }
        let problem = verdict(r#"{"is_criteria_true":true,"rationale":null}"#).unwrap_err();
        assert_eq!(problem, "`rationale` must be text, got null");
    }
}
