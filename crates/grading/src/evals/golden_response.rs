//! `golden_response_match`: the answer says the same as a reference answer (§6.3.3).

use judge::{Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::about_answer::AnswerQuestion;
use super::prompts::GOLDEN_RESPONSE;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Share of the judge's context that the answer may fill.
const ANSWER_SHARE: f64 = 0.6;

/// Settings of `golden_response_match`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct GoldenResponseValues {
    /// The answer that is right.
    golden_response: String,
    /// What the answers are about.
    #[serde(default)]
    problem_context: String,
    /// Rules by which answers of the field are compared.
    #[serde(default)]
    domain_instructions: String,
}

pub(crate) struct GoldenResponseMatch;

impl Eval for GoldenResponseMatch {
    type Values = GoldenResponseValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "golden_response_match"
    }

    fn about(&self) -> &'static str {
        "a judge model decides whether the answer says the same as a reference answer"
    }

    fn uses_judge(&self, _: &GoldenResponseValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, _: &GoldenResponseValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &GoldenResponseValues, _: &NoSettings, findings: &mut Findings) {
        if values.golden_response.trim().is_empty() {
            findings.missing("golden_response", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &GoldenResponseValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let question = AnswerQuestion {
            prompts: &GOLDEN_RESPONSE,
            share: ANSWER_SHARE,
            texts: &[
                ("reference", values.golden_response.trim()),
                ("problem", values.problem_context.trim()),
                ("instructions", values.domain_instructions.trim()),
            ],
            shape: |judge| {
                let decision = judge.decision_type();
                let properties = json!({ "rationale": { "type": "string" }, "is_match": decision });
                Shape::object("answer_match", &properties)
            },
            read: |text, abstain| reply::verdict_by("is_match", "rationale", abstain, text),
        };
        question.verdict(case).await
    }
}
