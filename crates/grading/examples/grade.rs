//! Grades a trajectory against two folders, with a judge that plays a script.
//!
//! ```text
//! cargo run -p grading --example grade
//! ```

use std::error::Error;
use std::io::Write as _;

use formats::chat::Message;
use formats::trajectory::Trajectory;
use grading::{GradingInput, Registry};
use llm_client::Models;
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("grade-example-{}", std::process::id()));
    for state in ["before", "after"] {
        std::fs::create_dir_all(folder.join(state).join("filesystem"))?;
    }
    std::fs::write(folder.join("after/filesystem/report.md"), "# Total: 42\n")?;
    // What the judge says; a name such as `anthropic/…` and a key would make it a real one.
    let verdict = json!({ "rationale": "A1 states the total.", "is_criteria_true": true });
    let script = json!({ "turns": [{ "json": verdict }] });
    std::fs::write(folder.join("judge.json"), script.to_string())?;

    let input = GradingInput {
        grading_run_id: "gr_example".to_owned(),
        trajectory_id: "traj_example".to_owned(),
        initial_snapshot: folder.join("before"),
        final_snapshot: folder.join("after"),
        golden_snapshots: Vec::new(),
        trajectory: Trajectory {
            messages: vec![
                Message::user("Write a report with the total."),
                Message::assistant("The report is in report.md."),
            ],
            ..grading::no_trajectory()
        },
        settings: serde_json::from_value(json!({ "llm_judge_model": "scripted/judge.json" }))?,
        verifiers: serde_json::from_value(json!([
            {"verifier_id": "file", "world_id": null, "task_id": "t", "verifier_index": 0,
             "eval_config_id": "ec_file", "verifier_values": {"file_pattern": "*.md"}},
            {"verifier_id": "total", "world_id": null, "task_id": "t", "verifier_index": 1,
             "eval_config_id": "ec_judge",
             "verifier_values": {"criteria": "The report states a total of 42"}},
        ]))?,
        eval_configs: serde_json::from_value(json!([
            {"eval_config_id": "ec_file", "eval_config_name": "file",
             "eval_defn_id": "file_diff_check", "eval_config_values": {}},
            {"eval_config_id": "ec_judge", "eval_config_name": "judge",
             "eval_defn_id": "output_llm", "eval_config_values": {}},
        ]))?,
        scoring: formats::task::ScoringConfig::default(),
    };

    let registry = Registry::builtin();
    let models = Models::new(|_| None).with_script_folder(&folder);
    if let Err(problems) = grading::validate(&registry, &input, &models) {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Err(texts.join("\n").into());
    }
    let cancel = CancellationToken::new();
    let grades = grading::grade(&registry, input, &models, cancel, &|result| {
        let _ = writeln!(
            std::io::stderr(),
            "{}: {}",
            result.verifier_id,
            result.score
        );
    })
    .await;
    std::fs::remove_dir_all(&folder)?;
    serde_json::to_writer_pretty(std::io::stdout(), &grades)?;
    Ok(())
}
