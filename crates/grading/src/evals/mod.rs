//! The evals of this crate, which ask a judge (`spec/grading.md` §6). Each is an entry of the registry.

mod about_answer;
mod apex_v1;
mod criterion_output;
mod db_diff;
mod deep_research;
mod formatting;
mod golden_comparison;
mod golden_response;
mod output_llm;
mod prompts;
mod response_tool;
mod sections;
mod short_answer;
mod slide_style;
mod tool_call;

use std::sync::Arc;

use crate::eval::{AnyEval, Eval, Typed, object};

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn AnyEval>> {
    fn entry(eval: impl Eval) -> Arc<dyn AnyEval> {
        Arc::new(Typed::new(eval))
    }
    let mut evals = vec![
        entry(tool_call::ToolCallLlmCheck),
        entry(tool_call::ToolShares),
        entry(response_tool::ResponseToolVerifier),
        entry(short_answer::ShortAnswer),
        entry(criterion_output::CriterionOutput),
        entry(output_llm::MultiRepresentation),
        entry(golden_response::GoldenResponseMatch),
        entry(apex_v1::ApexV1),
        entry(deep_research::DeepResearch),
        entry(slide_style::SlideStyle),
    ];
    let compared =
        golden_comparison::IDS.map(|id| entry(golden_comparison::GoldenComparison { id }));
    let formatted = formatting::IDS.map(|(id, files)| entry(formatting::Formatting { id, files }));
    let rows = db_diff::IDS.map(|(id, sight)| entry(db_diff::DbDiff { id, sight }));
    let outputs = output_llm::IDS.map(|id| entry(output_llm::OutputLlm { id }));
    evals.extend(
        compared
            .into_iter()
            .chain(formatted)
            .chain(rows)
            .chain(outputs),
    );
    evals
}
