//! Criteria on the changed rows of the worlds (§6.3.13, §6.4.3): `db_diff_llm` shows them to a
//! judge, `db_diff_llm_tools` and `db_diff_llm_difficulty_weighted` give it tools to look at them.

mod tools;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::tools::RowTools;
use super::object;
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::evals::prompts::ROWS;
use crate::problem::Findings;
use crate::settings::{flag, yes};
use evidence::{DatabaseChanges, RowSources};
use formats::chat::ToolDefinition;
use judge::{Context, Ruling, Shape, VerdictTool, marker_code, reply};

/// Share of the judge's context that the rows may fill.
const ROWS_SHARE: f64 = 0.8;

/// Share that the summary may fill where tools show the rows.
const SUMMARY_SHARE: f64 = 0.3;

/// How a judge gets to see the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// They stand in the question.
    Shown,
    /// It asks for them by tools.
    Tools,
}

/// Ids and how their judges see the rows.
pub(super) const IDS: [(&str, Sight); 3] = [
    ("db_diff_llm", Sight::Shown),
    ("db_diff_llm_tools", Sight::Tools),
    ("db_diff_llm_difficulty_weighted", Sight::Tools),
];

/// Settings of a verifier of the family.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DbDiffValues {
    /// What must be true of the changed rows.
    criteria: String,
}

/// Settings of an eval config of the family.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DbDiffConfig {
    /// The field by which rows of JSON files are the same row; if empty one of the usual names
    /// (`id`, `uuid`, `name`, …).
    #[serde(default)]
    json_id_field: String,
    /// Whether databases, a SQL dump and JSON files are compared together; otherwise the first of
    /// these kinds that the worlds have.
    #[serde(default = "yes", deserialize_with = "flag")]
    diff_all_types: bool,
}

impl DbDiffConfig {
    fn sources(&self) -> RowSources {
        let field = self.json_id_field.trim();
        RowSources {
            all_kinds: self.diff_all_types,
            json_id_field: (!field.is_empty()).then(|| field.to_owned()),
            all_rows: false,
        }
    }
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

pub(crate) struct DbDiff {
    pub(super) id: &'static str,
    pub(super) sight: Sight,
}

impl Eval for DbDiff {
    type Values = DbDiffValues;
    type Config = DbDiffConfig;

    fn id(&self) -> &str {
        self.id
    }

    fn about(&self) -> &'static str {
        match self.sight {
            Sight::Shown => "a judge model decides a criterion on the changed rows of databases",
            Sight::Tools => {
                "a judge model decides a criterion on the changed rows of databases, which it looks at by tools"
            }
        }
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
        config: &DbDiffConfig,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let examination = RowExamination {
            criterion: values.criteria.trim(),
            sources: config.sources(),
            databases: &[],
            sight: self.sight,
        };
        Box::pin(examination.verdict(case)).await
    }
}

/// A criterion on changed rows.
pub(super) struct RowExamination<'a> {
    pub(super) criterion: &'a str,
    pub(super) sources: RowSources,
    /// Only these databases, by path or the end of it; all if there are none.
    pub(super) databases: &'a [&'a str],
    pub(super) sight: Sight,
}

impl RowExamination<'_> {
    /// Asks the judges, unless no row changed.
    pub(super) async fn verdict(&self, case: &Case) -> Result<Verdict, EvalError> {
        let all = case.evidence.database_changes(&self.sources).await?;
        let changes = self.restricted(&all);
        if changes.is_empty() {
            let rationale = "no row of a database changed";
            return Ok(Verdict::new(
                false,
                object(json!({
                    "judge_grade": "fail", "grade_rationale": rationale, "db_diff_summary": "",
                })),
            ));
        }
        let (text, ruling) = self.asked(&changes, case).await?;
        let mut described = object(json!({
            "judge_grade": if ruling.met { "pass" } else { "fail" },
            "grade_rationale": ruling.rationale,
            "db_diff_summary": text,
            "judge_prompt": ROWS.provenance(),
        }));
        described.extend(ruling.votes);
        Ok(Verdict::new(ruling.met, described))
    }

    fn restricted(&self, all: &DatabaseChanges) -> DatabaseChanges {
        if self.databases.is_empty() {
            return all.clone();
        }
        let mut changes = all.only(self.databases);
        for name in self.databases {
            if all.only(&[name]).is_empty() {
                let problem = "no database of this name has changed";
                changes
                    .problems
                    .push(((*name).to_owned(), problem.to_owned()));
            }
        }
        // A name alone is no change.
        if changes.tables.is_empty() && all.only(self.databases).problems.is_empty() {
            changes.problems.clear();
        }
        changes
    }

    /// What the judge is shown of the changes, and what it decides.
    async fn asked(
        &self,
        changes: &DatabaseChanges,
        case: &Case,
    ) -> Result<(String, Ruling), EvalError> {
        let judge = case.judge()?;
        let context = Context::of_all(judge.model_names());
        let (shown, share) = match self.sight {
            Sight::Shown => (changes.text(), ROWS_SHARE),
            Sight::Tools => (changes.summary(), SUMMARY_SHARE),
        };
        let (text, cut) = context.shortened(&shown, share);
        let code = marker_code(&[text.as_str(), self.criterion].into_iter());
        let abstain = judge.may_abstain();
        let prompt = Prompt {
            code: &code,
            criterion: self.criterion,
            changes: &text,
            cut,
            tools: self.sight == Sight::Tools,
            cannot_assess: abstain,
        };
        let question = ROWS.question(&prompt, &code)?;
        let read = |text: &str| reply::result_verdict(text, abstain);
        let ruling = match self.sight {
            Sight::Shown => {
                let shape = Shape::object(
                    "row_verdict",
                    &json!({ "result": result_type(abstain), "reason": { "type": "string" } }),
                );
                judge.decide(question, &shape, read).await?
            }
            Sight::Tools => {
                let tools = RowTools::new(changes, case, &self.sources);
                let submit = submit_verdict(abstain);
                let asked = judge.decide_with_tools(question, &tools, &submit, read);
                asked.await?
            }
        };
        Ok((text, ruling))
    }
}

fn result_type(abstain: bool) -> Value {
    json!({ "type": if abstain { json!(["integer", "null"]) } else { json!("integer") } })
}

fn submit_verdict(abstain: bool) -> VerdictTool {
    let parameters = json!({
        "type": "object",
        "properties": { "result": result_type(abstain), "reason": { "type": "string" } },
        "required": ["result", "reason"],
    });
    VerdictTool {
        definition: ToolDefinition::new(
            "submit_verdict",
            "Gives the verdict: 1 if the criterion is met, else 0, and why.",
            parameters,
        ),
    }
}
