//! `tool_call_check`: a tool was called, or was not, with given arguments (§6.3.12).

mod arguments;
mod milestones;
mod output;

use std::collections::BTreeSet;

use formats::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::arguments::TextMode;
pub(super) use self::milestones::Milestones;
use crate::object;
use eval::error::EvalError;
use eval::{Case, Eval, Verdict};
use evidence::RecordedCall;
use settings::problem::Findings;
use settings::{NoSettings, flag, yes};

/// One name or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ToolNames {
    /// The tool.
    One(String),
    /// Any of these tools.
    Many(Vec<String>),
}

impl ToolNames {
    /// The names, sorted; empty text is no name.
    fn sorted(&self) -> BTreeSet<&str> {
        let names = match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Many(names) => names.as_slice(),
        };
        names
            .iter()
            .map(String::as_str)
            .filter(|name| !name.trim().is_empty())
            .collect()
    }
}

/// Expected arguments: an object, or the text of one.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ExpectedArgs {
    /// No expectation.
    #[default]
    None,
    /// The arguments.
    Object(Object),
    /// Their JSON text.
    Text(String),
}

impl ExpectedArgs {
    fn object(&self) -> Result<Object, String> {
        match self {
            Self::None => Ok(Object::new()),
            Self::Object(object) => Ok(object.clone()),
            Self::Text(text) if text.trim().is_empty() => Ok(Object::new()),
            Self::Text(text) => serde_json::from_str(text)
                .map_err(|error| format!("must be a JSON object ({error})")),
        }
    }
}

/// Settings of `tool_call_check`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ToolCallValues {
    /// The tool, or a list of tools of which any will do.
    tool_name: ToolNames,
    /// Arguments that the call must have; others may be there too.
    #[serde(default)]
    expected_args: ExpectedArgs,
    /// Whether the tool's output must not look like a failure.
    #[serde(default, deserialize_with = "flag")]
    check_success: bool,
    /// Whether one call that fits is enough; otherwise all calls of the tool must fit.
    #[serde(default = "yes", deserialize_with = "flag")]
    match_any: bool,
    /// Text arguments need only contain the expected text.
    #[serde(default, deserialize_with = "flag")]
    expected_args_contains: bool,
    /// Expected texts are regular expressions.
    #[serde(default, deserialize_with = "flag")]
    expected_args_regex: bool,
    /// The tool must not have been called (with these arguments).
    #[serde(default, deserialize_with = "flag")]
    expect_absent: bool,
}

impl ToolCallValues {
    const fn mode(&self) -> TextMode {
        if self.expected_args_regex {
            TextMode::Regex
        } else if self.expected_args_contains {
            TextMode::Contains
        } else {
            TextMode::Exact
        }
    }
}

pub(crate) struct ToolCallCheck;

impl Eval for ToolCallCheck {
    type Values = ToolCallValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "tool_call_check"
    }

    fn about(&self) -> &'static str {
        "a tool was called, or was not, with given arguments"
    }

    fn needs_transcript(&self, _: &ToolCallValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &ToolCallValues, _: &NoSettings, findings: &mut Findings) {
        if values.tool_name.sorted().is_empty() {
            findings.missing("tool_name", "must name at least one tool");
        }
        match values.expected_args.object() {
            Err(rule) => findings.missing("expected_args", rule),
            Ok(expected) if values.mode() == TextMode::Regex => {
                arguments::check_patterns(&expected, findings);
            }
            Ok(_) => {}
        }
    }

    async fn evaluate(
        &self,
        values: &ToolCallValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let expected = values.expected_args.object().map_err(EvalError::config)?;
        let check = Check {
            values,
            names: values.tool_name.sorted(),
            expected,
            calls: case.evidence.calls_with_gateway_cli(),
        };
        Ok(if values.expect_absent {
            check.absent()
        } else {
            check.present()
        })
    }
}

struct Check<'a> {
    values: &'a ToolCallValues,
    names: BTreeSet<&'a str>,
    expected: Object,
    calls: Vec<&'a RecordedCall>,
}

impl Check<'_> {
    fn tool_name(&self) -> String {
        let names: Vec<&str> = self.names.iter().copied().collect();
        names.join(", ")
    }

    fn to_the_tool(&self) -> Vec<&RecordedCall> {
        self.calls
            .iter()
            .copied()
            .filter(|call| self.names.contains(call.tool_name.as_str()))
            .collect()
    }

    fn mismatch(&self, call: &RecordedCall) -> Option<String> {
        arguments::mismatch(&self.expected, &call.arguments, self.values.mode())
    }

    fn absent(&self) -> Verdict {
        let violating: Vec<usize> = self
            .to_the_tool()
            .into_iter()
            .filter(|call| self.expected.is_empty() || self.mismatch(call).is_none())
            .map(|call| call.call_number)
            .collect();
        let tool = self.tool_name();
        let message = if violating.is_empty() {
            format!("as expected, no call of {tool} was found")
        } else {
            let numbers: Vec<String> = violating.iter().map(ToString::to_string).collect();
            format!("unexpected calls of {tool}: number {}", numbers.join(", "))
        };
        let passed = violating.is_empty();
        let values = object(json!({
            "tool_name": tool,
            "expect_absent": true,
            "found": !passed,
            "violating_calls": violating.len(),
            "violating_call_numbers": violating,
            "expected_args": self.expected,
            "message": message,
        }));
        Verdict::new(passed, values).with_message(message)
    }

    fn present(&self) -> Verdict {
        let tool = self.tool_name();
        if self.calls.is_empty() {
            let message = format!("the agent called no tool at all, so not {tool}");
            let values = object(json!({
                "tool_name": tool, "found": false, "matching_calls": [], "message": message,
            }));
            return Verdict::new(false, values).with_message(message);
        }
        let matching = self.to_the_tool();
        if matching.is_empty() {
            let called: BTreeSet<&str> = self.calls.iter().map(|c| c.tool_name.as_str()).collect();
            let message = format!("{tool} was not called");
            let values = object(json!({
                "tool_name": tool, "found": false, "total_tool_calls": self.calls.len(),
                "tools_called": called, "matching_calls": [], "message": message,
            }));
            return Verdict::new(false, values).with_message(message);
        }
        let results: Vec<CallResult> = matching.iter().map(|call| self.examine(call)).collect();
        let passed_calls = results.iter().filter(|result| result.passed).count();
        let passed = if self.values.match_any {
            passed_calls > 0
        } else {
            passed_calls == results.len()
        };
        let message = format!("{passed_calls} of {} calls of {tool} fit", results.len());
        let values = object(json!({
            "tool_name": tool,
            "found": true,
            "total_matching_calls": results.len(),
            "passed_calls": passed_calls,
            "failed_calls": results.len() - passed_calls,
            "match_any": self.values.match_any,
            "check_results": results.iter().map(CallResult::to_value).collect::<Vec<_>>(),
            "expected_args": self.expected,
            "check_success": self.values.check_success,
            "expected_args_contains": self.values.expected_args_contains,
            "expected_args_regex": self.values.expected_args_regex,
            "expected_args_string_match_mode": self.values.mode().as_str(),
        }));
        Verdict::new(passed, values).with_message(message)
    }

    fn examine(&self, call: &RecordedCall) -> CallResult {
        let mut details = Vec::new();
        let args_matched = (!self.expected.is_empty()).then(|| match self.mismatch(call) {
            None => {
                details.push("the arguments fit".to_owned());
                true
            }
            Some(mismatch) => {
                details.push(mismatch);
                false
            }
        });
        let success = self
            .values
            .check_success
            .then(|| match output::failure(call) {
                None => {
                    details.push("the output shows no failure".to_owned());
                    true
                }
                Some(failure) => {
                    details.push(failure);
                    false
                }
            });
        if details.is_empty() {
            details.push("the tool was called".to_owned());
        }
        CallResult {
            call_number: call.call_number,
            tool_name: call.tool_name.clone(),
            passed: args_matched != Some(false) && success != Some(false),
            args_matched,
            success,
            details: details.join("; "),
        }
    }
}

struct CallResult {
    call_number: usize,
    tool_name: String,
    passed: bool,
    args_matched: Option<bool>,
    success: Option<bool>,
    details: String,
}

impl CallResult {
    fn to_value(&self) -> Value {
        json!({
            "call_number": self.call_number,
            "tool_name": self.tool_name,
            "passed": self.passed,
            "args_matched": self.args_matched,
            "success_check_passed": self.success,
            "details": self.details,
        })
    }
}
