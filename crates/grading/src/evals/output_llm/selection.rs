//! Choosing among more artifacts than the judge can read (`spec/grading.md` §5.4).

use serde::Serialize;
use serde_json::{Value, json};

use super::exhibit::{self, Exhibit};
use crate::error::EvalError;
use crate::evals::prompts::OUTPUT_LLM;
use evidence::Artifact;
use judge::Context;
use judge::marker_code;
use judge::{Judge, Question, Shape, reply};

/// Share of the context from which a selection is made.
const FROM: f64 = 0.5;

/// Share of the context that the prompt of a selection may fill.
const USABLE: f64 = 0.6;

/// Tokens left free.
const RESERVE: u64 = 500;

/// What came of the selection.
pub(super) struct Selection<'a> {
    pub(super) artifacts: Vec<&'a Artifact>,
    /// What a result says about it; `None` where all artifacts fit and nobody was asked.
    pub(super) account: Option<Value>,
}

#[derive(Serialize)]
struct Prompt<'a> {
    code: &'a str,
    task: &'a str,
    criterion: &'a str,
    artifacts: &'a [Exhibit],
}

/// The artifacts that the judge needs for `criterion`: all if they fill at most half of its
/// context, else those that it chooses. If it chooses none, or does not answer, all of them; they
/// are cut to fit later.
pub(super) async fn select<'a>(
    judge: &Judge,
    context: Context,
    task: &str,
    criterion: &str,
    artifacts: Vec<&'a Artifact>,
) -> Selection<'a> {
    // One at a time: together they may be many times what a judge reads.
    let tokens: u64 = artifacts
        .iter()
        .map(|artifact| exhibit::tokens(context, &[Exhibit::of(artifact)]))
        .sum();
    if tokens <= context.share(FROM) {
        return Selection {
            artifacts,
            account: None,
        };
    }
    let (artifacts, account) = match ask(judge, context, task, criterion, &artifacts).await {
        Ok(chosen) if !chosen.is_empty() => {
            let chosen: Vec<&Artifact> = chosen
                .iter()
                .filter_map(|number| artifacts.get(*number).copied())
                .collect();
            let account = json!({ "of": artifacts.len(), "chosen": chosen.len() });
            (chosen, account)
        }
        Ok(_) => {
            let account = json!({ "of": artifacts.len(), "chosen": 0, "used": "all" });
            (artifacts, account)
        }
        Err(error) => {
            tracing::warn!(%error, "no selection of artifacts; all are used");
            let account = json!({
                "of": artifacts.len(), "used": "all", "error": error.to_string(),
            });
            (artifacts, account)
        }
    };
    Selection {
        artifacts,
        account: Some(account),
    }
}

/// The positions that the judge chooses, without repetition, in its order.
async fn ask(
    judge: &Judge,
    context: Context,
    task: &str,
    criterion: &str,
    artifacts: &[&Artifact],
) -> Result<Vec<usize>, EvalError> {
    let mut shown: Vec<Exhibit> = artifacts.iter().map(|a| Exhibit::change_only(a)).collect();
    let system = OUTPUT_LLM.render("selection_system", &())?;
    let code = {
        let texts = shown.iter().flat_map(Exhibit::texts);
        marker_code(&texts.chain([task, criterion]))
    };
    let render = |artifacts: &[Exhibit]| {
        OUTPUT_LLM.render(
            "selection_user",
            &Prompt {
                code: &code,
                task,
                criterion,
                artifacts,
            },
        )
    };
    let empty: Vec<Exhibit> = shown.iter().map(Exhibit::emptied).collect();
    let frame = context.tokens(&system) + context.tokens(&render(&empty)?);
    let budget = context.share(USABLE).saturating_sub(frame + RESERVE);
    exhibit::fit(context, &mut shown, budget);
    let mut question = Question::new(system, render(&shown)?).with_code(&code);
    question.temperature = Some(0.0);
    let count = artifacts.len();
    let chosen = judge
        .ask(question, &shape(), |text| chosen(text, count))
        .await?;
    Ok(chosen)
}

fn shape() -> Shape {
    Shape {
        name: "artifact_selection",
        schema: json!({
            "type": "object",
            "properties": {
                "rationale": { "type": "string", "description": "Why these artifacts" },
                "selected_artifact_indices": {
                    "type": "array",
                    "items": { "type": "integer" },
                    "description": "Numbers of the chosen artifacts, counted from 1",
                },
            },
            "required": ["rationale", "selected_artifact_indices"],
            "additionalProperties": false,
        }),
    }
}

/// Numbers outside of the list are dropped, and repeated ones.
fn chosen(text: &str, count: usize) -> Result<Vec<usize>, String> {
    let objects = reply::objects_with(text, &["selected_artifact_indices"])?;
    let list = objects
        .last()
        .and_then(|object| object["selected_artifact_indices"].as_array())
        .ok_or("`selected_artifact_indices` must be a list")?;
    let mut chosen = Vec::new();
    for value in list {
        let number = value.as_u64().ok_or_else(|| {
            format!("`selected_artifact_indices` must hold integers, got {value}")
        })?;
        let at = usize::try_from(number).unwrap_or(0);
        if (1..=count).contains(&at) && !chosen.contains(&(at - 1)) {
            chosen.push(at - 1);
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_and_repeated_ones_are_dropped() {
        let reply = r#"{"rationale": "", "selected_artifact_indices": [3, 1, 0, 9, 3]}"#;
        assert_eq!(chosen(reply, 3), Ok(vec![2, 0]));
        assert!(chosen(r#"{"selected_artifact_indices": ["1"]}"#, 3).is_err());
        assert!(chosen(r#"{"selected_artifact_indices": 1}"#, 3).is_err());
    }
}
