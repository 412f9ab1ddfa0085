//! Scores the same results by every method.
//!
//! ```text
//! cargo run -p scoring --example score
//! ```

use std::error::Error;
use std::io::Write as _;

use formats::Object;
use formats::grades::VerifierResult;
use formats::task::Verifier;
use scoring::OnVerifierError;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    // Two criteria of the task, the second half met, and one of the world, which is violated.
    let entries = [
        ("total", true, 1.0),
        ("chart", true, 0.5),
        ("tidy", false, -1.0),
    ];
    let mut verifiers: Vec<Verifier> = Vec::new();
    let mut results: Vec<VerifierResult> = Vec::new();
    for (at, (id, of_task, score)) in entries.into_iter().enumerate() {
        verifiers.push(serde_json::from_value(json!({
            "verifier_id": id, "world_id": "w", "task_id": of_task.then_some("t"),
            "eval_config_id": "e", "verifier_values": {}, "verifier_index": at,
        }))?);
        results.push(serde_json::from_value(json!({
            "verifier_id": id, "verifier_version": 1, "score": score,
            "verifier_result_values": {}, "status": "ok", "message": "",
        }))?);
    }
    let mut out = std::io::stdout();
    for method in scoring::all() {
        let scored = scoring::score(
            method.as_ref(),
            &Object::new(),
            &verifiers,
            &results,
            OnVerifierError::FailRun,
        )?;
        writeln!(
            out,
            "{:.4} {}: {}",
            scored.final_score,
            method.id(),
            method.about()
        )?;
    }
    Ok(())
}
