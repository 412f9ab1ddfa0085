//! `mcq_exact_match`: the letter of the answer is the right one (§6.6).

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use settings::NoSettings;
use settings::problem::Findings;

static PHRASE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i:\banswer\s*(?:is|:)\s*)[*_`\s]*(?:\\boxed\{)?\(?([A-Ja-j])\b").ok()
});
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b([A-J])\b").ok());

/// Settings of `mcq_exact_match`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct McqValues {
    /// The right letter, A to J.
    mcq_correct_answer: String,
}

pub(crate) struct McqExactMatch;

/// The letter of an answer: the last one said to be the answer, else the last capital letter that
/// stands alone.
fn letter(answer: &str) -> Option<String> {
    let last = |regex: &Option<Regex>| {
        let found = regex.as_ref()?.captures_iter(answer).last()?;
        Some(found[1].to_uppercase())
    };
    last(&PHRASE).or_else(|| last(&LETTER))
}

impl Eval for McqExactMatch {
    type Values = McqValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "mcq_exact_match"
    }

    fn about(&self) -> &'static str {
        "the answer to a multiple-choice question is the right letter"
    }

    fn needs_transcript(&self, _: &McqValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &McqValues, _: &NoSettings, findings: &mut Findings) {
        let right = values.mcq_correct_answer.trim().to_uppercase();
        if !(right.len() == 1 && ("A"..="J").contains(&right.as_str())) {
            let rule = "must be one letter from A to J";
            findings.error(
                "mcq_correct_answer",
                rule,
                values.mcq_correct_answer.as_str(),
            );
        }
    }

    async fn evaluate(
        &self,
        values: &McqValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let right = values.mcq_correct_answer.trim().to_uppercase();
        let given = letter(case.evidence.answer());
        let passed = given.as_deref() == Some(right.as_str());
        let message = match &given {
            Some(letter) => format!("the answer is {letter}, right is {right}"),
            None => format!("the answer names no letter, right is {right}"),
        };
        let values = json!({
            "passed": passed, "extracted_answer": given, "correct_answer": right,
        });
        Ok(Verdict::new(passed, object(values)).with_message(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_letter_that_is_said_to_be_the_answer() {
        for (answer, expected) in [
            ("The answer is (C).", Some("C")),
            ("Answer: b", Some("B")),
            (
                "First the answer is A. No: the answer is D, not B.",
                Some("D"),
            ),
            ("The answer is **E**", Some("E")),
            ("It must be B, or rather C", Some("C")),
            ("I prefer option A", Some("A")),
            ("The answer is Berlin", None),
            ("no letter", None),
            ("", None),
        ] {
            assert_eq!(letter(answer).as_deref(), expected, "{answer}");
        }
    }
}
