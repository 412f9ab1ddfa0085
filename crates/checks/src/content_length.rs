//! `content_length_check`: words, characters, … of the answer or of changed files (§6.3.6).

use std::sync::LazyLock;

use formats::diff::ChangeKind;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{object, tidy};
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use settings::problem::Findings;
use settings::{NoSettings, number, optional_number};

/// What is measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum ContentSource {
    /// Every created or modified file (each sheet and slide on its own).
    #[default]
    #[serde(rename = "Created/Modified Files")]
    Files,
    /// The answer.
    #[serde(rename = "Final Answer (agent's text response)")]
    FinalAnswer,
}

/// In which unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum Metric {
    /// Runs of letters, digits, underscores and apostrophes.
    #[default]
    #[serde(rename = "Word Count")]
    Words,
    /// Code points.
    #[serde(rename = "Character Count")]
    Characters,
    /// Code points that are not white space.
    #[serde(rename = "Character Count (no spaces)")]
    CharactersWithoutSpaces,
    /// Pieces between runs of `.`, `!`, `?`.
    #[serde(rename = "Sentence Count")]
    Sentences,
    /// Blocks between blank lines.
    #[serde(rename = "Paragraph Count")]
    Paragraphs,
    /// Lines.
    #[serde(rename = "Line Count")]
    Lines,
}

/// How the count is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) enum Comparison {
    /// `min_value` ≤ count ≤ `max_value`.
    #[default]
    #[serde(rename = "Between (inclusive)")]
    Between,
    /// count ≥ `min_value`.
    #[serde(rename = "At least")]
    AtLeast,
    /// count > `min_value`.
    #[serde(rename = "Greater than")]
    GreaterThan,
    /// count ≤ `max_value`.
    #[serde(rename = "At most")]
    AtMost,
    /// count < `max_value`.
    #[serde(rename = "Less than")]
    LessThan,
    /// |count − `expected_value`| ≤ `tolerance`.
    #[serde(rename = "Exactly")]
    Exactly,
}

/// How the counts of several files make one verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aggregation {
    /// Their sum is compared.
    #[default]
    Sum,
    /// The largest is compared.
    Max,
    /// The smallest is compared.
    Min,
    /// Their average is compared.
    Avg,
    /// Each is compared, all must pass.
    PerArtifactAllMustPass,
    /// Each is compared, one must pass.
    PerArtifactAnyCanPass,
}

/// Settings of `content_length_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ContentLengthValues {
    /// What is measured.
    #[serde(default)]
    content_source: ContentSource,
    /// Only files whose path has this text in it, in any case.
    #[serde(default)]
    target_file: String,
    /// In which unit.
    #[serde(default)]
    metric_type: Metric,
    /// How the count is compared.
    #[serde(default)]
    comparison_type: Comparison,
    /// Lower bound.
    #[serde(default, deserialize_with = "optional_number")]
    min_value: Option<f64>,
    /// Upper bound.
    #[serde(default, deserialize_with = "optional_number")]
    max_value: Option<f64>,
    /// The count to hit.
    #[serde(default, deserialize_with = "optional_number")]
    expected_value: Option<f64>,
    /// How far off the count may be.
    #[serde(default, deserialize_with = "number")]
    tolerance: f64,
    /// How the counts of several files make one verdict.
    #[serde(default)]
    aggregation_mode: Aggregation,
}

impl ContentLengthValues {
    /// Whether `count` passes; `None` where a bound is missing.
    fn passes(&self, count: f64) -> Option<bool> {
        Some(match self.comparison_type {
            Comparison::Between => self.min_value? <= count && count <= self.max_value?,
            Comparison::AtLeast => count >= self.min_value?,
            Comparison::GreaterThan => count > self.min_value?,
            Comparison::AtMost => count <= self.max_value?,
            Comparison::LessThan => count < self.max_value?,
            Comparison::Exactly => (count - self.expected_value?).abs() <= self.tolerance,
        })
    }

    fn needs(&self) -> (&'static [&'static str], bool) {
        match self.comparison_type {
            Comparison::Between => {
                let given = self.min_value.is_some() && self.max_value.is_some();
                (&["min_value", "max_value"], given)
            }
            Comparison::AtLeast | Comparison::GreaterThan => {
                (&["min_value"], self.min_value.is_some())
            }
            Comparison::AtMost | Comparison::LessThan => (&["max_value"], self.max_value.is_some()),
            Comparison::Exactly => (&["expected_value"], self.expected_value.is_some()),
        }
    }
}

pub(crate) struct ContentLengthCheck;

/// One measured text.
struct Source {
    name: String,
    count: usize,
}

impl Eval for ContentLengthCheck {
    type Values = ContentLengthValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "content_length_check"
    }

    fn about(&self) -> &'static str {
        "the length of the answer or of created and modified files is within bounds"
    }

    fn needs_transcript(&self, values: &ContentLengthValues, _: &NoSettings) -> bool {
        values.content_source == ContentSource::FinalAnswer
    }

    fn check(&self, values: &ContentLengthValues, _: &NoSettings, findings: &mut Findings) {
        let (keys, given) = values.needs();
        if !given {
            let rule = format!(
                "the comparison needs {}",
                keys.iter()
                    .map(|key| format!("`{key}`"))
                    .collect::<Vec<_>>()
                    .join(" and ")
            );
            findings.missing("comparison_type", rule);
        }
        if values.comparison_type == Comparison::Between
            && let (Some(min), Some(max)) = (values.min_value, values.max_value)
            && min > max
        {
            let rule = format!("must not be above `max_value` ({max})");
            findings.error("min_value", rule, min);
        }
    }

    async fn evaluate(
        &self,
        values: &ContentLengthValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let sources = sources(values, case).await?;
        let raw = |key: &str| {
            let value = case.verifier.verifier_values.get(key);
            value.cloned().unwrap_or(Value::Null)
        };
        let or = |key: &str, default: &str| match raw(key) {
            Value::Null => Value::from(default),
            value => value,
        };
        let mut described = object(json!({
            "passed": false,
            "actual_value": 0,
            "metric_type": or("metric_type", "Word Count"),
            "comparison_type": or("comparison_type", "Between (inclusive)"),
            "aggregation_mode": or("aggregation_mode", "sum"),
        }));
        if sources.is_empty() {
            described.insert("evaluated_artifacts".to_owned(), "".into());
            let message = "no content to measure: no created or modified file was found";
            return Ok(Verdict::new(false, described).with_message(message));
        }
        let outcome = compare(values, &sources)
            .ok_or_else(|| EvalError::config("a bound of the comparison is missing"))?;
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let counts: Vec<usize> = sources.iter().map(|source| source.count).collect();
        let rationale = format!(
            "{} {}: {} over {} source(s) is {}",
            if outcome.passed { "within" } else { "outside" },
            "the bounds",
            or("aggregation_mode", "sum").as_str().unwrap_or_default(),
            counts.len(),
            outcome.actual
        );
        described.extend(object(json!({
            "passed": outcome.passed,
            "actual_value": outcome.actual,
            "min_value": values.min_value.map(tidy),
            "max_value": values.max_value.map(tidy),
            "expected_value": values.expected_value.map(tidy),
            "tolerance": tidy(values.tolerance),
            "per_source_values": counts,
            "per_source_passes": outcome.each,
            "evaluated_artifacts": names.join(", "),
            "rationale": rationale,
        })));
        Ok(Verdict::new(outcome.passed, described))
    }
}

async fn sources(values: &ContentLengthValues, case: &Case) -> Result<Vec<Source>, EvalError> {
    if values.content_source == ContentSource::FinalAnswer {
        return Ok(vec![Source {
            name: "final_answer".to_owned(),
            count: count(values.metric_type, case.evidence.answer()),
        }]);
    }
    let wanted = values.target_file.trim().to_lowercase();
    let changes = case.evidence.changes().await?;
    let measured = changes
        .artifacts
        .iter()
        .filter(|artifact| artifact.change != ChangeKind::Deleted)
        .filter(|artifact| artifact.path.to_lowercase().contains(&wanted))
        .map(|artifact| Source {
            name: match artifact.index {
                Some(index) => format!("{} (index {})", artifact.path, index + 1),
                None => artifact.path.clone(),
            },
            count: count(
                values.metric_type,
                artifact.new_content.as_deref().unwrap_or_default(),
            ),
        });
    Ok(measured.collect())
}

struct Outcome {
    passed: bool,
    actual: Value,
    each: Vec<bool>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of texts are far below 2^53"
)]
fn compare(values: &ContentLengthValues, sources: &[Source]) -> Option<Outcome> {
    let counts: Vec<f64> = sources.iter().map(|source| source.count as f64).collect();
    let each: Vec<bool> = counts
        .iter()
        .map(|count| values.passes(*count))
        .collect::<Option<_>>()?;
    let sum: f64 = counts.iter().sum();
    let max = counts.iter().copied().fold(f64::MIN, f64::max);
    let min = counts.iter().copied().fold(f64::MAX, f64::min);
    let (actual, passed) = match values.aggregation_mode {
        Aggregation::Sum => (sum, values.passes(sum)?),
        Aggregation::Max => (max, values.passes(max)?),
        Aggregation::Min => (min, values.passes(min)?),
        Aggregation::Avg => {
            let average = sum / counts.len() as f64;
            (average, values.passes(average)?)
        }
        Aggregation::PerArtifactAllMustPass => (min, each.iter().all(|passed| *passed)),
        Aggregation::PerArtifactAnyCanPass => (max, each.iter().any(|passed| *passed)),
    };
    Some(Outcome {
        passed,
        actual: tidy(actual),
        each,
    })
}

fn count(metric: Metric, text: &str) -> usize {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[\w'’]+").ok());
    let text = without_headings(text);
    match metric {
        Metric::Words => WORD
            .as_ref()
            .map_or(0, |word| word.find_iter(&text).count()),
        Metric::Characters => text.chars().count(),
        Metric::CharactersWithoutSpaces => text.chars().filter(|c| !c.is_whitespace()).count(),
        Metric::Sentences => {
            let sentences = text
                .split(['.', '!', '?'])
                .filter(|piece| !piece.trim().is_empty())
                .count();
            // A text of punctuation alone is still one sentence.
            sentences.max(usize::from(!text.trim().is_empty()))
        }
        Metric::Paragraphs => paragraphs(&text),
        Metric::Lines => lines(&text).count(),
    }
}

/// Lines by all line breaks; a break at the end opens no further line.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let empty = text.is_empty();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut rest = (!empty).then_some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.find(['\n', '\r']) {
            Some(at) => {
                let next = if text[at..].starts_with("\r\n") {
                    at + 2
                } else {
                    at + 1
                };
                rest = Some(&text[next..]);
                Some(&text[..at])
            }
            None => {
                rest = None;
                Some(text)
            }
        }
    })
}

fn paragraphs(text: &str) -> usize {
    let mut count = 0;
    let mut inside = false;
    for line in lines(text) {
        let blank = line.trim().is_empty();
        if !blank && !inside {
            count += 1;
        }
        inside = !blank;
    }
    count
}

/// Headings of lists that extraction puts together itself.
const LISTS: [&str; 4] = ["Number Formats", "Formulas", "Charts", "Defined Names"];

/// What the heading line says that extraction adds, such as `=== Page 2 ===`.
fn heading(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("=== ")?.strip_suffix(" ===")
}

/// The text without the heading lines and lists that extraction adds: they are not the agent's
/// words.
fn without_headings(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.lines().any(|line| heading(line).is_some()) {
        return text.into();
    }
    let mut in_list = false;
    text.split_inclusive('\n')
        .filter(|line| match heading(line) {
            Some(title) => {
                in_list = LISTS.contains(&title);
                false
            }
            None => !in_list,
        })
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_counts_by_its_rule() {
        let text = "It's 5 o'clock.  Naïve?!\n\nSecond block\r\nhere...";
        assert_eq!(count(Metric::Words, text), 7);
        assert_eq!(count(Metric::Characters, text), 47);
        assert_eq!(count(Metric::CharactersWithoutSpaces, text), 38);
        assert_eq!(count(Metric::Sentences, text), 3);
        assert_eq!(count(Metric::Paragraphs, text), 2);
        assert_eq!(count(Metric::Lines, text), 4);
        assert_eq!(count(Metric::Words, "don’t"), 1);
    }

    #[test]
    fn edges_of_the_metrics() {
        for (text, sentences, lines, paragraphs) in [
            ("", 0, 0, 0),
            ("  \n", 0, 1, 0),
            ("...", 1, 1, 1),
            ("\n", 0, 1, 0),
            ("a\n", 1, 1, 1),
            ("a\n\n", 1, 2, 1),
            ("a\r\rb", 1, 3, 2),
        ] {
            assert_eq!(count(Metric::Sentences, text), sentences, "{text:?}");
            assert_eq!(count(Metric::Lines, text), lines, "{text:?}");
            assert_eq!(count(Metric::Paragraphs, text), paragraphs, "{text:?}");
        }
    }

    #[test]
    fn headings_of_the_extraction_are_not_the_agents_words() {
        assert_eq!(
            count(Metric::Words, "=== Page 1 ===\none two\n=== Page 2 ===\n"),
            2
        );
        let sheet =
            "one\ttwo\n=== Number Formats ===\nB2: 12 % (0%)\n=== Comments ===\nA1: three\n";
        // `one`, `two`, `A1`, `three`.
        assert_eq!(count(Metric::Words, sheet), 4);
        assert_eq!(count(Metric::Lines, sheet), 2);
        assert_eq!(
            count(
                Metric::Words,
                "=== Defined Names ===\nrate = A1\n=== Sheet: B ===\nx"
            ),
            1
        );
    }
}
