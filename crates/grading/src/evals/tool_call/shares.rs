//! `posttraining_tool_call_check`: the share of tool calls that did what they were to do (§6.4.5).

use formats::Object;
use judge::{Judge, Shape, reply};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::object;
use super::super::prompts::SECTIONS;
use super::super::sections::{Section, SectionQuestion};
use super::by_judge::shown;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// What a judge that got no instructions of the author is told at the end.
const CLOSING: &str = "Judge every call. Answer with the JSON object of `evaluations`, `overall_decision` and `summary` and nothing else.";

/// Settings of `posttraining_tool_call_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ToolSharesValues {
    /// Instructions in place of the usual ones; `{task_prompt}` and `{tool_calls_formatted}` stand
    /// for the material.
    #[serde(default)]
    prompt_template: String,
}

pub(crate) struct ToolShares;

impl Eval for ToolShares {
    type Values = ToolSharesValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "posttraining_tool_call_check"
    }

    fn about(&self) -> &'static str {
        "the share of tool calls that a judge model finds successful"
    }

    fn uses_judge(&self, _: &ToolSharesValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, _: &ToolSharesValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ToolSharesValues, _: &NoSettings, findings: &mut Findings) {
        let template = values.prompt_template.trim();
        if !template.is_empty() && !template.contains("tool_calls_formatted") {
            let rule = "does not say `{tool_calls_formatted}`; the calls are shown all the same";
            findings.warning("prompt_template", rule, template);
        }
    }

    async fn evaluate(
        &self,
        values: &ToolSharesValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let total = case.evidence.tool_calls().len();
        if total == 0 {
            let rationale = "the agent called no tool";
            let values = object(json!({
                "evaluations": [], "judge_grade": "fail", "grade_rationale": rationale,
            }));
            return Ok(Verdict::new(false, values).with_message(rationale));
        }
        let judge = case.judge()?;
        let question = question(values, case, judge)?;
        let found = judge
            .ask(question, &shape(), |text| read(text, total))
            .await?;
        let passed = found.iter().filter(|one| is_pass(one)).count();
        let message = format!("{passed} of {total} tool calls did what they were to do");
        let mut verdict = Verdict::new(
            false,
            object(json!({
                "evaluations": found,
                "judge_grade": if passed == total { "pass" } else { "fail" },
                "grade_rationale": message,
                "judge_prompt": SECTIONS.provenance(),
            })),
        )
        .with_message(message);
        verdict.score = share(passed, total);
        Ok(verdict)
    }
}

fn question(
    values: &ToolSharesValues,
    case: &Case,
    judge: &Judge,
) -> Result<judge::Question, EvalError> {
    let calls = case.evidence.tool_calls();
    let task = case.evidence.task_text();
    let heading = "The task that the agent was given";
    let mut sections = vec![Section::new(heading, "task", task.trim())];
    for call in calls.iter().map(|call| shown(call, true)) {
        let output = call.output.as_deref().unwrap_or("(none came)");
        let text = format!(
            "tool: {}\narguments: {}\noutput:\n{output}",
            call.tool, call.arguments
        );
        let name = format!("call {}", call.number);
        sections.push(Section::new("Tool call", name, text));
    }
    // What the agent wrote does not get into the instructions.
    let closing = values
        .prompt_template
        .trim()
        .replace("{task_prompt}", "(the section `task` above)")
        .replace("{tool_calls_formatted}", "(the sections `call` above)");
    let closing = format!("{closing}\n\n{CLOSING}");
    let question = SectionQuestion {
        system: "tool_shares",
        values: Object::new(),
        sections,
        closing: closing.trim(),
    };
    Ok(question.for_judge(judge)?.0)
}

fn shape() -> Shape {
    let text = json!({ "type": "string" });
    let decision = json!({ "type": "string", "enum": ["pass", "fail"] });
    let one = json!({
        "type": "object",
        "properties": {
            "call_number": { "type": "integer" }, "tool_name": text, "arguments": text,
            "output_summary": text, "rationale": text, "decision": decision,
        },
        "required": [
            "call_number", "tool_name", "arguments", "output_summary", "rationale", "decision",
        ],
        "additionalProperties": false,
    });
    Shape::object(
        "tool_evaluations",
        &json!({
            "evaluations": { "type": "array", "items": one },
            "overall_decision": decision,
            "summary": text,
        }),
    )
}

/// The evaluations of the reply: one for each of `total` calls.
fn read(text: &str, total: usize) -> Result<Vec<Value>, String> {
    let object = reply::objects_with(text, &["evaluations"])?.pop();
    let list = object.as_ref().and_then(|object| object.get("evaluations"));
    let Some(Value::Array(list)) = list else {
        return Err("`evaluations` must be a list".to_owned());
    };
    let mut seen = vec![false; total];
    for one in list {
        let number = one["call_number"].as_u64().unwrap_or_default();
        let at = usize::try_from(number).ok().and_then(|n| n.checked_sub(1));
        match at.and_then(|at| seen.get_mut(at)) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => return Err(format!("call {number} is judged twice")),
            None => return Err(format!("there is no call number {}", one["call_number"])),
        }
        if !matches!(one["decision"].as_str(), Some("pass" | "fail")) {
            let given = &one["decision"];
            return Err(format!("`decision` must be pass or fail, got {given}"));
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(at) => Err(format!("call {} is not judged", at + 1)),
        None => Ok(list.clone()),
    }
}

fn is_pass(evaluation: &Value) -> bool {
    evaluation["decision"] == "pass"
}

#[expect(clippy::cast_precision_loss, reason = "numbers of calls are small")]
fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_judged_once() {
        let reply = |list: Value| json!({ "evaluations": list }).to_string();
        let one =
            |number: u32, decision: &str| json!({ "call_number": number, "decision": decision });
        assert_eq!(
            read(&reply(json!([one(2, "fail"), one(1, "pass")])), 2)
                .unwrap()
                .len(),
            2
        );
        for (list, part) in [
            (json!([one(1, "pass")]), "call 2 is not judged"),
            (json!([one(1, "pass"), one(1, "pass")]), "twice"),
            (json!([one(1, "pass"), one(3, "pass")]), "no call number 3"),
            (json!([one(1, "pass"), one(2, "maybe")]), "pass or fail"),
            (json!("all fine"), "must be a list"),
        ] {
            let problem = read(&reply(list), 2).unwrap_err();
            assert!(problem.contains(part), "{problem}");
        }
    }
}
