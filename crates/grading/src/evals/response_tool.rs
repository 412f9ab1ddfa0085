//! `response_tool_verifier`: a criterion on all that the agent said, and on what its tools handed
//! out as its result (§6.4.8).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use formats::chat::Role;
use judge::{Ruling, Shape, reply};
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;

use super::object;
use super::prompts::SECTIONS;
use super::sections::{Section, SectionQuestion};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Texts that stand in a message as data.
static DATA_URI: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"data:(?:text/[\w.+-]+|application/json)(?:;charset=[\w-]+)?;base64,([A-Za-z0-9+/]+={0,2})")
        .ok()
});

/// Settings of `response_tool_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponseToolValues {
    /// What must be true of what the agent said.
    criteria: String,
    /// What the author adds to the criterion.
    #[serde(default)]
    criteria_explanation: String,
    /// A fault that costs the score -1 where the criterion is not met.
    #[serde(default)]
    negative_criteria: String,
}

pub(crate) struct ResponseToolVerifier;

impl Eval for ResponseToolVerifier {
    type Values = ResponseToolValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "response_tool_verifier"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on all that the agent said and its tools handed out"
    }

    fn uses_judge(&self, _: &ResponseToolValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, _: &ResponseToolValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ResponseToolValues, _: &NoSettings, findings: &mut Findings) {
        if values.criteria.trim().is_empty() {
            findings.missing("criteria", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &ResponseToolValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let said = said(case);
        let handed_out = handed_out(case);
        let names: Vec<&str> = handed_out.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        if said.is_empty() && handed_out.is_empty() {
            let rationale = "the agent said nothing";
            return Ok(Verdict::new(
                false,
                object(json!({
                    "judge_grade": "fail", "grade_rationale": rationale, "evaluated_artifacts": "",
                })),
            ));
        }
        let explanation = values.criteria_explanation.trim();
        let ask =
            async |criterion: &str| ruling(case, criterion, explanation, &said, &handed_out).await;
        let (ruling, cut) = ask(values.criteria.trim()).await?;
        let mut described = object(json!({
            "judge_grade": grade(ruling.met),
            "grade_rationale": ruling.rationale,
            "evaluated_artifacts": names,
            "judge_prompt": SECTIONS.provenance(),
        }));
        described.extend(ruling.votes);
        if cut {
            described.insert("evidence_cut".to_owned(), true.into());
        }
        let mut verdict = Verdict::new(ruling.met, described);
        let negative = values.negative_criteria.trim();
        if !ruling.met && !negative.is_empty() {
            let (fault, _) = ask(negative).await?;
            // The words are the reference's: a fault that "passes" was found (§5.11).
            let values = &mut verdict.values;
            values.insert("negative_grade".to_owned(), grade(fault.met).into());
            let rationale = fault.rationale.into();
            values.insert("negative_grade_rationale".to_owned(), rationale);
            if fault.met {
                verdict.score = -1.0;
            }
        }
        Ok(verdict)
    }
}

const fn grade(met: bool) -> &'static str {
    if met { "pass" } else { "fail" }
}

async fn ruling(
    case: &Case,
    criterion: &str,
    explanation: &str,
    said: &str,
    handed_out: &[(String, String)],
) -> Result<(Ruling, bool), EvalError> {
    let judge = case.judge()?;
    let mut sections = vec![Section::new("Criterion", "criterion", criterion)];
    if !explanation.is_empty() {
        let heading = "What the author adds to the criterion";
        sections.push(Section::new(heading, "explanation", explanation));
    }
    let task = case.evidence.task_text();
    let heading = "The task that the agent was given";
    sections.push(Section::new(heading, "task", task.trim()));
    sections.push(Section::new("What the agent said", "response", said));
    for (name, text) in handed_out {
        let heading = "What a tool handed out";
        sections.push(Section::new(heading, name.as_str(), text.as_str()));
    }
    let question = SectionQuestion {
        system: "response",
        values: formats::Object::new(),
        sections,
        closing: "Answer with the JSON object of `rationale` and `is_criteria_true` and nothing else.",
    };
    let (question, cut) = question.for_judge(judge)?;
    let abstain = judge.may_abstain();
    let shape = Shape::object(
        "response_verdict",
        &json!({
            "rationale": { "type": "string" }, "is_criteria_true": judge.decision_type(),
        }),
    );
    let ruling = judge
        .decide(question, &shape, |text| {
            reply::criterion_verdict(text, abstain)
        })
        .await?;
    Ok((ruling, cut))
}

/// All messages of the agent with text, in order.
fn said(case: &Case) -> String {
    let messages = case.evidence.trajectory().messages.iter();
    let texts: Vec<String> = messages
        .filter(|message| message.role == Role::Assistant)
        .map(|message| decoded(message.text().trim()))
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n\n---\n\n")
}

/// `text` with the texts that stand in it as base64 data.
fn decoded(text: &str) -> String {
    let Some(pattern) = DATA_URI.as_ref() else {
        return text.to_owned();
    };
    let replaced = pattern.replace_all(text, |found: &regex::Captures<'_>| {
        let bytes = BASE64_STANDARD.decode(&found[1]).ok();
        bytes
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_else(|| found[0].to_owned())
    });
    replaced.into_owned()
}

/// What tools put into the trajectory's output, with names.
fn handed_out(case: &Case) -> Vec<(String, String)> {
    let output = case.evidence.trajectory().output.as_ref();
    let list = output
        .and_then(|output| output.get("tool_artifacts")?.get("text_responses"))
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .enumerate()
        .map(|(at, item)| {
            let text = match item {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (format!("tool_output_{}", at + 1), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_base64_are_decoded_and_pictures_stay() {
        assert_eq!(
            decoded("see data:text/plain;base64,SGkh and data:image/png;base64,SGkh"),
            "see Hi! and data:image/png;base64,SGkh"
        );
        assert_eq!(decoded("data:text/csv;charset=utf-8;base64,YSxi"), "a,b");
    }
}
