//! Asks a judge that plays a script for three votes on a claim.
//!
//! ```text
//! cargo run -p judge --example verdict
//! ```

use std::error::Error;
use std::io::Write as _;

use judge::{Judge, JudgeOptions, Question, Shape, marker_code, reply};
use llm_client::Models;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("verdict-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let answer = |met| json!({ "json": { "rationale": "2 + 2 is 4.", "is_criteria_true": met } });
    let script = json!({ "turns": [answer(true), answer(false), answer(true)] });
    std::fs::write(folder.join("judge.json"), script.to_string())?;

    let settings = serde_json::from_value(json!({
        "llm_judge_model": "scripted/judge.json", "llm_judge_votes": 3,
    }))?;
    let models = Models::new(|_| None).with_script_folder(&folder);
    let judge = Judge::resolve(Some(&settings), &models, "traj_1", &JudgeOptions::default())?;

    let claim = "The sum of 2 and 2 is 4.";
    let code = marker_code(&[claim].into_iter());
    let question = Question::new(
        "Say whether the claim is true, as JSON with `rationale` and `is_criteria_true`.",
        format!("@@{code} BEGIN claim\n{claim}\n@@{code} END claim"),
    )
    .with_code(code);
    let ruling = judge
        .decide(question, &Shape::free("verdict"), |text| {
            reply::criterion_verdict(text, judge.may_abstain())
        })
        .await?;
    std::fs::remove_dir_all(&folder)?;
    let split = &ruling.votes["judge_split"];
    writeln!(std::io::stdout(), "met: {}, {split}", ruling.met)?;
    Ok(())
}
