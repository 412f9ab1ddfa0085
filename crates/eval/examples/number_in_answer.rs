//! An eval, and a case that it judges.
//!
//! ```text
//! cargo run -p eval --example number_in_answer
//! ```

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use eval::error::EvalError;
use eval::{AnyEval, Case, Eval, IsolationRule, Typed, Verdict, object, result_of};
use evidence::{Evidence, EvidenceLimits};
use formats::task::Verifier;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use settings::NoSettings;

/// The answer names a number.
struct NumberInAnswer;

/// Its settings.
#[derive(Deserialize, JsonSchema)]
struct Values {
    /// The number.
    #[serde(deserialize_with = "settings::number")]
    number: f64,
}

impl Eval for NumberInAnswer {
    type Values = Values;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "number_in_answer"
    }

    fn about(&self) -> &'static str {
        "the answer names a number"
    }

    async fn evaluate(
        &self,
        values: &Values,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let words = case.evidence.answer().split_whitespace();
        let mut numbers = words.filter_map(|word| word.trim_end_matches('.').parse::<f64>().ok());
        let found = numbers.any(|number| (number - values.number).abs() < 1e-9);
        Ok(Verdict::new(
            found,
            object(json!({ "number": values.number })),
        ))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let trajectory = json!({
        "messages": [
            {"role": "user", "content": "How many?"},
            {"role": "assistant", "content": "There are 42."},
        ],
        "status": "completed", "time_elapsed": 1.0,
    });
    let verifier: Verifier = serde_json::from_value(json!({
        "verifier_id": "v", "world_id": null, "task_id": "t", "eval_config_id": "ec",
        "verifier_values": {"number": "42"}, "verifier_index": 0,
    }))?;
    let case = Case {
        verifier: verifier.clone(),
        eval_config: serde_json::from_value(json!({
            "eval_config_id": "ec", "eval_config_name": "number",
            "eval_defn_id": "number_in_answer", "eval_config_values": {},
        }))?,
        // This eval looks at no world.
        evidence: Arc::new(Evidence::new(
            serde_json::from_value(trajectory)?,
            "before.zip".into(),
            "after.zip".into(),
            EvidenceLimits::default(),
        )),
        dependencies: Vec::new(),
        judge: Err(EvalError::config("there is no judge")),
        task_folder: None,
        program_path: "/usr/bin:/bin".into(),
        isolation: IsolationRule::default(),
    };
    let eval: Arc<dyn AnyEval> = Arc::new(Typed::new(NumberInAnswer));
    let result = result_of(&verifier, eval.run(case).await);
    writeln!(
        std::io::stdout(),
        "{}",
        serde_json::to_string_pretty(&result)?
    )?;
    Ok(())
}
