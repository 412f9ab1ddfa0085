//! `criterion_output_verifier`: as `output_llm`, with the author's reasons for the criterion
//! (§6.4.1).

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::output_llm::{Examination, ExpectedFileType, Pages, Reference, Target};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::{NoSettings, flag};

/// Settings of `criterion_output_verifier`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CriterionOutputValues {
    /// What must be true of the agent's output.
    description: String,
    /// Why the author wants it; shown to the judge as background.
    #[serde(default)]
    rationale: String,
    /// How grave it is; for people.
    #[serde(default, rename = "type")]
    kind: Value,
    /// For people.
    #[serde(default)]
    tags: Value,
    /// Files of the initial world that the judge is shown as context.
    #[serde(default)]
    sources: Vec<Reference>,
    /// What of the output is looked at; everything if absent.
    #[serde(default)]
    expected_file_type: Option<ExpectedFileType>,
    /// Whether the judge sees documents as pictures of their pages too. They are shown as text in
    /// any case.
    #[serde(default, deserialize_with = "flag")]
    convert_to_images: bool,
}

pub(crate) struct CriterionOutput;

impl Eval for CriterionOutput {
    type Values = CriterionOutputValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "criterion_output_verifier"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a criterion, given with its reasons, on the answer and the changed files"
    }

    fn uses_judge(&self, _: &CriterionOutputValues, _: &NoSettings) -> bool {
        true
    }

    fn needs_transcript(&self, values: &CriterionOutputValues, _: &NoSettings) -> bool {
        target(values) == Target::AnswerOnly
    }

    fn check(&self, values: &CriterionOutputValues, _: &NoSettings, findings: &mut Findings) {
        if values.description.trim().is_empty() {
            findings.missing("description", "must not be empty");
        }
        Target::check(values.expected_file_type.as_ref(), findings);
        Reference::check("sources", &values.sources, findings);
        if values.convert_to_images {
            target(values).check_drawn("convert_to_images", findings);
        }
    }

    async fn evaluate(
        &self,
        values: &CriterionOutputValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let target = target(values);
        let examination = Examination {
            criterion: values.description.trim(),
            explanation: values.rationale.trim(),
            target: &target,
            files: &[],
            references: &values.sources,
            pages: Pages::converted(values.convert_to_images),
            guard: false,
            own_prompt: false,
            negative: false,
            whole_conversation: false,
        };
        let mut verdict = examination.verdict(case).await?;
        let described = &mut verdict.values;
        let rationale = described.get("grade_rationale").cloned();
        described.insert("result".to_owned(), u8::from(verdict.score > 0.0).into());
        described.insert("reason".to_owned(), rationale.unwrap_or_default());
        described.insert("type".to_owned(), values.kind.clone());
        described.insert("tags".to_owned(), values.tags.clone());
        Ok(verdict)
    }
}

/// What is judged; everything where the name is not known, which `check` warns of.
fn target(values: &CriterionOutputValues) -> Target {
    Target::of(values.expected_file_type.as_ref()).unwrap_or(Target::All)
}
