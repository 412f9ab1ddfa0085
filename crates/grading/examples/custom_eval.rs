//! An eval from outside of the crate: implement one trait, register it.
//!
//! ```text
//! cargo run -p grading --example custom_eval
//! ```

use std::error::Error;
use std::io::Write as _;

use formats::chat::Message;
use formats::trajectory::Trajectory;
use grading::{Case, Eval, EvalError, Findings, GradingInput, NoSettings, Registry, Verdict};
use llm_client::Models;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// The answer holds a number in a range.
struct NumberInRange;

/// Its settings in `verifier_values`; `archipelago schema` shows them, and unknown or missing keys
/// are told before anything is run.
#[derive(Deserialize, JsonSchema)]
struct Range {
    /// The least number.
    min: f64,
    /// The greatest number.
    max: f64,
}

impl Eval for NumberInRange {
    type Values = Range;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "number_in_range"
    }

    fn about(&self) -> &'static str {
        "the answer holds a number in a range"
    }

    fn check(&self, range: &Range, _: &NoSettings, findings: &mut Findings) {
        if range.min > range.max {
            findings.error("min", "must not be above `max`", range.min);
        }
    }

    async fn evaluate(
        &self,
        range: &Range,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let numbers = case.evidence.answer().split_whitespace();
        let found = numbers
            .filter_map(|word| word.trim_end_matches(['.', ',']).parse::<f64>().ok())
            .find(|number| (range.min..=range.max).contains(number));
        let values = [("number".to_owned(), json!(found))].into_iter().collect();
        Ok(Verdict::new(found.is_some(), values))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::builtin();
    registry.register(NumberInRange);

    let world = std::env::temp_dir().join(format!("custom-eval-{}", std::process::id()));
    std::fs::create_dir_all(world.join("filesystem"))?;
    let input = GradingInput {
        grading_run_id: "gr_example".to_owned(),
        trajectory_id: "traj_example".to_owned(),
        initial_snapshot: world.clone(),
        final_snapshot: world.clone(),
        golden_snapshots: Vec::new(),
        trajectory: Trajectory {
            messages: vec![
                Message::user("How many?"),
                Message::assistant("There are 42."),
            ],
            ..grading::no_trajectory()
        },
        settings: None,
        verifiers: serde_json::from_value(json!([
            {"verifier_id": "v", "world_id": null, "task_id": "t", "verifier_index": 0,
             "eval_config_id": "ec", "verifier_values": {"min": 40, "max": 50}},
        ]))?,
        eval_configs: serde_json::from_value(json!([
            {"eval_config_id": "ec", "eval_config_name": "range",
             "eval_defn_id": "number_in_range", "eval_config_values": {}},
        ]))?,
        scoring: formats::task::ScoringConfig::default(),
    };
    let models = Models::new(|_| None);
    if let Err(problems) = grading::validate(&registry, &input, &models) {
        return Err(format!("{problems:?}").into());
    }
    let cancel = CancellationToken::new();
    let grades = grading::grade(&registry, input, &models, cancel, &|_| {}).await;
    std::fs::remove_dir_all(&world)?;
    serde_json::to_writer_pretty(std::io::stdout(), &grades)?;
    writeln!(std::io::stdout())?;
    Ok(())
}
