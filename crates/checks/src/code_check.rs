//! `llm_code_verifier`: a function `check(ctx)` of the task's author, in Python, on the files that
//! the agent left (§6.4.7). No model has a part in it. It needs `python3`.

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
use settings::{number, optional_number};

/// The program that runs the function.
const RUNNER: &str = include_str!("../programs/check.py");

/// Address space of the function, in mebibytes, and its seconds of the processor.
const MEMORY_MIB: u64 = 512;
const CPU_SECONDS: u64 = 120;

/// Files that it may have open, and processes that it may have, with those that isolate it.
const OPEN_FILES: u64 = 128;
const PROCESSES: usize = 32;

/// Characters of each output that stand in a result.
const KEPT_CHARS: usize = 4_000;

/// Settings of `llm_code_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CodeCheckValues {
    /// Python that defines `check(ctx)`, which returns `{"passed": …, "details": …, "metrics": …}`.
    code: String,
    /// What the code was written for; for people.
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    generation_prompt: Value,
    /// Seconds that it may take; the default of the eval config if absent.
    #[serde(default, deserialize_with = "optional_number")]
    timeout_s: Option<f64>,
}

/// Settings of an eval config of `llm_code_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CodeCheckConfig {
    /// Seconds where the verifier does not say.
    #[serde(default = "ten", deserialize_with = "number")]
    default_timeout_s: f64,
    /// Seconds at most.
    #[serde(default = "minute", deserialize_with = "number")]
    max_timeout_s: f64,
    /// Modules that may be imported beside the usual ones.
    #[serde(default)]
    allowed_imports: Vec<String>,
    /// Characters that the code may have.
    #[serde(default = "ten_thousand", deserialize_with = "number")]
    max_code_length_chars: f64,
    /// Who wrote the code; for people.
    #[serde(default)]
    #[expect(dead_code, reason = "for people")]
    codegen_orchestrator_id: Value,
}

const fn ten() -> f64 {
    10.0
}

const fn minute() -> f64 {
    60.0
}

const fn ten_thousand() -> f64 {
    10_000.0
}

pub(crate) struct CodeCheck;

impl Eval for CodeCheck {
    type Values = CodeCheckValues;
    type Config = CodeCheckConfig;

    fn id(&self) -> &'static str {
        "llm_code_verifier"
    }

    fn about(&self) -> &'static str {
        "a Python function `check(ctx)` of the author passes on the files that the agent left"
    }

    fn at_once(&self) -> Option<usize> {
        Some(1)
    }

    fn check(&self, values: &CodeCheckValues, config: &CodeCheckConfig, findings: &mut Findings) {
        if values.code.trim().is_empty() {
            findings.missing("code", "must not be empty");
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "the code is a setting in a file"
        )]
        let chars = values.code.chars().count() as f64;
        if chars > config.max_code_length_chars {
            let limit = config.max_code_length_chars;
            let rule = format!("has {chars} characters (limit `max_code_length_chars`: {limit})");
            findings.missing("code", rule);
        }
        if !(0.1..=3_600.0).contains(&config.max_timeout_s) {
            let rule = "must be from 0.1 to 3600";
            findings.error("max_timeout_s", rule, config.max_timeout_s);
        }
        let seconds = values.timeout_s.unwrap_or(config.default_timeout_s);
        if seconds <= 0.0 {
            findings.error("timeout_s", "must be above 0", seconds);
        }
    }

    async fn evaluate(
        &self,
        values: &CodeCheckValues,
        config: &CodeCheckConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let folder = Folder::new()?;
        folder.world(case, Side::Final, "world").await?;
        folder.write("check.py", RUNNER)?;
        let (root, runner) = (folder.path().join("world"), folder.path().join("check.py"));
        let trajectory = case.evidence.trajectory();
        let job = json!({
            "code": values.code,
            "allowed_imports": config.allowed_imports,
            "root": root,
            "final_answer": case.evidence.answer(),
            "messages": trajectory.messages,
            "status": trajectory.status.as_str(),
        });
        let seconds = values.timeout_s.unwrap_or(config.default_timeout_s);
        let seconds = seconds.min(config.max_timeout_s);
        let program = Program {
            cpu_seconds: Some(CPU_SECONDS),
            open_files: Some(OPEN_FILES),
            processes: Some(PROCESSES),
            ..Program::new(
                vec!["python3".into(), "-I".into(), "-B".into(), runner.into()],
                folder.path(),
                Duration::from_secs_f64(seconds),
                MEMORY_MIB,
            )
        };
        let program = Program {
            input: job.to_string().into_bytes(),
            ..program
        };
        let finished = program.run(case).await?;
        verdict(&finished, seconds)
    }
}

fn verdict(finished: &Finished, seconds: f64) -> Result<Verdict, EvalError> {
    let (stdout, stderr) = (
        ending(&finished.stdout, KEPT_CHARS),
        ending(&finished.stderr, KEPT_CHARS),
    );
    let failed = |kind, text: String| {
        EvalError::new(kind, text)
            .with_value("stdout", stdout)
            .with_value("stderr", stderr)
            .with_value("isolation", finished.isolation.as_str())
    };
    let Some(status) = finished.status else {
        let text = format!("the check did not end within {seconds} s (`timeout_s`)");
        return Err(failed(ErrorKind::Timeout, text));
    };
    let mut lines = finished.stdout.lines().rev();
    let last = lines.find(|line| !line.trim().is_empty()).unwrap_or("");
    let printed: Object = serde_json::from_str(last).map_err(|_| {
        failed(
            ErrorKind::Sandbox,
            format!("the check gave no verdict and ended with {status}"),
        )
    })?;
    if let Some(violations) = printed.get("gate_violations") {
        let text = format!("`code` is not allowed: {violations}");
        return Err(
            failed(ErrorKind::Config, text).with_value("gate_violations", violations.clone())
        );
    }
    if let Some(reason) = printed.get("no_verdict").and_then(Value::as_str) {
        return Err(failed(ErrorKind::Config, reason.to_owned()));
    }
    let passed = printed.get("passed").and_then(Value::as_bool);
    let Some(passed) = passed else {
        let text = "the last line has no `passed`".to_owned();
        return Err(failed(ErrorKind::Sandbox, text));
    };
    let mut described = object(json!({
        "passed": passed,
        "details": printed.get("details"),
        "metrics": printed.get("metrics"),
        "stdout": stdout,
        "stderr": stderr,
        "isolation": finished.isolation.as_str(),
    }));
    described.retain(|key, value| key != "metrics" || !value.is_null());
    let message = if passed {
        "the check passed"
    } else {
        "the check failed"
    };
    Ok(Verdict::new(passed, described).with_message(message))
}
