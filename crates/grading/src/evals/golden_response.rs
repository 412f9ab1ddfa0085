//! `golden_response_match`: the answer says the same as a reference answer (§6.3.3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object;
use super::prompts::GOLDEN_RESPONSE;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;
use judge::Context;
use judge::marker_code;
use judge::{Shape, reply};

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

#[derive(Serialize)]
struct Prompt<'a> {
    code: &'a str,
    reference: &'a str,
    answer: &'a str,
    problem: &'a str,
    instructions: &'a str,
    cannot_assess: bool,
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
        let answer = case.evidence.answer().trim();
        if answer.is_empty() {
            let values = json!({ "result": 0, "reason": "the agent gave no answer" });
            return Ok(Verdict::new(false, object(values)));
        }
        let judge = case.judge()?;
        let context = Context::of_all(judge.model_names());
        let (answer, cut) = context.shortened(answer, ANSWER_SHARE);
        let reference = values.golden_response.trim();
        let problem = values.problem_context.trim();
        let instructions = values.domain_instructions.trim();
        let code = marker_code(&[answer.as_str(), reference, problem, instructions].into_iter());
        let prompt = Prompt {
            code: &code,
            reference,
            answer: &answer,
            problem,
            instructions,
            cannot_assess: judge.may_abstain(),
        };
        let question = GOLDEN_RESPONSE.question(&prompt, &code)?;
        let shape = Shape::object(
            "answer_match",
            &json!({ "rationale": { "type": "string" }, "is_match": judge.decision_type() }),
        );
        let abstain = judge.may_abstain();
        let ruling = judge
            .decide(question, &shape, |text| {
                reply::verdict_by("is_match", "rationale", abstain, text)
            })
            .await?;
        let mut described = object(json!({
            "result": u8::from(ruling.met),
            "reason": ruling.rationale,
            "judge_prompt": GOLDEN_RESPONSE.provenance(),
        }));
        described.extend(ruling.votes);
        if cut {
            described.insert("evidence_cut".to_owned(), Value::Bool(true));
        }
        Ok(Verdict::new(ruling.met, described))
    }
}
