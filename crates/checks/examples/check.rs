//! Checks what changed between two folders.
//!
//! ```text
//! cargo run -p checks --example check
//! ```

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use eval::error::EvalError;
use eval::{Case, IsolationRule, result_of};
use evidence::{Evidence, EvidenceLimits};
use formats::task::Verifier;
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    for world in [&before, &after] {
        std::fs::create_dir_all(world.join("filesystem"))?;
    }
    std::fs::write(
        after.join("filesystem/sales.csv"),
        "region,total\nnorth,42\n",
    )?;
    let trajectory = json!({ "messages": [], "status": "completed", "time_elapsed": 1.0 });
    let evidence = Arc::new(Evidence::new(
        serde_json::from_value(trajectory)?,
        before,
        after,
        EvidenceLimits::default(),
    ));
    for (id, values) in [
        (
            "file_diff_check",
            json!({ "file_pattern": "*.csv", "change_types": ["created"] }),
        ),
        (
            "spreadsheet_verifier",
            json!({ "file_pattern": "*.csv", "cell_reference": "B2",
                    "check_type": "value_equals_number", "expected_value": 42 }),
        ),
    ] {
        let verifier: Verifier = serde_json::from_value(json!({
            "verifier_id": id, "world_id": null, "task_id": "t", "eval_config_id": id,
            "verifier_values": values, "verifier_index": 0,
        }))?;
        let case = Case {
            verifier: verifier.clone(),
            eval_config: serde_json::from_value(json!({
                "eval_config_id": id, "eval_config_name": id, "eval_defn_id": id,
                "eval_config_values": {},
            }))?,
            evidence: Arc::clone(&evidence),
            dependencies: Vec::new(),
            judge: Err(EvalError::config("checks need no judge")),
            task_folder: None,
            program_path: "/usr/bin:/bin".into(),
            isolation: IsolationRule::default(),
        };
        let eval = checks::all().into_iter().find(|eval| eval.id() == id);
        let eval = eval.ok_or("there is no such check")?;
        let result = result_of(&verifier, eval.run(case).await);
        writeln!(
            std::io::stdout(),
            "{id}: {} {}",
            result.score,
            result.message
        )?;
    }
    Ok(())
}
