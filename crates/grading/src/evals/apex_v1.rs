//! `apex_v1_verifier`: the text of the answer meets a criterion (§6.3.4).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object;
use super::prompts::APEX_V1;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;
use judge::Context;
use judge::marker_code;
use judge::{Shape, reply};

/// Share of the judge's context that the answer may fill.
const ANSWER_SHARE: f64 = 0.8;

/// Settings of `apex_v1_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ApexV1Values {
    /// What must be true of the answer.
    description: String,
}

#[derive(Serialize)]
struct Prompt<'a> {
    code: &'a str,
    criterion: &'a str,
    answer: &'a str,
    cannot_assess: bool,
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
        let answer = case.evidence.answer().trim();
        if answer.is_empty() {
            let values = json!({ "result": 0, "reason": "the agent gave no answer" });
            return Ok(Verdict::new(false, object(values)));
        }
        let judge = case.judge()?;
        let context = Context::of_all(judge.model_names());
        let (answer, cut) = context.shortened(answer, ANSWER_SHARE);
        let criterion = values.description.trim();
        let code = marker_code(&[answer.as_str(), criterion].into_iter());
        let abstain = judge.may_abstain();
        let prompt = Prompt {
            code: &code,
            criterion,
            answer: &answer,
            cannot_assess: abstain,
        };
        let question = APEX_V1.question(&prompt, &code)?;
        let ruling = judge
            .decide(question, &Shape::free("result"), |text| {
                reply::result_verdict(text, abstain)
            })
            .await?;
        let mut described = object(json!({
            "result": u8::from(ruling.met),
            "reason": ruling.rationale,
            "judge_prompt": APEX_V1.provenance(),
        }));
        described.extend(ruling.votes);
        if cut {
            described.insert("evidence_cut".to_owned(), Value::Bool(true));
        }
        Ok(Verdict::new(ruling.met, described))
    }
}
