//! Asking a judge about cases that people have decided.

use std::path::Path;
use std::sync::Arc;

use formats::grades::{VerifierResult, VerifierStatus};
use formats::task::{GradingSettings, ScoringConfig};
use llm_client::Models;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Labelled;
use crate::input::{GradeOptions, GradingInput};
use crate::registry::Registry;
use crate::run::grade_with;

/// Cases that are asked at the same time; the judge's slots limit the calls.
const AT_ONCE: usize = 16;

/// A case with the decision of people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledCase {
    /// A name for people.
    pub id: String,
    /// The task that the agent was given.
    pub task: String,
    /// What must be true of the answer.
    pub criterion: String,
    /// What the agent answered.
    pub answer: String,
    /// Whether people find the criterion met.
    pub label: bool,
}

/// What became of one case.
#[derive(Debug, Clone)]
pub struct JudgedCase {
    /// The case.
    pub case: LabelledCase,
    /// The judge beside the label.
    pub labelled: Labelled,
    /// The result of its verifier.
    pub result: VerifierResult,
}

/// Asks the judge of `settings` about `cases`, as `output_llm` asks about an answer. The order
/// stays. Ending by `cancel` gives those that were decided until then.
///
/// # Errors
/// When there is no temporary folder, or a defect of ours shows.
pub async fn judge_cases(
    cases: Vec<LabelledCase>,
    settings: &GradingSettings,
    models: &Models,
    options: &GradeOptions,
    cancel: &CancellationToken,
) -> Result<Vec<JudgedCase>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let registry = Arc::new(Registry::builtin());
    let mut waiting = cases.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut judged = Vec::new();
    loop {
        while running.len() < AT_ONCE
            && !cancel.is_cancelled()
            && let Some((at, case)) = waiting.next()
        {
            let input = input(&case, settings, folder.path())?;
            let (registry, models) = (Arc::clone(&registry), models.clone());
            let (options, cancel) = (options.clone(), cancel.clone());
            running.spawn(async move {
                let grades = Box::pin(grade_with(
                    &registry,
                    input,
                    &models,
                    options,
                    cancel,
                    &|_| {},
                ));
                (at, case, grades.await.verifier_results.pop())
            });
        }
        match running.join_next().await {
            None => break,
            Some(Ok((at, case, Some(result)))) => judged.push((at, case, result)),
            Some(Ok((_, _, None))) => {}
            Some(Err(error)) => return Err(format!("a case was ended: {error}")),
        }
    }
    judged.sort_by_key(|(at, _, _)| *at);
    Ok(judged
        .into_iter()
        .map(|(_, case, result)| JudgedCase {
            labelled: labelled(case.label, &result),
            case,
            result,
        })
        .collect())
}

fn labelled(label: bool, result: &VerifierResult) -> Labelled {
    let verdict = (result.status == VerifierStatus::Ok).then_some(result.score > 0.0);
    let votes = match result.verifier_result_values.get("judge_votes") {
        Some(Value::Array(votes)) => votes
            .iter()
            .map(|vote| match vote["verdict"].as_str() {
                Some("met") => Some(true),
                Some("not_met") => Some(false),
                _ => None,
            })
            .collect(),
        _ => vec![verdict],
    };
    Labelled {
        label,
        verdict,
        votes,
    }
}

fn input(
    case: &LabelledCase,
    settings: &GradingSettings,
    world: &Path,
) -> Result<GradingInput, String> {
    let defect = |error: serde_json::Error| format!("case `{}`: {error}", case.id);
    Ok(GradingInput {
        grading_run_id: "calibration".to_owned(),
        trajectory_id: case.id.clone(),
        initial_snapshot: world.to_owned(),
        final_snapshot: world.to_owned(),
        golden_snapshots: Vec::new(),
        trajectory: serde_json::from_value(json!({
            "messages": [
                {"role": "user", "content": case.task},
                {"role": "assistant", "content": case.answer},
            ],
            "status": "completed", "time_elapsed": 0.0,
        }))
        .map_err(defect)?,
        settings: Some(settings.clone()),
        verifiers: serde_json::from_value(json!([{
            "verifier_id": case.id, "world_id": null, "task_id": "calibration",
            "verifier_index": 0, "eval_config_id": "calibration",
            "verifier_values": {
                "criteria": case.criterion, "expected_file_type": "final_answer",
            },
        }]))
        .map_err(defect)?,
        eval_configs: serde_json::from_value(json!([{
            "eval_config_id": "calibration", "eval_config_name": "calibration",
            "eval_defn_id": "output_llm", "eval_config_values": {},
        }]))
        .map_err(defect)?,
        scoring: ScoringConfig::default(),
    })
}
