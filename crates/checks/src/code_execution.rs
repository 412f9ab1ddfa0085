//! `code_execution`: the author's Python tests on the files (§6.4.6).
//!
//! The world is laid out in a fresh folder; tests run by pytest in its `filesystem/`, one verifier
//! at a time. A missing output file, or a broken solution, is the agent's fail; tests that cannot
//! be collected for other reasons, or a Python without pytest, are errors.

use std::ffi::OsString;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use snapshot::FILESYSTEM;

use crate::object;
use crate::program::{Finished, Folder, Program, ending};
use eval::error::{ErrorKind, EvalError};
use eval::{Case, Eval, Verdict};
use evidence::Side;
use settings::problem::Findings;
use settings::{NoSettings, number};

/// Characters of the log that stand in a result.
const KEPT_CHARS: usize = 8_000;

/// Address space of the tests, in mebibytes.
const MEMORY_MIB: u64 = 4096;

/// The file of the tests, and the one of the agent's code.
const TESTS: &str = "test_unit.py";
const SOLUTION: &str = "solution.py";

/// What becomes of tests that take too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TimeoutBehavior {
    /// An error of the verifier.
    #[default]
    Error,
    /// A fail.
    Fail,
}

/// Settings of `code_execution`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CodeExecutionValues {
    /// Tests for pytest.
    unit_test_code: String,
    /// The key of the trajectory's `output` that holds code of the agent, put beside the tests as
    /// `solution.py`.
    #[serde(default)]
    solution_output_key: String,
    /// Seconds that the tests may take, from 10 to 3600.
    #[serde(default = "five_minutes", deserialize_with = "number")]
    execution_timeout_seconds: f64,
    /// What becomes of tests that take longer.
    #[serde(default)]
    timeout_behavior: TimeoutBehavior,
}

const fn five_minutes() -> f64 {
    300.0
}

pub(crate) struct CodeExecution;

impl Eval for CodeExecution {
    type Values = CodeExecutionValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "code_execution"
    }

    fn about(&self) -> &'static str {
        "Python tests of the author pass on the files that the agent left"
    }

    fn at_once(&self) -> Option<usize> {
        Some(1)
    }

    fn needs_transcript(&self, values: &CodeExecutionValues, _: &NoSettings) -> bool {
        !values.solution_output_key.trim().is_empty()
    }

    fn check(&self, values: &CodeExecutionValues, _: &NoSettings, findings: &mut Findings) {
        if values.unit_test_code.trim().is_empty() {
            findings.missing("unit_test_code", "must not be empty");
        }
        let seconds = values.execution_timeout_seconds;
        if !(10.0..=3_600.0).contains(&seconds) {
            let rule = "must be from 10 to 3600";
            findings.error("execution_timeout_seconds", rule, seconds);
        }
    }

    async fn evaluate(
        &self,
        values: &CodeExecutionValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let folder = Folder::new()?;
        folder.world(case, Side::Final, "").await?;
        let tests = folder.path().join("tests");
        std::fs::create_dir(&tests)
            .and_then(|()| std::fs::write(tests.join(TESTS), &values.unit_test_code))
            .map_err(|error| Folder::failed(&error))?;
        if let Some(failed) = lay_solution(values, case, &tests)? {
            return Ok(failed);
        }
        let filesystem = folder.path().join(FILESYSTEM);
        let mut modules = filesystem.clone().into_os_string();
        modules.push(":");
        modules.push(&tests);
        let command = [
            "python3",
            "-B",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
        ];
        let mut command: Vec<OsString> = command.iter().map(OsString::from).collect();
        command.push(tests.join(TESTS).into());
        let program = Program {
            writable: Some(folder.path()),
            variables: vec![
                ("PYTHONPATH", modules),
                ("FILESYSTEM_ROOT", filesystem.clone().into()),
            ],
            ..Program::new(
                command,
                &filesystem,
                Duration::from_secs_f64(values.execution_timeout_seconds),
                MEMORY_MIB,
            )
        };
        let finished = program.run(case).await?;
        let isolation = finished.isolation.as_str();
        let mut verdict = verdict(values, &finished)?;
        let values = &mut verdict.values;
        values.insert("isolation".to_owned(), isolation.into());
        Ok(verdict)
    }
}

/// Puts the agent's code beside the tests. Code that the agent did not give is a fail.
fn lay_solution(
    values: &CodeExecutionValues,
    case: &Case,
    tests: &std::path::Path,
) -> Result<Option<Verdict>, EvalError> {
    let key = values.solution_output_key.trim();
    if key.is_empty() {
        return Ok(None);
    }
    let output = case.evidence.trajectory().output.as_ref();
    let code = output.and_then(|output| output.get(key)?.as_str());
    let Some(code) = code else {
        let reason = format!("the agent's output has no code under `{key}`");
        return Ok(Some(result(false, &reason)));
    };
    std::fs::write(tests.join(SOLUTION), code).map_err(|error| Folder::failed(&error))?;
    Ok(None)
}

fn result(passed: bool, rationale: &str) -> Verdict {
    let values = json!({ "passed": passed, "rationale": rationale, "evaluated_artifacts": "" });
    let message = if passed {
        "the tests passed"
    } else {
        "the tests failed"
    };
    Verdict::new(passed, object(values)).with_message(message)
}

fn verdict(values: &CodeExecutionValues, finished: &Finished) -> Result<Verdict, EvalError> {
    let seconds = values.execution_timeout_seconds;
    let Some(status) = finished.status else {
        let text =
            format!("the tests did not end within {seconds} s (`execution_timeout_seconds`)");
        return match values.timeout_behavior {
            TimeoutBehavior::Fail => Ok(result(false, &text)),
            TimeoutBehavior::Error => Err(EvalError::new(ErrorKind::Timeout, text)),
        };
    };
    let log = format!("{}\n{}", finished.stdout, finished.stderr);
    let log = ending(log.trim(), KEPT_CHARS);
    match status.code() {
        Some(0) => Ok(result(true, "all tests passed")),
        Some(1) if !log.contains("No module named pytest") => Ok(result(false, log)),
        // Tests that could not be collected.
        Some(2) if is_the_agents(log) => Ok(result(false, log)),
        _ => {
            let text = format!("the tests could not be run: pytest ended with {status}");
            Err(EvalError::new(ErrorKind::Sandbox, text).with_value("log", log))
        }
    }
}

/// Whether the tests could not be collected because of what the agent left, or did not leave.
fn is_the_agents(log: &str) -> bool {
    let in_solution = log.contains("solution.py") || log.contains("'solution'");
    log.contains("FileNotFoundError")
        || (in_solution
            && [
                "ImportError",
                "ModuleNotFoundError",
                "SyntaxError",
                "NameError",
            ]
            .iter()
            .any(|word| log.contains(word)))
}
