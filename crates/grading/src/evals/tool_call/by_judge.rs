//! `tool_call_llm_check`: a judge model decides a criterion on the tool calls (§6.3.12).

use formats::chat::{Message, Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::object;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::evals::prompts::TOOL_CALLS;
use crate::problem::Findings;
use crate::settings::{NoSettings, flag, yes};
use evidence::RecordedCall;
use judge::marker_code;
use judge::{Context, head_and_tail};
use judge::{Judge, Opinion, Shape, beginning, reply};

/// Characters of the arguments of one call that are shown.
const ARGUMENT_CHARS: usize = 500;

/// Characters of one output that are shown.
const OUTPUT_CHARS: usize = 2_000;

/// Messages of the conversation that are shown, and characters of each.
const MESSAGES: usize = 20;
const MESSAGE_CHARS: usize = 1_000;

/// Share of the context that the calls may fill.
const CALLS_SHARE: f64 = 0.7;

/// Settings of `tool_call_llm_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ToolCallLlmValues {
    /// What must be true of the tool calls.
    #[serde(default)]
    criteria: String,
    /// The former name of `criteria`.
    #[serde(default)]
    criterion: String,
    /// Whether the judge is shown what the tools answered.
    #[serde(default = "yes", deserialize_with = "flag")]
    include_tool_outputs: bool,
    /// Whether the judge is shown the conversation.
    #[serde(default, deserialize_with = "flag")]
    include_messages: bool,
}

impl ToolCallLlmValues {
    fn criterion(&self) -> &str {
        match self.criteria.trim() {
            "" => self.criterion.trim(),
            criteria => criteria,
        }
    }
}

#[derive(Serialize)]
struct Prompt<'a> {
    code: &'a str,
    criterion: &'a str,
    task: &'a str,
    calls: &'a [Shown],
    calls_left: usize,
    outputs: bool,
    turns: &'a [Turn],
    turns_left: usize,
    cannot_assess: bool,
}

/// A call as the judge sees it. Name and arguments are JSON text, so that they stay on their line.
#[derive(Serialize)]
pub(super) struct Shown {
    pub(super) number: usize,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) output: Option<String>,
}

#[derive(Serialize)]
struct Turn {
    role: String,
    text: String,
}

pub(crate) struct ToolCallLlmCheck;

impl Eval for ToolCallLlmCheck {
    type Values = ToolCallLlmValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "tool_call_llm_check"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on the tool calls and their outputs"
    }

    fn uses_judge(&self, _: &ToolCallLlmValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, _: &ToolCallLlmValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ToolCallLlmValues, _: &NoSettings, findings: &mut Findings) {
        if values.criterion().is_empty() {
            findings.missing("criteria", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &ToolCallLlmValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let criterion = values.criterion();
        let calls = case.evidence.tool_calls();
        if calls.is_empty() {
            let reason = "the agent called no tool";
            let mut verdict =
                Verdict::new(false, described(false, reason, &json!([]), criterion, 0));
            reason.clone_into(&mut verdict.message);
            return Ok(verdict);
        }
        let judge = case.judge()?;
        let question = question(values, case, judge)?;
        let shape = Shape::object(
            "tool_call_verdict",
            &json!({
                "satisfied": judge.decision_type(),
                "reasoning": { "type": "string" },
                "relevant_evidence": { "type": "array", "items": { "type": "string" } },
            }),
        );
        let abstain = judge.may_abstain();
        let ruling = judge
            .decide(question, &shape, |text| verdict(text, abstain))
            .await?;
        let quoted = ruling.details.get("relevant_evidence");
        let quoted = quoted.cloned().unwrap_or_else(|| json!([]));
        let mut described = described(
            ruling.met,
            &ruling.rationale,
            &quoted,
            criterion,
            calls.len(),
        );
        described.insert("judge_prompt".to_owned(), TOOL_CALLS.provenance());
        described.extend(ruling.votes);
        Ok(Verdict::new(ruling.met, described))
    }
}

fn verdict(text: &str, abstain: bool) -> Result<Opinion, String> {
    let opinion = reply::verdict_by("satisfied", "reasoning", abstain, text)?;
    let is_list_of_texts = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_string))
    };
    match opinion.details.get("relevant_evidence") {
        Some(value) if !value.is_null() && !is_list_of_texts(value) => Err(format!(
            "`relevant_evidence` must be a list of texts, got {value}"
        )),
        _ => Ok(opinion),
    }
}

fn described(
    met: bool,
    reasoning: &str,
    quoted: &Value,
    criterion: &str,
    calls: usize,
) -> formats::Object {
    object(json!({
        "satisfied": met,
        "reasoning": reasoning,
        "relevant_evidence": quoted,
        "criteria": criterion,
        "judge_grade": if met { "pass" } else { "fail" },
        "tool_calls_evaluated": calls,
    }))
}

fn question(
    values: &ToolCallLlmValues,
    case: &Case,
    judge: &Judge,
) -> Result<judge::Question, EvalError> {
    let context = Context::of_all(judge.model_names());
    let (calls, calls_left) = fitting(
        case.evidence.tool_calls(),
        values.include_tool_outputs,
        context,
    );
    let (turns, turns_left) = if values.include_messages {
        turns(&case.evidence.trajectory().messages)
    } else {
        (Vec::new(), 0)
    };
    let task = case.evidence.task_text();
    let (task, _) = context.shortened(task.trim(), 1.0 - CALLS_SHARE - 0.1);
    let texts = calls
        .iter()
        .flat_map(|call| {
            [
                Some(call.tool.as_str()),
                Some(&call.arguments),
                call.output.as_deref(),
            ]
        })
        .flatten()
        .chain(turns.iter().map(|turn| turn.text.as_str()))
        .chain([task.as_str(), values.criterion()]);
    let code = marker_code(&texts);
    let prompt = Prompt {
        code: &code,
        criterion: values.criterion(),
        task: &task,
        calls: &calls,
        calls_left,
        outputs: values.include_tool_outputs,
        turns: &turns,
        turns_left,
        cannot_assess: judge.may_abstain(),
    };
    Ok(TOOL_CALLS.question(&prompt, &code)?)
}

/// The first calls that fit, and how many are left.
fn fitting(calls: &[RecordedCall], outputs: bool, context: Context) -> (Vec<Shown>, usize) {
    let mut budget = context.share(CALLS_SHARE);
    let mut fitting = Vec::new();
    for call in calls {
        let one = shown(call, outputs);
        let tokens = context.tokens(&one.arguments)
            + one.output.as_deref().map_or(0, |text| context.tokens(text));
        let Some(left) = budget.checked_sub(tokens) else {
            break;
        };
        budget = left;
        fitting.push(one);
    }
    let left = calls.len() - fitting.len();
    (fitting, left)
}

/// The call as a judge sees it, long arguments and outputs cut.
pub(super) fn shown(call: &RecordedCall, outputs: bool) -> Shown {
    let arguments = beginning(&call.arguments, ARGUMENT_CHARS);
    let mark = if arguments.len() < call.arguments.len() {
        " (cut)"
    } else {
        ""
    };
    let output = call.output.as_deref().map(|text| {
        let chars = text.chars().count();
        if chars > OUTPUT_CHARS {
            head_and_tail(text, chars, OUTPUT_CHARS)
        } else {
            text.to_owned()
        }
    });
    Shown {
        number: call.call_number,
        tool: Value::from(call.tool_name.as_str()).to_string(),
        arguments: format!("{}{mark}", Value::from(arguments)),
        output: output.filter(|_| outputs),
    }
}

/// The conversation without the tools' messages, and how many are left out.
fn turns(messages: &[Message]) -> (Vec<Turn>, usize) {
    let spoken: Vec<&Message> = messages
        .iter()
        .filter(|message| message.role != Role::Tool && !message.text().trim().is_empty())
        .collect();
    let turns: Vec<Turn> = spoken
        .iter()
        .take(MESSAGES)
        .map(|message| Turn {
            role: message.role.as_str().to_owned(),
            text: beginning(&message.text(), MESSAGE_CHARS).to_owned(),
        })
        .collect();
    let left = spoken.len() - turns.len();
    (turns, left)
}
