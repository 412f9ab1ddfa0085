//! `db_diff_llm`: a judge model decides a criterion on the changed rows of databases (§6.3.13).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::object;
use super::prompts::ROWS;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use evidence::DatabaseChanges;
use judge::Context;
use judge::marker_code;
use judge::{Shape, reply};

/// Share of the judge's context that the rows may fill.
const ROWS_SHARE: f64 = 0.8;

/// Settings of `db_diff_llm`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DbDiffValues {
    /// What must be true of the changed rows.
    criteria: String,
}

/// Settings of an eval config of `db_diff_llm`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DbDiffConfig {
    /// The key of rows in JSON files; such files are not compared by rows yet.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    json_id_field: Value,
    /// Whether SQL dumps and JSON files are compared beside databases; they are not yet.
    #[serde(default)]
    #[expect(dead_code, reason = "known, so that it is not warned of")]
    diff_all_types: Value,
}

#[derive(Serialize)]
struct Prompt<'a> {
    code: &'a str,
    criterion: &'a str,
    changes: &'a str,
    cut: bool,
    tools: bool,
    cannot_assess: bool,
}

pub(crate) struct DbDiffLlm;

impl Eval for DbDiffLlm {
    type Values = DbDiffValues;
    type Config = DbDiffConfig;

    fn id(&self) -> &'static str {
        "db_diff_llm"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on the changed rows of databases"
    }

    fn uses_judge(&self, _: &DbDiffValues, _: &DbDiffConfig) -> bool {
        true
    }

    fn check(&self, values: &DbDiffValues, _: &DbDiffConfig, findings: &mut Findings) {
        if values.criteria.trim().is_empty() {
            findings.missing("criteria", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &DbDiffValues,
        _: &DbDiffConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let changes = case.evidence.database_changes().await?;
        judge_rows(values.criteria.trim(), &changes, case).await
    }
}

/// Asks the judges about `changes`.
pub(super) async fn judge_rows(
    criterion: &str,
    changes: &DatabaseChanges,
    case: &Case,
) -> Result<Verdict, EvalError> {
    if changes.is_empty() {
        let rationale = "no row of a database changed";
        return Ok(Verdict::new(
            false,
            object(json!({
                "judge_grade": "fail", "grade_rationale": rationale, "db_diff_summary": "",
            })),
        ));
    }
    let judge = case.judge()?;
    let context = Context::of_all(judge.model_names());
    let (text, cut) = context.shortened(&changes.text(), ROWS_SHARE);
    let code = marker_code(&[text.as_str(), criterion].into_iter());
    let abstain = judge.may_abstain();
    let prompt = Prompt {
        code: &code,
        criterion,
        changes: &text,
        cut,
        tools: false,
        cannot_assess: abstain,
    };
    let question = ROWS.question(&prompt, &code)?;
    let shape = Shape::object(
        "row_verdict",
        &json!({
            "result": { "type": if abstain { json!(["integer", "null"]) } else { json!("integer") } },
            "reason": { "type": "string" },
        }),
    );
    let ruling = judge
        .decide(question, &shape, |text| {
            reply::result_verdict(text, abstain)
        })
        .await?;
    let mut described = object(json!({
        "judge_grade": if ruling.met { "pass" } else { "fail" },
        "grade_rationale": ruling.rationale,
        "db_diff_summary": text,
        "judge_prompt": ROWS.provenance(),
    }));
    described.extend(ruling.votes);
    Ok(Verdict::new(ruling.met, described))
}
