//! `browsecomp_judge_2`: the final answer of a response is the expected one (§6.4.9).

use formats::Object;
use formats::chat::Role;
use judge::{Opinion, Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::object;
use super::prompts::SECTIONS;
use super::sections::{Section, SectionQuestion};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::{NoSettings, number};

/// Settings of an eval config of `browsecomp_judge_2`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ShortAnswerConfig {
    /// The temperature of the judge; the arguments of the grading settings are not used.
    #[serde(default = "default_temperature", deserialize_with = "number")]
    temperature: f64,
    /// Tokens of a reply at most.
    #[serde(default = "default_max_tokens", deserialize_with = "number")]
    max_tokens: f64,
    /// How hard the judge is to think, in the provider's words.
    #[serde(default)]
    reasoning_effort: String,
    /// How often the judge is asked until its reply can be read.
    #[serde(default = "default_attempts", deserialize_with = "number")]
    judge_max_attempts: f64,
}

const fn default_temperature() -> f64 {
    0.2
}

const fn default_max_tokens() -> f64 {
    8192.0
}

const fn default_attempts() -> f64 {
    3.0
}

pub(crate) struct ShortAnswer;

impl Eval for ShortAnswer {
    type Values = NoSettings;
    type Config = ShortAnswerConfig;

    fn id(&self) -> &'static str {
        "browsecomp_judge_2"
    }

    fn about(&self) -> &'static str {
        "a judge model decides whether the answer is the `expected_answer` of the task"
    }

    fn uses_judge(&self, _: &NoSettings, _: &ShortAnswerConfig) -> bool {
        true
    }

    fn needs_transcript(&self, _: &NoSettings, _: &ShortAnswerConfig) -> bool {
        true
    }

    fn check(&self, _: &NoSettings, config: &ShortAnswerConfig, findings: &mut Findings) {
        for (key, value, least, most) in [
            ("temperature", config.temperature, 0.0, 2.0),
            ("max_tokens", config.max_tokens, 1.0, 1e6),
            ("judge_max_attempts", config.judge_max_attempts, 1.0, 10.0),
        ] {
            if !(least..=most).contains(&value) {
                findings.error(key, format!("must be from {least} to {most}"), value);
            }
        }
    }

    async fn evaluate(
        &self,
        _: &NoSettings,
        config: &ShortAnswerConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let expected = expected(case)?;
        let Some(response) = response(case) else {
            let reasoning = "the agent gave no answer";
            return Ok(verdict(false, reasoning, "None", false));
        };
        let judge = case.judge()?;
        let task = case.evidence.task_text();
        let question = SectionQuestion {
            system: "short_answer",
            values: Object::new(),
            sections: vec![
                Section::new("Question", "question", task.trim()),
                Section::new("Response", "response", response),
                Section::new("Expected answer", "expected answer", expected),
            ],
            closing: "Answer with the JSON object of `is_alias_claim`, `reasoning`, `extracted_final_answer` and `correct` and nothing else.",
        };
        let (mut question, cut) = question.for_judge(judge)?;
        question.arguments = Some(arguments(config));
        question.attempts = Some(whole(config.judge_max_attempts));
        let word = if judge.may_abstain() {
            json!({ "type": ["string", "null"], "enum": ["yes", "no", null] })
        } else {
            json!({ "type": "string", "enum": ["yes", "no"] })
        };
        let shape = Shape::object(
            "short_answer",
            &json!({
                "is_alias_claim": { "type": "boolean" },
                "reasoning": { "type": "string" },
                "extracted_final_answer": { "type": "string" },
                "correct": word,
            }),
        );
        let abstain = judge.may_abstain();
        let ruling = judge
            .decide(question, &shape, |text| read(text, abstain))
            .await?;
        let extracted = ruling.details["extracted_final_answer"].as_str();
        let alias = ruling.details["is_alias_claim"] == Value::Bool(true);
        let mut reasoning = ruling.rationale.clone();
        let met = ruling.met && !alias;
        if ruling.met && alias {
            // Two names for one thing are knowledge that nobody has checked here.
            reasoning.push_str(" (Not counted: that both names mean the same was not verified.)");
        }
        let mut verdict = verdict(met, &reasoning, extracted.unwrap_or_default(), alias);
        let grader: Vec<&str> = judge.model_names().collect();
        let values = &mut verdict.values;
        values.insert("grader_model".to_owned(), grader.join(", ").into());
        values.insert("judge_prompt".to_owned(), SECTIONS.provenance());
        values.extend(ruling.votes);
        if cut {
            values.insert("evidence_cut".to_owned(), true.into());
        }
        Ok(verdict)
    }
}

fn verdict(met: bool, reasoning: &str, extracted: &str, alias: bool) -> Verdict {
    Verdict::new(
        met,
        object(json!({
            "extracted_final_answer": extracted,
            "reasoning": reasoning,
            "correct": if met { "yes" } else { "no" },
            "is_alias_claim": alias,
            "alias_evidence_quote": "",
            "alias_evidence_url": "",
        })),
    )
}

fn read(text: &str, abstain: bool) -> Result<Opinion, String> {
    let opinion = reply::verdict_by("correct", "reasoning", abstain, text)?;
    if !opinion
        .details
        .get("is_alias_claim")
        .is_some_and(Value::is_boolean)
    {
        return Err("`is_alias_claim` must be true or false".to_owned());
    }
    if !opinion
        .details
        .get("extracted_final_answer")
        .is_some_and(Value::is_string)
    {
        return Err("`extracted_final_answer` must be text".to_owned());
    }
    Ok(opinion)
}

/// The answer that the task expects; several lines are parts that are all needed.
fn expected(case: &Case) -> Result<String, EvalError> {
    let fields = case.evidence.trajectory().extra.get("task_custom_fields");
    let answer = fields.and_then(|fields| fields.get("expected_answer")?.as_str());
    let parts: Vec<&str> = answer
        .unwrap_or_default()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if parts.is_empty() {
        return Err(EvalError::config(
            "the trajectory has no `task_custom_fields.expected_answer`",
        ));
    }
    Ok(parts.join("; "))
}

/// The last thing that the agent said.
fn response(case: &Case) -> Option<String> {
    let messages = case.evidence.trajectory().messages.iter().rev();
    messages
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.text().trim().to_owned())
        .find(|text| !text.is_empty())
}

fn arguments(config: &ShortAnswerConfig) -> Object {
    let mut arguments = object(json!({
        "temperature": config.temperature, "max_tokens": whole(config.max_tokens),
    }));
    let effort = config.reasoning_effort.trim();
    if !effort.is_empty() {
        arguments.insert("reasoning_effort".to_owned(), effort.into());
    }
    arguments
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be from 1 to a million"
)]
const fn whole(number: f64) -> u32 {
    number as u32
}
