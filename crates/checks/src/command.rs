//! `command`: a program of the task's author gets the files and prints a verdict as JSON.
//!
//! It runs in a fresh folder with `initial/`, `final/` and `golden/1/`, … (each with `filesystem/`
//! and `.apps_data/`), `trajectory.json` and `answer.txt`. On its standard input stands one JSON
//! object: `answer`, `input` (of the verifier's settings) and `verifier_id`. The last line of its
//! output that is not blank is the verdict: `{"score": 0.5}` or `{"passed": true}`, and, if it
//! likes, `message` and `values`. It has to end with 0; anything else is an error of the verifier,
//! not a fail.

use std::ffi::OsString;
use std::time::Duration;

use formats::Object;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object;
use crate::program::{Finished, Folder, Program, ending};
use eval::error::{ErrorKind, EvalError};
use eval::{Case, Eval, Verdict};
use evidence::Side;
use settings::problem::Findings;
use settings::{NoSettings, number};

/// Characters of each output that stand in an error.
const KEPT_CHARS: usize = 4_000;

/// Settings of `command`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CommandValues {
    /// The program and its arguments. `{task}` stands for the task's folder.
    command: Vec<String>,
    /// Handed to the program as it is.
    #[serde(default)]
    input: Value,
    /// Seconds it may take, from 1 to 3600.
    #[serde(default = "minute", deserialize_with = "number")]
    timeout_seconds: f64,
    /// Mebibytes of address space that it may have, from 16 to 65536.
    #[serde(default = "gibibyte", deserialize_with = "number")]
    memory_mib: f64,
    /// Processes that it may have at the same time, from 4 to 4096.
    #[serde(default = "many", deserialize_with = "number")]
    processes: f64,
}

const fn minute() -> f64 {
    60.0
}

const fn gibibyte() -> f64 {
    1024.0
}

const fn many() -> f64 {
    256.0
}

pub(crate) struct CommandEval;

impl Eval for CommandEval {
    type Values = CommandValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "command"
    }

    fn about(&self) -> &'static str {
        "a program gets the files and prints a verdict as JSON"
    }

    fn check(&self, values: &CommandValues, _: &NoSettings, findings: &mut Findings) {
        if values
            .command
            .first()
            .is_none_or(|name| name.trim().is_empty())
        {
            findings.missing("command", "must name a program");
        }
        for (key, value, range) in [
            ("timeout_seconds", values.timeout_seconds, 1.0..=3_600.0),
            ("memory_mib", values.memory_mib, 16.0..=65_536.0),
            ("processes", values.processes, 4.0..=4_096.0),
        ] {
            if !range.contains(&value) {
                let rule = format!("must be from {} to {}", range.start(), range.end());
                findings.error(key, rule, value);
            }
        }
    }

    async fn evaluate(
        &self,
        values: &CommandValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let folder = lay_out_case(case).await?;
        let task = case.task_folder.as_deref();
        let command = values
            .command
            .iter()
            .map(|argument| in_task(argument, task))
            .collect::<Result<Vec<OsString>, EvalError>>()?;
        let input = json!({
            "answer": case.evidence.answer(),
            "input": values.input,
            "verifier_id": case.verifier.verifier_id,
        });
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be within small bounds"
        )]
        let (memory_mib, processes) = (values.memory_mib as u64, values.processes as usize);
        let time = Duration::from_secs_f64(values.timeout_seconds);
        let program = Program {
            input: input.to_string().into_bytes(),
            processes: Some(processes),
            ..Program::new(command, folder.path(), time, memory_mib)
        };
        let finished = program.run(case).await?;
        let mut verdict = verdict(&finished, values.timeout_seconds)?;
        let isolation = finished.isolation.as_str().into();
        verdict.values.insert("isolation".to_owned(), isolation);
        Ok(verdict)
    }
}

fn in_task(argument: &str, task: Option<&std::path::Path>) -> Result<OsString, EvalError> {
    let Some(rest) = argument.strip_prefix("{task}") else {
        return Ok(argument.into());
    };
    let task = task.ok_or_else(|| {
        EvalError::config("`{task}` in `command`: the folder of the task is not known here")
    })?;
    let mut path = task.as_os_str().to_owned();
    path.push(rest);
    Ok(path)
}

async fn lay_out_case(case: &Case) -> Result<Folder, EvalError> {
    let folder = Folder::new()?;
    let trajectory = serde_json::to_vec(case.evidence.trajectory());
    let trajectory = trajectory.map_err(|error| Folder::failed(&error))?;
    folder.write("trajectory.json", trajectory)?;
    folder.write("answer.txt", case.evidence.answer())?;
    for (side, name) in [(Side::Initial, "initial"), (Side::Final, "final")] {
        folder.world(case, side, name).await?;
    }
    for (at, golden) in case.evidence.golden_snapshots().iter().cloned().enumerate() {
        let name = format!("golden/{}", at + 1);
        folder.golden(case, golden, name).await?;
    }
    Ok(folder)
}

fn verdict(finished: &Finished, seconds: f64) -> Result<Verdict, EvalError> {
    let failed = |text: String| {
        EvalError::new(ErrorKind::Sandbox, text)
            .with_value("stdout", ending(&finished.stdout, KEPT_CHARS))
            .with_value("stderr", ending(&finished.stderr, KEPT_CHARS))
    };
    let Some(status) = finished.status else {
        let text = format!("the program did not end within {seconds} s (`timeout_seconds`)");
        return Err(EvalError::new(ErrorKind::Timeout, text));
    };
    if !status.success() {
        return Err(failed(format!("the program ended with {status}")));
    }
    let mut lines = finished.stdout.lines().rev();
    let line = lines.find(|line| !line.trim().is_empty()).unwrap_or("");
    let object: Object = serde_json::from_str(line).map_err(|error| {
        failed(format!(
            "the last line of the output is no JSON object: {error}"
        ))
    })?;
    read(object).map_err(failed)
}

fn read(mut printed: Object) -> Result<Verdict, String> {
    let score = match (printed.get("score"), printed.get("passed")) {
        (Some(score), _) => score
            .as_f64()
            .filter(|score| (-1.0..=1.0).contains(score))
            .ok_or_else(|| format!("`score` must be a number from -1 to 1, got {score}"))?,
        (None, Some(passed)) => {
            let passed = passed
                .as_bool()
                .ok_or_else(|| format!("`passed` must be true or false, got {passed}"))?;
            f64::from(u8::from(passed))
        }
        (None, None) => return Err("the verdict has neither `score` nor `passed`".to_owned()),
    };
    let message = printed.get("message").and_then(Value::as_str);
    let message = message.unwrap_or_default().to_owned();
    let values = match printed.shift_remove("values") {
        Some(Value::Object(values)) => values,
        None | Some(Value::Null) => object(json!({})),
        Some(other) => return Err(format!("`values` must be an object, got {other}")),
    };
    let mut verdict = Verdict::new(false, values).with_message(message);
    verdict.score = score;
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Result<(f64, String), String> {
        read(serde_json::from_str(text).unwrap()).map(|v| (v.score, v.message))
    }

    #[test]
    fn a_verdict_is_a_score_or_a_word() {
        assert_eq!(
            printed(r#"{"score": 0.25, "message": "x"}"#),
            Ok((0.25, "x".to_owned()))
        );
        assert_eq!(printed(r#"{"passed": true}"#), Ok((1.0, String::new())));
        for bad in [
            r#"{}"#,
            r#"{"score": 7}"#,
            r#"{"score": "1"}"#,
            r#"{"passed": 1}"#,
            r#"{"passed": true, "values": []}"#,
        ] {
            assert!(printed(bad).is_err(), "{bad}");
        }
    }
}
