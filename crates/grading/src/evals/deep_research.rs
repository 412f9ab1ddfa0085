//! `deep_research`: a criterion on the answer and all changed files, with a weight for scoring
//! (§6.3.5). It is asked like the `output_llm` family, with its budget of the context and its
//! repetition of unreadable replies, but always on everything and by the built-in prompt.

use schemars::JsonSchema;
use serde::Deserialize;

use super::output_llm::{Examination, Pages, Target};
use crate::error::EvalError;
use crate::eval::{Case, Eval, Verdict};
use crate::problem::Findings;
use crate::settings::NoSettings;

/// Settings of `deep_research`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DeepResearchValues {
    /// What must be true of the output.
    description: String,
}

pub(crate) struct DeepResearch;

impl Eval for DeepResearch {
    type Values = DeepResearchValues;
    type Config = NoSettings;

    fn id(&self) -> &'static str {
        "deep_research"
    }

    fn about(&self) -> &'static str {
        "a judge model decides a weighted criterion on the answer and all changed files"
    }

    fn uses_judge(&self, _: &DeepResearchValues, _: &NoSettings) -> bool {
        true
    }

    fn check(&self, values: &DeepResearchValues, _: &NoSettings, findings: &mut Findings) {
        if values.description.trim().is_empty() {
            findings.missing("description", "must not be empty");
        }
    }

    async fn evaluate(
        &self,
        values: &DeepResearchValues,
        _: &NoSettings,
        case: &Case,
    ) -> Result<Verdict, EvalError> {
        let examination = Examination {
            criterion: values.description.trim(),
            explanation: "",
            target: &Target::All,
            files: &[],
            references: &[],
            pages: Pages::screenshots(false),
            guard: false,
            own_prompt: false,
            negative: false,
            whole_conversation: false,
        };
        examination.verdict(case).await
    }
}
