//! `jupiter_excel_formatting` and `jupiter_pptx_formatting`: a criterion on the formatting of
//! workbooks or slides (§6.4.11).

use schemars::JsonSchema;
use serde::Deserialize;

use super::golden_comparison::slides;
use super::output_llm::{Examination, Pages, Target};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Ids with the name of the files that they are about.
pub(super) const IDS: [(&str, &str); 2] = [
    ("jupiter_excel_formatting", "spreadsheet"),
    ("jupiter_pptx_formatting", "presentation"),
];

/// Settings of `jupiter_excel_formatting` and `jupiter_pptx_formatting`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FormattingValues {
    /// What must be true of the formatting.
    criteria: String,
    /// Only this file; all changed files of the kind if empty.
    #[serde(default)]
    agent_result_path: String,
    /// Only these slides, from 1: `1, 3`; all if empty.
    #[serde(default)]
    slides_to_check: String,
}

pub(crate) struct Formatting {
    pub(super) id: &'static str,
    pub(super) files: &'static str,
}

impl Eval for Formatting {
    type Values = FormattingValues;
    type Config = NoSettings;

    fn id(&self) -> &str {
        self.id
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion on the formatting of changed files, by their text"
    }

    fn uses_judge(&self, _: &FormattingValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &FormattingValues, _: &NoSettings, findings: &mut Findings) {
        if values.criteria.trim().is_empty() {
            findings.missing("criteria", "must not be empty");
        }
        if let Err(rule) = slides(&values.slides_to_check) {
            findings.error("slides_to_check", rule, values.slides_to_check.as_str());
        }
    }

    async fn evaluate(
        &self,
        values: &FormattingValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let target = Target::named(self.files);
        let mut criterion = values.criteria.trim().to_owned();
        let only = values.slides_to_check.trim();
        if !only.is_empty() {
            criterion.push_str(&format!("\n\nOnly these slides count: {only}."));
        }
        let file = values.agent_result_path.trim().trim_start_matches('/');
        let file = file.strip_prefix("filesystem/").unwrap_or(file).to_owned();
        let files: Vec<String> = std::iter::once(file)
            .filter(|file| !file.is_empty())
            .collect();
        let examination = Examination {
            criterion: &criterion,
            explanation: "",
            target: &target,
            files: &files,
            references: &[],
            pages: Pages::screenshots(false),
            guard: false,
            own_prompt: false,
            negative: false,
            whole_conversation: false,
        };
        let mut verdict = examination.verdict(case).await?;
        let described = &mut verdict.values;
        let rationale = described.get("grade_rationale").cloned();
        let grade = if verdict.score > 0.0 { "PASS" } else { "FAIL" };
        described.insert("grade".to_owned(), grade.into());
        described.insert("explanation".to_owned(), rationale.unwrap_or_default());
        described.insert("criteria".to_owned(), values.criteria.as_str().into());
        Ok(verdict)
    }
}
