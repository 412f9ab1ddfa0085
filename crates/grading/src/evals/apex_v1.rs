//! `apex_v1_verifier`: the text of the answer meets a criterion (§6.3.4).

use judge::{Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;

use super::about_answer::AnswerQuestion;
use super::prompts::APEX_V1;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Share of the judge's context that the answer may fill.
const ANSWER_SHARE: f64 = 0.8;

/// Settings of `apex_v1_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ApexV1Values {
    /// What must be true of the answer.
    description: String,
}

pub(crate) struct ApexV1;

impl Eval for ApexV1 {
    type Values = ApexV1Values;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "apex_v1_verifier"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on the text of the answer alone"
    }

    fn uses_judge(&self, _: &ApexV1Values, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, _: &ApexV1Values, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ApexV1Values, _: &NoSettings, findings: &mut Findings) {
        if values.description.trim().is_empty() {
            findings.missing("description", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &ApexV1Values,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let question = AnswerQuestion {
            prompts: &APEX_V1,
            share: ANSWER_SHARE,
            texts: &[("criterion", values.description.trim())],
            shape: |_| Shape::free("result"),
            read: reply::result_verdict,
        };
        question.verdict(case).await
    }
}
