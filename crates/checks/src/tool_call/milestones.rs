//! `trace_milestones`: how many of a list of milestones the agent reached on its way, by its tool
//! calls and what it said. Nothing here asks a model.

use fancy_regex::{Regex, RegexBuilder};
use formats::chat::Role;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::{self, TextMode};
use super::{ExpectedArgs, ToolNames, output};
use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::RecordedCall;
use settings::problem::Findings;
use settings::{NoSettings, flag, number, yes};

/// Steps after which a search is given up.
const STEP_LIMIT: usize = 1_000_000;

/// Settings of `trace_milestones`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct MilestonesValues {
    /// What the agent has to reach.
    milestones: Vec<Milestone>,
    /// Whether each is looked for only after the one before that was reached.
    #[serde(default, deserialize_with = "flag")]
    ordered: bool,
    /// Whether the score is 1 if all are reached, else 0; otherwise it is the share of the weights.
    #[serde(default, deserialize_with = "flag")]
    all_required: bool,
}

/// A call of a tool, or something that the agent said.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Milestone {
    /// What it is called in results.
    name: String,
    /// The tool, or a list of tools of which any will do.
    #[serde(default)]
    tool_name: Option<ToolNames>,
    /// Arguments that the call must have; others may be there too.
    #[serde(default)]
    expected_args: ExpectedArgs,
    /// How expected texts are compared.
    #[serde(default)]
    text_mode: TextMode,
    /// A regular expression that the output of the call must contain.
    #[serde(default)]
    output_pattern: Option<String>,
    /// Whether the output must not look like a failure.
    #[serde(default = "yes", deserialize_with = "flag")]
    check_success: bool,
    /// Instead of a tool: a regular expression that something the agent said must contain.
    #[serde(default)]
    message_pattern: Option<String>,
    /// What it counts.
    #[serde(default = "one", deserialize_with = "number")]
    weight: f64,
}

const fn one() -> f64 {
    1.0
}

pub(crate) struct Milestones;

impl Eval for Milestones {
    type Values = MilestonesValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "trace_milestones"
    }

    fn about(&self) -> &'static str {
        "the share of milestones that the agent reached by its tool calls and messages"
    }

    fn needs_transcript(&self, _: &MilestonesValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &MilestonesValues, _: &NoSettings, findings: &mut Findings) {
        if values.milestones.is_empty() {
            findings.missing("milestones", "must not be empty");
        }
        for (at, milestone) in values.milestones.iter().enumerate() {
            let key = format!("milestones[{at}]");
            if let Err(rule) = Wanted::of(milestone) {
                findings.error(&key, rule, milestone.name.as_str());
            }
            if milestone.weight <= 0.0 {
                findings.error(
                    &format!("{key}.weight"),
                    "must be above 0",
                    milestone.weight,
                );
            }
        }
    }

    async fn evaluate(
        &self,
        values: &MilestonesValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let events = events(case);
        let mut after = 0;
        let mut rows = Vec::new();
        let (mut reached, mut total) = (0.0, 0.0);
        for milestone in &values.milestones {
            let wanted = Wanted::of(milestone).map_err(EvalError::config)?;
            let from = if values.ordered { after } else { 0 };
            let found = events[from..].iter().position(|event| wanted.fits(event));
            total += milestone.weight;
            if let Some(at) = found {
                reached += milestone.weight;
                after = from + at + 1;
            }
            let place = found.map(|at| events[from + at].place());
            rows.push(json!({
                "name": milestone.name, "reached": found.is_some(), "place": place,
                "weight": milestone.weight,
            }));
        }
        let missing: Vec<&str> = rows
            .iter()
            .filter(|row| row["reached"] == Value::Bool(false))
            .filter_map(|row| row["name"].as_str())
            .collect();
        let message = if missing.is_empty() {
            "all milestones were reached".to_owned()
        } else {
            format!("not reached: {}", missing.join(", "))
        };
        let score = match (values.all_required, missing.is_empty()) {
            (_, true) => 1.0,
            (true, false) => 0.0,
            (false, false) => reached / total,
        };
        let described = object(json!({
            "passed": missing.is_empty(), "milestones": rows, "ordered": values.ordered,
        }));
        let mut verdict = Verdict::new(false, described).with_message(message);
        verdict.score = score;
        Ok(verdict)
    }
}

/// Something that the agent did.
enum Event<'a> {
    Said(usize, String),
    Called(&'a RecordedCall),
}

impl Event<'_> {
    fn place(&self) -> String {
        match self {
            Self::Said(number, _) => format!("message {number}"),
            Self::Called(call) => format!("call {}", call.call_number),
        }
    }
}

/// All that the agent said and called, in order.
fn events(case: &Case) -> Vec<Event<'_>> {
    let calls = case.evidence.calls_with_gateway_cli();
    let mut events = Vec::new();
    let mut number = 0;
    for (at, message) in case.evidence.trajectory().messages.iter().enumerate() {
        if message.role != Role::Assistant {
            continue;
        }
        let text = message.text();
        if !text.trim().is_empty() {
            events.push(Event::Said(at + 1, text.into_owned()));
        }
        let recorded =
            |call: &&formats::chat::ToolCall| !call.id.is_empty() && !call.function.name.is_empty();
        for _ in message.tool_calls.iter().filter(recorded) {
            number += 1;
            let same = calls.iter().filter(|call| call.call_number == number);
            events.extend(same.map(|call| Event::Called(call)));
        }
    }
    events
}

/// A milestone, ready to be looked for.
enum Wanted<'a> {
    Said(Regex),
    Called {
        milestone: &'a Milestone,
        names: std::collections::BTreeSet<&'a str>,
        expected: formats::Object,
        output: Option<Regex>,
    },
}

impl<'a> Wanted<'a> {
    fn of(milestone: &'a Milestone) -> Result<Self, String> {
        let names = milestone.tool_name.as_ref().map(ToolNames::sorted);
        match (names, &milestone.message_pattern) {
            (None, Some(pattern)) => Ok(Self::Said(regex("message_pattern", pattern)?)),
            (Some(names), None) if !names.is_empty() => Ok(Self::Called {
                milestone,
                names,
                expected: milestone
                    .expected_args
                    .object()
                    .map_err(|rule| format!("`expected_args` {rule}"))?,
                output: milestone
                    .output_pattern
                    .as_deref()
                    .map(|pattern| regex("output_pattern", pattern))
                    .transpose()?,
            }),
            _ => Err("needs either `tool_name` or `message_pattern`".to_owned()),
        }
    }

    fn fits(&self, event: &Event<'_>) -> bool {
        match (self, event) {
            (Self::Said(pattern), Event::Said(_, text)) => pattern.is_match(text).unwrap_or(false),
            (
                Self::Called {
                    milestone,
                    names,
                    expected,
                    output,
                },
                Event::Called(call),
            ) => {
                let printed = call.output.as_deref().unwrap_or_default();
                names.contains(call.tool_name.as_str())
                    && arguments::mismatch(expected, &call.arguments, milestone.text_mode).is_none()
                    && (!milestone.check_success || output::failure(call).is_none())
                    && output
                        .as_ref()
                        .is_none_or(|pattern| pattern.is_match(printed).unwrap_or(false))
            }
            _ => false,
        }
    }
}

fn regex(key: &str, pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .backtrack_limit(STEP_LIMIT)
        .build()
        .map_err(|error| format!("`{key}` is no regular expression ({error})"))
}
